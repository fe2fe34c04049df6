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
	top, r := a[0], a[len(a)-1]
	a = a[:len(a)-1]
	*h = a
	if len(a) == 0 {
		return top
	}
	i := 0
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
	return top
}
