package valve

// heap orders channels by watermark; channels know their position, so that a channel that moves is found in no time. A
// scan would do for a few channels, but a task of a wide shuffle has thousands, each of which holds the minimum in turn.
type heap []int32

func (h heap) up(c []channel, i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if c[h[i]].watermark >= c[h[parent]].watermark {
			return
		}
		h.swap(c, i, parent)
		i = parent
	}
}

func (h heap) down(c []channel, i int) {
	for {
		least, left := i, 2*i+1
		if left < len(h) && c[h[left]].watermark < c[h[least]].watermark {
			least = left
		}
		if right := left + 1; right < len(h) && c[h[right]].watermark < c[h[least]].watermark {
			least = right
		}
		if least == i {
			return
		}
		h.swap(c, i, least)
		i = least
	}
}

func (h heap) swap(c []channel, i, j int) {
	h[i], h[j] = h[j], h[i]
	c[h[i]].at, c[h[j]].at = int32(i), int32(j)
}
