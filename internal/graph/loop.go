package graph

// loops checks the iterations: every head has feedback, every tail one head, and no blocking edge inside, for which the
// loop would wait forever.
func (c *checker) loops(order []*Node) {
	heads := loops(order)
	fed := make(map[*Node]bool)
	for _, n := range order {
		for i := range n.Inputs {
			e := &n.Inputs[i]
			if !e.Feedback {
				continue
			}
			fed[n] = true
			if heads[e.From] != n {
				c.add(e.From.mistake("feeds both %s and %s", n, heads[e.From]))
			}
		}
	}
	for _, n := range order {
		switch {
		case n.Kind == IterationHead && !fed[n]:
			c.add(n.mistake("an iteration without feedback: close it"))
		case n.Kind == IterationTail && heads[n] == nil:
			c.add(n.mistake("feedback that leads to no iteration"))
		case n.Kind == IterationTail:
			c.body(order, heads[n], n)
		}
	}
}

// body looks at the nodes between a head and its tail.
func (c *checker) body(order []*Node, head, tail *Node) {
	reached := map[*Node]bool{head: true}
	for _, n := range order {
		for i := range n.Inputs {
			if e := &n.Inputs[i]; !e.Feedback && reached[e.From] {
				reached[n] = true
			}
		}
	}
	if !reached[tail] {
		c.add(tail.mistake("is fed by nothing that comes from its iteration, %s", head))
		return
	}
	inside := map[*Node]bool{tail: true}
	for i := len(order) - 1; i >= 0; i-- {
		n := order[i]
		if !inside[n] || n == head {
			continue
		}
		for j := range n.Inputs {
			e := &n.Inputs[j]
			if e.Feedback || !reached[e.From] {
				continue
			}
			inside[e.From] = true
			if c.g.Blocking(e) && e.batch() {
				c.add(n.mistake("the edge from %s is blocking, but inside an iteration it would wait for its own end", e.From))
			}
		}
	}
}

// coLocation checks that nodes which share slots may: they are in one slot-sharing group.
func (c *checker) coLocation(order []*Node) {
	groups := slotGroups(order)
	first := make(map[string]*Node)
	for _, n := range order {
		if n.CoLocation == "" {
			continue
		}
		other := first[n.CoLocation]
		if other == nil {
			first[n.CoLocation] = n
		} else if groups[other] != groups[n] {
			c.add(n.mistake("co-located (%q) with %s, but in slot-sharing group %q, not %q", n.CoLocation, other, groups[n],
				groups[other]))
		}
	}
	heads := loops(order)
	for _, n := range order {
		head := heads[n]
		if head == nil {
			continue
		}
		if groups[head] != groups[n] {
			c.add(n.mistake("in slot-sharing group %q, but its iteration %s is in %q", groups[n], head, groups[head]))
		}
		if n.CoLocation != "" && head.CoLocation != "" && n.CoLocation != head.CoLocation {
			c.add(n.mistake("co-located by %q, but its iteration %s by %q", n.CoLocation, head, head.CoLocation))
		}
	}
}
