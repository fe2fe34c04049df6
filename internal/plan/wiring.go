package plan

// Wiring is which subtasks an edge connects. Rows are shared where they are equal: read-only.
type Wiring struct {
	Down [][]int // per upstream subtask: the downstream subtasks that it feeds, in channel order
	Up   [][]int // per downstream subtask: the upstream subtasks that feed it, in channel order
}

// Channels gives the channels of an edge between vertices of these parallelisms: all to all, or Flink's pointwise
// pattern, in which every subtask has a channel and their numbers differ by one at most.
func Channels(edge *JobEdge, upstream, downstream int) Wiring {
	if edge.Pointwise {
		return pointwise(upstream, downstream)
	}
	w := Wiring{Down: make([][]int, upstream), Up: make([][]int, downstream)}
	all := count(0, max(upstream, downstream))
	for i := range w.Down {
		w.Down[i] = all[:downstream:downstream]
	}
	for i := range w.Up {
		w.Up[i] = all[:upstream:upstream]
	}
	return w
}

// pointwise computes in 32-bit floats where the ratio does not divide, since Flink does: another rounding would give
// other neighbours.
func pointwise(upstream, downstream int) Wiring {
	w := Wiring{Down: make([][]int, upstream), Up: make([][]int, downstream)}
	for d := range downstream {
		from, to := sources(upstream, downstream, d)
		w.Up[d] = count(from, to)
		for u := from; u < to; u++ {
			w.Down[u] = append(w.Down[u], d)
		}
	}
	return w
}

// sources gives the upstream subtasks [from, to) that feed downstream subtask d.
func sources(upstream, downstream, d int) (from, to int) {
	switch {
	case upstream == downstream:
		return d, d + 1
	case downstream%upstream == 0:
		from = d / (downstream / upstream)
		return from, from + 1
	case upstream < downstream:
		from = int(float32(d) / (float32(downstream) / float32(upstream)))
		return from, from + 1
	case upstream%downstream == 0:
		factor := upstream / downstream
		return d * factor, (d + 1) * factor
	}
	factor := float32(upstream) / float32(downstream)
	from, to = int(float32(d)*factor), int(float32(d+1)*factor)
	if d == downstream-1 {
		to = upstream
	}
	return from, to
}

func count(from, to int) []int {
	list := make([]int, to-from)
	for i := range list {
		list[i] = from + i
	}
	return list
}
