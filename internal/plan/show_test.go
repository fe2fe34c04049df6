package plan

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/graph"
)

// shown is a program with everything that a plan shows: keys, attributes, a side output, a loop, two inputs.
func shown(t *testing.T) *program {
	p := newProgram(t)
	p.JobName, p.Parallelism = "readings", 2
	src := p.add(graph.Source, "lines")
	src.NonParallel = true
	src.Side = map[string]*frameType{"late": src.Out}
	split := p.add(graph.Operator, "Split", src)
	count := p.keyed("Count", split)
	count.UID, count.Attributes = "total", map[string]string{"state layout": "text", "windows": "sliced"}
	count.Description = "counts <words>"
	count.Inputs = append(count.Inputs, graph.Edge{From: src, Tag: "late", Input: 1, Partitioner: by(graph.Broadcast)})
	head := p.add(graph.IterationHead, "Iterate", count)
	none := time.Duration(0)
	head.BufferTimeout = &none
	tail := p.add(graph.IterationTail, "Feedback", head)
	head.Inputs = append(head.Inputs, graph.Edge{From: tail, Feedback: true})
	p.add(graph.Sink, "print", head)
	return p
}

const shownText = `job "readings": vertices 5, subtasks 9, slots 2 (default 2)

[1] Source: lines
    parallelism 1, max parallelism 128, slot group "default"
    - Source: lines  id ID0

[2] Split
    parallelism 2, max parallelism 128, slot group "default"
    <- [1] Source: lines, REBALANCE, elements int, pipelined_bounded, sent after 100ms
    - Split  id ID1

[3] Count
    parallelism 2, max parallelism 128, slot group "default"
    <- [2] Split, HASH by string, elements int, pipelined_bounded, sent after 100ms
    <- [1] Source: lines side output "late", BROADCAST, input 1, elements int, pipelined_bounded, sent after 100ms
    - Count  id ID2, uid "total", key of input 0: string, state layout: text, windows: sliced

[4] Iterate -> Sink: print
    parallelism 2, max parallelism 128, slot group "default", co-location "iteration ID3"
    <- [3] Count, FORWARD, elements int, pipelined_bounded, sent after 100ms
    <- [5] Feedback, FORWARD, feedback, elements int, pipelined_bounded, sent after 100ms
    - Iterate      id ID3
    - Sink: print  id ID5

[5] Feedback
    parallelism 2, max parallelism 128, slot group "default", co-location "iteration ID3"
    <- [4] Iterate, FORWARD, elements int, pipelined_bounded, sent at once
    - Feedback  id ID4
`

// mask puts ID0, ID1 ... in place of ids, which are not what these tests are about.
func mask(t *testing.T, g *graph.Graph, s string) string {
	t.Helper()
	ids, err := g.IDs()
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range g.Nodes {
		s = strings.ReplaceAll(s, ids[n].String(), "ID"+string(rune('0'+i)))
	}
	return s
}

func TestPlanAsText(t *testing.T) {
	p := shown(t)
	if have := mask(t, p.Graph, p.build().String()); have != shownText {
		t.Errorf("the plan reads\n%s\nwant\n%s", have, shownText)
	}
}

func TestPlanShowsKeyGroupsThatDifferInAChain(t *testing.T) {
	p := newProgram(t)
	count := p.keyed("Count", p.add(graph.Source, "src"))
	count.MaxParallelism = 256
	p.add(graph.Sink, "out", count).MaxParallelism = 64
	text := mask(t, p.Graph, p.build().String())
	for _, line := range []string{
		"parallelism 1, max parallelism 64,", "- Count      id ID1, key of input 0: string, max parallelism 256\n", "- Sink: out  id ID2\n",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the plan does not say %q:\n%s", line, text)
		}
	}
	count.MaxParallelism = 64
	p.Nodes[2].MaxParallelism = 32
	p.Nodes[1].Key[0] = nil
	p.Nodes[1].Inputs[0].Partitioner.Key = stringKey(t)
	if text = p.build().String(); strings.Contains(text, "max parallelism 64") {
		t.Errorf("key groups are shown of a node without keys:\n%s", text)
	}
}

func TestTimeoutsAsText(t *testing.T) {
	for d, want := range map[time.Duration]string{-1: "sent when full", 0: "sent at once", time.Second: "sent after 1s"} {
		equal(t, "text", timeoutText(d), want)
	}
}

const shownStreamPlan = `{"nodes":[` +
	`{"id":1,"type":"Source: lines","pact":"Data Source","contents":"Source: lines","parallelism":1},` +
	`{"id":2,"type":"Split","pact":"Operator","contents":"Split","parallelism":2,"predecessors":[{"id":1,"ship_strategy":"REBALANCE","side":"second"}]},` +
	`{"id":3,"type":"Count","pact":"Operator","contents":"counts \u003cwords\u003e","parallelism":2,"predecessors":[{"id":2,"ship_strategy":"HASH","side":"second"},{"id":1,"ship_strategy":"BROADCAST","side":"second"}]},` +
	`{"id":4,"type":"Iterate","pact":"Operator","contents":"Iterate","parallelism":2,"predecessors":[{"id":3,"ship_strategy":"FORWARD","side":"second"},{"id":5,"ship_strategy":"FORWARD","side":"second","feedback":true}]},` +
	`{"id":5,"type":"Feedback","pact":"Operator","contents":"Feedback","parallelism":2,"predecessors":[{"id":4,"ship_strategy":"FORWARD","side":"second"}]},` +
	`{"id":6,"type":"Sink: print","pact":"Data Sink","contents":"Sink: print","parallelism":2,"predecessors":[{"id":4,"ship_strategy":"FORWARD","side":"second"}]}]}`

func TestStreamPlanHasFlinksShape(t *testing.T) {
	p := shown(t)
	p.build()
	have, err := json.Marshal(NewStreamPlan(p.Graph))
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != shownStreamPlan {
		t.Errorf("the stream plan is\n%s\nwant\n%s", have, shownStreamPlan)
	}
}

const shownPlan = `{"jid":"42","name":"readings","type":"STREAMING","nodes":[` +
	`{"id":"ID0","parallelism":1,"operator":"","operator_strategy":"","description":"Source: lines","optimizer_properties":{}},` +
	`{"id":"ID1","parallelism":2,"operator":"","operator_strategy":"","description":"Split","inputs":[{"num":0,"id":"ID0","ship_strategy":"REBALANCE","exchange":"pipelined_bounded"}],"optimizer_properties":{}},` +
	`{"id":"ID2","parallelism":2,"operator":"","operator_strategy":"","description":"counts \u0026lt;words\u0026gt;","inputs":[{"num":0,"id":"ID1","ship_strategy":"HASH","exchange":"pipelined_bounded"},{"num":1,"id":"ID0","ship_strategy":"BROADCAST","exchange":"pipelined_bounded"}],"optimizer_properties":{}},` +
	`{"id":"ID3","parallelism":2,"operator":"","operator_strategy":"","description":"Iterate -\u0026gt; Sink: print","inputs":[{"num":0,"id":"ID2","ship_strategy":"FORWARD","exchange":"pipelined_bounded"},{"num":1,"id":"ID4","ship_strategy":"FORWARD","exchange":"pipelined_bounded","feedback":true}],"optimizer_properties":{}},` +
	`{"id":"ID4","parallelism":2,"operator":"","operator_strategy":"","description":"Feedback","inputs":[{"num":0,"id":"ID3","ship_strategy":"FORWARD","exchange":"pipelined_bounded"}],"optimizer_properties":{}}]}`

func TestJobPlanHasTheShapeOfREST(t *testing.T) {
	p := shown(t)
	have, err := json.Marshal(p.build().Plan("42"))
	if err != nil {
		t.Fatal(err)
	}
	if got := mask(t, p.Graph, string(have)); got != shownPlan {
		t.Errorf("the job plan is\n%s\nwant\n%s", got, shownPlan)
	}
}
