package loops

// Sessions counts the events per key and session: a session ends when its key has no event for gap ms. Each one adds
// SessionChecksum to the sum. Keys are multiples of Spread; every key has a slot of its own. Events are in order of time;
// sessions are closed as their key's next event comes, those left at the end.
func Sessions(es []Event, keys int, gap int64) (sum uint64) {
	type session struct{ start, end, count int64 }
	open := make([]session, keys)
	for i := range es {
		e := &es[i]
		s := &open[e.Key/Spread]
		if s.count != 0 && e.TS > s.end {
			sum += SessionChecksum(e.Key, s.start, s.end, s.count)
			s.count = 0
		}
		if s.count == 0 {
			s.start = e.TS
		}
		s.end = e.TS + gap
		s.count += e.Val
	}
	for k, s := range open {
		if s.count != 0 {
			sum += SessionChecksum(uint64(k)*Spread, s.start, s.end, s.count)
		}
	}
	return sum
}

// SessionChecksum is what a session adds to the checksum.
func SessionChecksum(key uint64, start, end, count int64) uint64 {
	return (key + 1) * (uint64(start)*31 + uint64(end)*17 + uint64(count))
}

// IntervalJoin pairs events of one key whose right one is at most before ms earlier and after ms later than the left one,
// and returns the number of pairs and the sum of PairChecksum. Both sides are in order of time, and taken as their times
// come: each key keeps what can still find a partner.
func IntervalJoin(left, right []Event, keys int, before, after int64) (pairs int, sum uint64) {
	kept := [2][][]int64{make([][]int64, keys), make([][]int64, keys)}
	drop := func(ts []int64, below int64) []int64 {
		for len(ts) != 0 && ts[0] < below {
			ts = ts[1:]
		}
		return ts
	}
	for i, j := 0, 0; i < len(left) || j < len(right); {
		if j == len(right) || i < len(left) && left[i].TS <= right[j].TS {
			e := &left[i]
			k := e.Key / Spread
			kept[1][k] = drop(kept[1][k], e.TS-before)
			for _, t := range kept[1][k] {
				pairs++
				sum += PairChecksum(e.Key, e.TS, t)
			}
			kept[0][k] = append(kept[0][k], e.TS)
			i++
			continue
		}
		e := &right[j]
		k := e.Key / Spread
		kept[0][k] = drop(kept[0][k], e.TS-after)
		for _, t := range kept[0][k] {
			pairs++
			sum += PairChecksum(e.Key, t, e.TS)
		}
		kept[1][k] = append(kept[1][k], e.TS)
		j++
	}
	return pairs, sum
}

// PairChecksum is what a pair adds to the checksum.
func PairChecksum(key uint64, left, right int64) uint64 {
	return (key + 1) * (uint64(left)*31 + uint64(right))
}
