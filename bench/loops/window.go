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

// Sliding counts the events per key in windows of size ms every slide ms: one pane for each stretch between the times where
// windows begin and end, and running totals; every key with events is fired at each end of a window, up to the time of the
// last event.
func Sliding(es []Event, size, slide int64) (sum uint64) {
	type pane struct {
		end    int64
		counts []int32
	}
	var panes []pane
	var free [][]int32
	totals := make([]int32, SlidingKeys)
	counts := make([]int32, SlidingKeys) // of the open pane
	start, end := next(0, slide), next(size%slide, slide)
	cut := min(start, end)
	for i := range es {
		for es[i].TS >= cut {
			panes = append(panes, pane{cut, counts})
			if cut == end {
				sum += fired(totals)
				for len(panes) != 0 && panes[0].end <= end-size+slide {
					for k, n := range panes[0].counts {
						totals[k] -= n
					}
					clear(panes[0].counts)
					free, panes = append(free, panes[0].counts), panes[1:]
				}
				end += slide
			}
			if cut == start {
				start += slide
			}
			cut = min(start, end)
			if len(free) == 0 {
				free = append(free, make([]int32, SlidingKeys))
			}
			counts, free = free[len(free)-1], free[:len(free)-1]
		}
		k := es[i].Key / Spread
		counts[k] += int32(es[i].Val)
		totals[k] += int32(es[i].Val)
	}
	return sum
}

// next is the first time after 0 that is at modulo slide.
func next(at, slide int64) int64 {
	if at == 0 {
		return slide
	}
	return at
}

func fired(totals []int32) (sum uint64) {
	for k, n := range totals {
		if n != 0 {
			sum += uint64(n) * uint64(k)
		}
	}
	return sum
}

// SlidingMax is the sum, over the same windows and the keys with events in them, of the time of a key's last event times
// the key + 1.
func SlidingMax(es []Event, size, slide int64) (sum uint64) {
	last := make([]int64, SlidingKeys)
	for k := range last {
		last[k] = -1
	}
	end := next(size%slide, slide)
	for i := range es {
		for ; es[i].TS >= end; end += slide {
			for k, t := range last {
				if t >= 0 && t >= end-size {
					sum += uint64(t) * (uint64(k)*Spread + 1)
				}
			}
		}
		last[es[i].Key/Spread] = es[i].TS
	}
	return sum
}
