package loops

// Tumbling counts the events per key and window of 10 s, in order of time.
func Tumbling(es []Event, keys int) uint64 {
	t := newTable(keys)
	var hs [batchSize]uint64
	var sum uint64
	end := int64(10_000)
	for start := 0; start < len(es); {
		stop := min(start+batchSize, len(es))
		for stop > start && es[stop-1].TS >= end {
			stop--
		}
		if stop == start {
			sum += t.checksum() * uint64(end/10_000)
			clear(t.slots)
			end += 10_000
			continue
		}
		t.add(es[start:stop], &hs)
		start = stop
	}
	return sum + t.checksum()*uint64(end/10_000)
}

// SlidingKeys bounds the keys of the events that Sliding takes.
const SlidingKeys = 10_000

// Sliding counts the events per key in windows of 60 s every 1 s: one pane a second and running totals; every key with
// events is fired at each slide.
func Sliding(es []Event) uint64 {
	const panes = 60
	ring := make([][SlidingKeys]int32, panes)
	totals := make([]int32, SlidingKeys)
	var sum uint64
	second := int64(0)
	for i := range es {
		for es[i].TS/1000 > second {
			for k, n := range totals {
				if n != 0 {
					sum += uint64(n) * uint64(k)
				}
			}
			second++
			old := &ring[second%panes]
			for k := range old {
				totals[k] -= old[k]
			}
			clear(old[:])
		}
		k := es[i].Key / Spread
		ring[second%panes][k] += int32(es[i].Val)
		totals[k] += int32(es[i].Val)
	}
	return sum
}
