package jobmanager

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/internal/taskmanager"
)

// Watermarks is the event time of every operator's subtasks, in the order of the plan, and what holds it back; nil before
// the first attempt. Subtasks go on while it is made: what it says of two of them may be of two moments.
func (j *Job) Watermarks() []WatermarkReport {
	tasks := j.Tasks()
	s := survey{tasks: make(map[[2]int]*taskmanager.Subtask, len(tasks)), furthest: map[place]int64{}}
	for _, t := range tasks {
		s.tasks[[2]int{t.Vertex.Index, t.Index}] = t
	}
	var reports []WatermarkReport
	for _, t := range tasks {
		for node := range t.Vertex.Nodes {
			reports = append(reports, s.report(place{t, node}))
		}
	}
	return reports
}

// survey looks at all subtasks.
type survey struct {
	tasks    map[[2]int]*taskmanager.Subtask // by vertex and index
	furthest map[place]int64
}

// place is a node in a subtask.
type place struct {
	task *taskmanager.Subtask
	node int
}

func (p place) chainNode() *plan.ChainNode { return p.task.Vertex.Nodes[p.node] }

// source reports whether the node has no input.
func (p place) source() bool { return p.node == 0 && len(p.task.EventTime()) == 0 }

// makes reports whether the node's watermarks are its own.
func (p place) makes() bool { return p.source() || p.chainNode().Node.MakesWatermarks }

func (s *survey) sender(f *taskmanager.Feed) place {
	return place{s.tasks[[2]int{f.Edge.From.Index, f.Subtask}], f.Edge.Producer}
}

func (s *survey) report(p place) WatermarkReport {
	n := p.chainNode()
	r := WatermarkReport{
		Operator: n.Node.Title(), UID: n.ID.String(), Subtask: p.task.Index, Parallelism: p.task.Vertex.Parallelism,
		Furthest: frame.MinWatermark, Input: -1,
	}
	r.Sent, r.Idle = p.task.Sent(p.node, "")
	if p.makes() {
		r.Watermark, r.Furthest = r.Sent, r.Sent
		return r
	}
	r.Watermark, r.Idle = p.task.Received(p.node)
	switch {
	case p.node > 0:
		r.Inputs = []WatermarkInput{{Watermark: r.Watermark, Idle: r.Idle, Channels: 1}}
		if r.Idle {
			r.Inputs[0].Silent = 1
		}
		from, _ := p.task.Before(p.node)
		r.Furthest = s.most(place{p.task, from})
	default:
		s.inputs(p, &r)
	}
	held := 0
	if p.node == 0 {
		held, _ = p.task.Held()
	}
	if held >= 0 && !r.Idle && waits(r.Watermark, r.Furthest) {
		r.HeldBy = s.holders(p, held)
	}
	if len(r.HeldBy) > 0 {
		r.Input = held
	}
	for i := range r.Inputs {
		in := &r.Inputs[i]
		switch {
		case i == held:
			in.HeldBy = r.HeldBy
		case !in.Idle && waits(in.Watermark, r.Furthest):
			in.HeldBy = s.holders(p, i)
		}
	}
	return r
}

// waits reports whether somebody at that watermark waits for another one: it is neither at its end nor as far as all.
func waits(watermark, furthest int64) bool {
	return watermark != frame.MaxWatermark && (watermark == frame.MinWatermark || watermark < furthest)
}

// inputs fills in the inputs of a head.
func (s *survey) inputs(p place, r *WatermarkReport) {
	for i, in := range p.task.EventTime() {
		w := WatermarkInput{Watermark: in.Watermark(), Idle: in.Idle(), Channels: in.Channels()}
		for c := range in.Channels() {
			if in.Channel(c).Idle {
				w.Silent++
			}
			r.Furthest = max(r.Furthest, s.most(s.sender(p.task.Feeds[i][c])))
		}
		r.Inputs = append(r.Inputs, w)
	}
}

// most is the greatest watermark of all that makes watermarks for what a node emits.
func (s *survey) most(p place) int64 {
	if w, ok := s.furthest[p]; ok {
		return w
	}
	w := int64(frame.MinWatermark)
	switch {
	case p.makes():
		w, _ = p.task.Sent(p.node, "")
	case p.node > 0:
		from, _ := p.task.Before(p.node)
		w = s.most(place{p.task, from})
	default:
		for _, feeds := range p.task.Feeds {
			for _, f := range feeds {
				w = max(w, s.most(s.sender(f)))
			}
		}
	}
	s.furthest[p] = w
	return w
}

// holders goes from a node against the stream: at each input to the channel that is furthest behind, until it comes to who
// makes the watermarks, or to somebody who has got a later one than others have got from it.
func (s *survey) holders(p place, input int) (holders []WatermarkHolder) {
	for input >= 0 {
		var h WatermarkHolder
		var ok bool
		if p, h, ok = s.holder(p, input); !ok {
			break
		}
		holders = append(holders, h)
		if h.Reason != HeldBefore {
			break
		}
		if input = 0; p.node == 0 {
			input, _ = p.task.Held()
		}
	}
	return holders
}

// holder is who holds an input of p back, and where.
func (s *survey) holder(p place, input int) (from place, h WatermarkHolder, ok bool) {
	if p.node > 0 {
		node, tag := p.task.Before(p.node)
		from = place{p.task, node}
		sent, _ := from.task.Sent(node, tag)
		h = from.hold(sent)
		return from, h, true
	}
	in := p.task.EventTime()[input]
	channel := in.Held()
	if channel < 0 {
		return from, h, false
	}
	f := p.task.Feeds[input][channel]
	from = s.sender(f)
	got := in.Channel(channel).Watermark
	h = from.hold(got)
	if sent, _ := from.task.Sent(from.node, f.Edge.Tag); sent > got {
		h.Reason, h.Watermark, h.Waiting = HeldOnTheWay, sent, f.Waiting()
	}
	h.Others = likewise(p.task, input, channel)
	return from, h, true
}

// likewise is how many other channels of the input are where the given one is, from the same operator.
func likewise(t *taskmanager.Subtask, input, channel int) int {
	in, edge := t.EventTime()[input], t.Feeds[input][channel].Edge
	at, n := in.Channel(channel), 0
	for c := range in.Channels() {
		if c != channel && in.Channel(c) == at && t.Feeds[input][c].Edge == edge {
			n++
		}
	}
	return n
}

// reason is why a node holds back others, which have got the watermark sent from it.
func (p place) reason(sent, elements int64) HoldReason {
	if p.makes() {
		switch {
		case sent != frame.MinWatermark:
			return HeldBehind
		case elements == 0:
			return HeldWithoutElements
		case !p.chainNode().Node.MakesWatermarks:
			return HeldWithoutStrategy
		}
		return HeldWithoutWatermarks
	}
	if got, idle := p.task.Received(p.node); got > sent && !idle {
		return HeldInside
	}
	return HeldBefore
}

// hold is p as a holder who has sent a watermark.
func (p place) hold(sent int64) WatermarkHolder {
	n := p.chainNode()
	h := WatermarkHolder{Operator: n.Node.Title(), UID: n.ID.String(), Subtask: p.task.Index, Watermark: sent}
	if p.source() {
		op := p.task.Operators()[0]
		h.Elements = op.Output("").Count.Load()
		if s, ok := op.(operator.SplitHolder); ok {
			h.Split = s.HeldSplit()
		}
	} else {
		h.Elements = p.task.Runtimes()[p.node].In.Load()
	}
	h.Reason = p.reason(sent, h.Elements)
	if p.source() {
		return h
	}
	if head := (place{p.task, 0}); p.makes() && head.source() {
		h.Source = head.chainNode().Node.Title()
	}
	return h
}
