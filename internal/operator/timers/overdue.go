package timers

// overdue is a heap by time.
type overdue []ref

func (h *overdue) push(r ref) {
	*h = append(*h, r)
	a := *h
	i := len(a) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if a[parent].at <= r.at {
			break
		}
		a[i] = a[parent]
		i = parent
	}
	a[i] = r
}

func (h *overdue) pop() ref {
	a := *h
	top, last := a[0], len(a)-1
	a[0] = a[last]
	*h = a[:last]
	h.down(0)
	return top
}

// keep drops the refs that are not alive, and says how many.
func (h *overdue) keep(alive func(ref) bool) (dropped int) {
	a := (*h)[:0]
	for _, r := range *h {
		if alive(r) {
			a = append(a, r)
		}
	}
	dropped = len(*h) - len(a)
	*h = a
	for i := len(a)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
	return dropped
}

// down moves ref i behind those of its branch that are earlier.
func (h *overdue) down(i int) {
	a := *h
	if i >= len(a) {
		return
	}
	r := a[i]
	for {
		child := 2*i + 1
		if child >= len(a) {
			break
		}
		if child+1 < len(a) && a[child+1].at < a[child].at {
			child++
		}
		if r.at <= a[child].at {
			break
		}
		a[i] = a[child]
		i = child
	}
	a[i] = r
}
