package taskmanager

import (
	"fmt"
	"math"

	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/internal/task"
	"github.com/flott-dev/flott/process"
)

// Feed is one channel into a subtask, seen from it: who sends there.
type Feed struct {
	Edge    *plan.JobEdge
	Subtask int // of Edge.From
	channel *exchange.Channel
}

// Waiting is the number of frames that are on their way.
func (f *Feed) Waiting() int { return f.channel.Len() }

// Producer is the node whose output the channel carries.
func (f *Feed) Producer() *plan.ChainNode { return f.Edge.From.Nodes[f.Edge.Producer] }

// String names the sender.
func (f *Feed) String() string {
	return fmt.Sprintf("%q subtask %d", f.Producer().Node.Title(), f.Subtask+1)
}

// EventTime is the event time of the head's inputs; none for a source.
func (s *Subtask) EventTime() []*task.EventTime { return s.task.EventTime() }

// Sent is the last watermark that a node's output has sent on and whether it has said since that nothing comes for now;
// frame.MinWatermark for a node without such an output.
func (s *Subtask) Sent(node int, tag string) (watermark int64, idle bool) {
	out := s.task.Operators()[node].Output(tag)
	if out == nil {
		return frame.MinWatermark, false
	}
	watermark = out.EventTime.Load()
	return watermark, out.Idle.Load() && watermark != frame.MaxWatermark
}

// Before is the node of the chain that feeds another one, which is not the head, and by which output.
func (s *Subtask) Before(node int) (from int, tag string) {
	for i, n := range s.Vertex.Nodes[:node] {
		for _, l := range n.Links {
			if l.To == node {
				return i, l.Tag
			}
		}
	}
	panic(fmt.Sprintf("taskmanager: node %d of %s is linked to nothing", node, s.Vertex.Name))
}

// Received is the event time of a node: the least watermark of its inputs, idle ones left out, and whether all are idle.
// The event time of a source is what it has sent.
func (s *Subtask) Received(node int) (watermark int64, idle bool) {
	inputs := s.EventTime()
	switch {
	case node > 0:
		return s.Sent(s.Before(node))
	case len(inputs) == 0:
		return s.Sent(0, "")
	}
	least, most, live := int64(frame.MaxWatermark), int64(frame.MinWatermark), 0
	idle = true
	for _, in := range inputs {
		w, quiet := in.Watermark(), in.Idle()
		if w == frame.MaxWatermark {
			continue
		}
		live++
		most = max(most, w)
		if !quiet {
			least, idle = min(least, w), false
		}
	}
	switch {
	case live == 0:
		return frame.MaxWatermark, false
	case idle:
		least = most
	}
	// An input that has resumed behind does not set the operator back.
	if sent, _ := s.Sent(0, ""); sent != frame.MaxWatermark {
		least = max(least, sent)
	}
	return least, idle
}

// Held is the input and channel that hold the event time of the task's head back; input is -1 if none does.
func (s *Subtask) Held() (input, channel int) {
	input, channel = -1, -1
	least := int64(math.MaxInt64)
	for i, in := range s.EventTime() {
		if w := in.Watermark(); w < least && !in.Idle() {
			if c := in.Held(); c >= 0 {
				input, channel, least = i, c, w
			}
		}
	}
	return input, channel
}

// gauge is a metric whose value is computed when it is read.
type gauge func() any

// Read implements process.Metric.
func (g gauge) Read() any { return g() }

// watermarkMetrics declares the metrics of event time of a node under Flink's names, and watermarkHeldBy: the sender that
// holds the watermark of the task's head back, "" if none does.
func (s *Subtask) watermarkMetrics(node int) {
	set := func(name string, read func() any) {
		s.Hosts[node].Metric(name, func() process.Metric { return gauge(read) })
	}
	ops := s.task.Operators()
	if ops[node].Output("") != nil {
		set("currentOutputWatermark", func() any { w, _ := s.Sent(node, ""); return w })
	}
	if _, source := ops[node].(operator.Source); source {
		return
	}
	set("currentInputWatermark", func() any { w, _ := s.Received(node); return w })
	if node > 0 {
		return
	}
	set("watermarkHeldBy", s.heldBy)
	if inputs := s.EventTime(); len(inputs) > 1 {
		for i, in := range inputs {
			set(fmt.Sprintf("currentInput%dWatermark", i+1), func() any { return in.Watermark() })
		}
	}
}

func (s *Subtask) heldBy() any {
	input, channel := s.Held()
	if input < 0 {
		return ""
	}
	return s.Feeds[input][channel].String()
}
