package taskmanager

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/co"
)

// played are the parts of a source whose subtasks send what they are told by events: a number is a watermark, "idle",
// "active" and "end" are themselves.
func played(subtasks int) hooks {
	told := make([][]string, subtasks) // of the subtask's goroutine only
	return hooks{
		event: func(rt *operator.Runtime, event []byte) error {
			told[rt.Subtask] = append(told[rt.Subtask], string(event))
			return nil
		},
		poll: func(rt *operator.Runtime, out *operator.Output) (operator.Status, error) {
			words := told[rt.Subtask]
			told[rt.Subtask] = nil
			for _, w := range words {
				m := frame.Mark{Kind: frame.Watermark}
				switch w {
				case "end":
					return operator.Done, nil
				case "idle":
					m.Kind = frame.Idle
				case "active":
					m.Kind = frame.Active
				default:
					m.Value, _ = strconv.ParseInt(w, 10, 64)
				}
				if err := out.Mark(m); err != nil {
					return operator.Nothing, err
				}
			}
			return operator.Nothing, nil
		},
	}
}

// joined is an operator with two inputs that drops their elements.
type joined struct{ co.Joint }

func newJoined(typ *frame.Type) operator.Operator {
	j := &joined{}
	drop := func(*frame.Run) error { return nil }
	j.Join(co.Inputs{First: typ, Second: typ}, typ, j, drop, drop)
	return j
}

// relay passes on what comes; it is no source, which a node always could be.
type relay struct{ operator.Unary }

func newRelay(typ *frame.Type) operator.Operator {
	return &relay{operator.Unary{In: typ, Out: operator.NewOutput(typ)}}
}

func (r *relay) Inputs() []operator.Input  { return []operator.Input{r} }
func (r *relay) Push(run *frame.Run) error { return r.Out.Push(run) }

// drain is the end of a stream: it has no output.
type drain struct{ relay }

func (*drain) Output(string) *operator.Output { return nil }
func (*drain) Push(*frame.Run) error          { return nil }
func (*drain) Mark(frame.Mark) error          { return nil }
func (d *drain) Inputs() []operator.Input     { return []operator.Input{d} }

// timeOf tells a time as a test writes it.
func timeOf(w int64) string {
	switch w {
	case frame.MinWatermark:
		return "-"
	case frame.MaxWatermark:
		return "end"
	}
	return strconv.FormatInt(w, 10)
}

// show tells the event time of a node: what it has received and sent.
func show(s *Subtask, node int) string {
	in, idle := s.Received(node)
	out, quiet := s.Sent(node, "")
	text := func(w int64, idle bool) string {
		if idle {
			return timeOf(w) + " idle"
		}
		return timeOf(w)
	}
	return text(in, idle) + " > " + text(out, quiet)
}

// find is the subtask of the vertex with a node of that name.
func find(t *testing.T, a *Attempt, name string, index int) (s *Subtask, node int) {
	t.Helper()
	for _, s := range a.Tasks {
		for i, n := range s.Vertex.Nodes {
			if n.Node.Name == name && s.Index == index {
				return s, i
			}
		}
	}
	t.Fatalf("no subtask %d of %s", index, name)
	return nil, 0
}

// A task that reads channels shows the watermark of its input, whether it is idle, and who holds it back.
func TestEventTimeOfATaskFollowsItsChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := newCluster(t)
		src := cl.add("source", 2, played(2), nil, nil)
		first := cl.add("first", 1, hooks{}, src, &graph.Partitioner{Strategy: graph.Global})
		second := cl.add("second", 1, hooks{}, first, nil)
		for _, n := range []*graph.Node{first, second} {
			n.New = func() operator.Operator { return newRelay(cl.typ) }
		}
		a, err := cl.deploy(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s, node := find(t, a, "second", 0)
		if from, tag := s.Before(node); from != 0 || tag != "" {
			t.Errorf("node %d follows %d, %q", node, from, tag)
		}
		for i, step := range []struct {
			subtask            int // of the source that says it
			word               string
			source, head, held string // what the source shows, what the head, and who holds the head
		}{
			{0, "5", "5 > 5", "- > -", "2"},
			{1, "9", "9 > 9", "5 > 5", "1"},
			{0, "idle", "5 idle > 5 idle", "9 > 9", "2"},
			{1, "idle", "9 idle > 9 idle", "9 idle > 9 idle", ""},
			{0, "active", "5 > 5", "9 > 9", "1"}, // it has resumed behind
			{0, "12", "12 > 12", "12 > 12", "1"},
			{1, "active", "9 > 9", "12 > 12", "1"}, // behind, and so not the one that others wait for
			{1, "15", "15 > 15", "12 > 12", "1"},
			{1, "idle", "15 idle > 15 idle", "12 > 12", "1"},
			{0, "end", "end > end", "15 idle > 15 idle", ""},
			{1, "end", "end > end", "end > end", ""}, // an end is not idle
		} {
			source, _ := find(t, a, "source", step.subtask)
			source.Event(0, []byte(step.word))
			synctest.Wait()
			if got := show(source, 0); got != step.source {
				t.Errorf("step %d, %s: the source shows %s, want %s", i, step.word, got, step.source)
			}
			if got := show(s, 0); got != step.head {
				t.Errorf("step %d, %s: the head shows %s, want %s", i, step.word, got, step.head)
			}
			if got := show(s, 1); got != step.head {
				t.Errorf("step %d, %s: the node behind the head shows %s, want %s", i, step.word, got, step.head)
			}
			held := ""
			if step.held != "" {
				held = `"Source: source" subtask ` + step.held
			}
			if got := s.Hosts[0].Metrics()["watermarkHeldBy"].Read(); got != held {
				t.Errorf("step %d, %s: the watermark is held by %v, want %s", i, step.word, got, held)
			}
		}
		cl.finish(a)
	})
}

// joinedCluster has the sources left and right, which play, and both, which has two inputs.
func joinedCluster(t *testing.T) (cl *cluster, both *graph.Node) {
	cl = newCluster(t)
	left, right := cl.add("left", 1, played(1), nil, nil), cl.add("right", 1, played(1), nil, nil)
	both = cl.add("both", 1, hooks{}, left, &graph.Partitioner{Strategy: graph.Global})
	both.Inputs = append(both.Inputs, graph.Edge{From: right, Input: 1, Partitioner: &graph.Partitioner{Strategy: graph.Global}})
	both.New = func() operator.Operator { return newJoined(cl.typ) }
	return cl, both
}

// An operator with two inputs shows the lesser of those that are not idle and have not ended, and never less than it has sent.
func TestEventTimeOfAnOperatorWithTwoInputs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl, _ := joinedCluster(t)
		a, err := cl.deploy(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s, _ := find(t, a, "both", 0)
		for i, step := range []struct {
			source, word string
			want         string
			input        int // which holds it back
			times        string
		}{
			{"left", "5", "- > -", 1, "5 -"},
			{"right", "3", "3 > 3", 1, "5 3"},
			{"right", "idle", "5 > 5", 0, "5 3"},
			{"left", "idle", "5 idle > 5 idle", -1, "5 3"},
			{"right", "active", "5 > 5", 1, "5 3"}, // what has been sent is not taken back
			{"left", "active", "5 > 5", 1, "5 3"},
			{"left", "8", "5 > 5", 1, "8 3"},
			{"right", "7", "7 > 7", 1, "8 7"},
			{"right", "end", "8 > 8", 0, "8 end"},
			{"left", "idle", "8 idle > 8 idle", -1, "8 end"},
			{"left", "end", "end > end", -1, "end end"},
		} {
			source, _ := find(t, a, step.source, 0)
			source.Event(0, []byte(step.word))
			synctest.Wait()
			input, channel := s.Held()
			if got := show(s, 0); got != step.want || input != step.input || channel != min(input, 0) {
				t.Errorf("step %d, %s %s: %s, held by channel %d of input %d; want %s, held by input %d",
					i, step.source, step.word, got, channel, input, step.want, step.input)
			}
			m := s.Hosts[0].Metrics()
			one, two := m["currentInput1Watermark"].Read().(int64), m["currentInput2Watermark"].Read().(int64)
			if got := timeOf(one) + " " + timeOf(two); got != step.times {
				t.Errorf("step %d, %s %s: the inputs are at %s, want %s", i, step.source, step.word, got, step.times)
			}
		}
		cl.finish(a)
	})
}

// What a node has of event time is what its metrics are about.
func TestMetricsOfEventTimeAreThoseThatANodeHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl, both := joinedCluster(t)
		sink := cl.add("sink", 1, hooks{}, both, nil)
		sink.Kind, sink.Out = graph.Sink, nil
		sink.New = func() operator.Operator { return &drain{relay{operator.Unary{In: cl.typ}}} }
		a, err := cl.deploy(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{
			"left": "currentOutputWatermark=7",
			"both": "currentInput1Watermark=7 currentInput2Watermark=6 currentInputWatermark=6 currentOutputWatermark=6 " +
				`watermarkHeldBy="Source: right" subtask 1`,
			"sink": "currentInputWatermark=6",
		} {
			for source, word := range map[string]string{"left": "7", "right": "6"} {
				s, _ := find(t, a, source, 0)
				s.Event(0, []byte(word))
			}
			synctest.Wait()
			s, node := find(t, a, name, 0)
			var got []string
			for metric, m := range s.Hosts[node].Metrics() {
				got = append(got, fmt.Sprintf("%s=%v", metric, m.Read()))
			}
			slices.Sort(got)
			if text := strings.Join(got, " "); text != want {
				t.Errorf("%s has %s, want %s", name, text, want)
			}
			if name == "sink" {
				if w, idle := s.Sent(node, ""); w != frame.MinWatermark || idle {
					t.Errorf("the sink has sent %d, %v", w, idle)
				}
				if f := s.Feeds[1][0]; f.Waiting() != 0 || f.Producer().Node.Name != "right" {
					t.Errorf("input 1 is fed by %s, %d frames wait", f, f.Waiting())
				}
			}
		}
		a.Cancel()
		cl.finish(a)
	})
}
