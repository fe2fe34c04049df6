package graph

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
)

func TestFingerprintsOfOneProgramAreEqual(t *testing.T) {
	a, b := diamond(t).g, diamond(t).g
	b.HashSeed = 99 // drawn for each submission, not part of the program
	if err := a.Fingerprint().Difference(b.Fingerprint(), "worker 1"); err != nil {
		t.Error(err)
	}
	if a.Fingerprint().Sum() != b.Fingerprint().Sum() {
		t.Error("the sums differ")
	}
	wire, err := json.Marshal(a.Fingerprint())
	if err != nil {
		t.Fatal(err)
	}
	var back Fingerprint
	if err := json.Unmarshal(wire, &back); err != nil {
		t.Fatal(err)
	}
	if back.Sum() != a.Fingerprint().Sum() || a.Fingerprint().Difference(back, "itself") != nil {
		t.Error("a fingerprint changes on the wire")
	}
}

func TestFingerprintNamesTheFirstDifference(t *testing.T) {
	zero := time.Duration(0)
	for name, c := range map[string]struct {
		change func(*Graph)
		want   []string
	}{
		"parallelism":  {func(g *Graph) { g.Nodes[3].Parallelism = 4; g.Nodes[4].Name = "x" }, []string{`node 4, operator "map2" (main.go:40)`, "parallelism=-1 here", "parallelism=4 in worker 1"}},
		"name":         {func(g *Graph) { g.Nodes[1].Name = "x" }, []string{"node 2", `name="map1" here, name="x" in worker 1`}},
		"place":        {func(g *Graph) { g.Nodes[1].Caller = "b.go:1" }, []string{"place=main.go:20 here"}},
		"description":  {func(g *Graph) { g.Nodes[1].Description = "b" }, []string{"node 2", "description"}},
		"uid":          {func(g *Graph) { g.Nodes[1].UID = "b" }, []string{"node 2", "UID"}},
		"uid hash":     {func(g *Graph) { g.Nodes[1].UIDHash = "b" }, []string{"node 2", "UIDHash"}},
		"non-parallel": {func(g *Graph) { g.Nodes[1].NonParallel = true }, []string{"node 2"}},
		"max":          {func(g *Graph) { g.Nodes[1].MaxParallelism = 7 }, []string{"max parallelism=7"}},
		"chaining":     {func(g *Graph) { g.Nodes[1].Chaining = Never }, []string{"chaining=never"}},
		"slot group":   {func(g *Graph) { g.Nodes[1].SlotGroup = "g" }, []string{"slot group"}},
		"co-location":  {func(g *Graph) { g.Nodes[1].CoLocation = "g" }, []string{"co-location"}},
		"timeout":      {func(g *Graph) { g.Nodes[1].BufferTimeout = &zero }, []string{"buffer timeout=unset here, buffer timeout=0s"}},
		"stateful":     {func(g *Graph) { g.Nodes[1].Stateful = true }, []string{"stateful=true"}},
		"yielding":     {func(g *Graph) { g.Nodes[1].Yielding = true }, []string{"yielding=true"}},
		"aligned":      {func(g *Graph) { g.Nodes[1].AlignedInputs = true }, []string{"aligned inputs=true"}},
		"timestamps":   {func(g *Graph) { g.Nodes[1].Timestamps = TimestampsNone }, []string{"timestamps=kept here, timestamps=none"}},
		"watermarks":   {func(g *Graph) { g.Nodes[1].MakesWatermarks = true }, []string{"makes watermarks=true"}},
		"event time":   {func(g *Graph) { g.Nodes[1].NeedsTimestamps = true }, []string{"needs timestamps=true"}},
		"type":         {func(g *Graph) { g.Nodes[1].Out = typeOf[string](t) }, []string{"output=int here, output=string"}},
		"key":          {func(g *Graph) { g.Nodes[1].Key = []*Key{keyOf[string](t)} }, []string{"key of input 0=string"}},
		"edge":         {func(g *Graph) { g.Nodes[3].Inputs[0].From = g.Nodes[1] }, []string{"node 1, tag", "node 2, tag"}},
		"exchange":     {func(g *Graph) { g.Nodes[3].Inputs[0].Exchange = Batch }, []string{"exchange batch"}},
		"strategy":     {func(g *Graph) { g.Nodes[3].Inputs[0].Partitioner = &Partitioner{Strategy: Shuffle, Seed: 5} }, []string{"SHUFFLE by nothing, seed 5"}},
		"feedback":     {func(g *Graph) { g.Nodes[3].Inputs[0].Feedback = true }, []string{"exchange undefined here", "exchange undefined, feedback in worker 1"}},
		"coordinator":  {func(g *Graph) { g.Nodes[0].NewCoordinator = func() operator.Coordinator { return nil } }, []string{"coordinator=true"}},
		"attribute":    {func(g *Graph) { g.Nodes[1].Attributes = map[string]string{"layout": "text"} }, []string{`attribute "layout"="text"`}},
		"more":         {func(g *Graph) { g.Nodes = append(g.Nodes, &Node{Kind: Source, Name: "new"}) }, []string{`node 6, source "new" of worker 1`}},
		"fewer":        {func(g *Graph) { g.Nodes = g.Nodes[:4] }, []string{`node 5, sink "sink2" (main.go:50)`, "worker 1 has 4 nodes only"}},
		"setting":      {func(g *Graph) { g.ChainingEnabled = false }, []string{"settings", "chaining=false in worker 1"}},
		"job name":     {func(g *Graph) { g.JobName = "other" }, []string{"settings", `job="other"`}},
		"parameters":   {func(g *Graph) { g.GlobalParameters = map[string]string{"a": "b"} }, []string{"settings", `nothing here, parameter "a"="b"`}},
		"side output": {
			func(g *Graph) { g.Nodes[1].Side = map[string]*frame.Type{"late": typeOf[int](t)} },
			[]string{`side output "late"=int`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := diamond(t).g, diamond(t).g
			c.change(theirs)
			err := ours.Fingerprint().Difference(theirs.Fingerprint(), "worker 1")
			if err == nil {
				t.Fatal("no difference is seen")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
			if ours.Fingerprint().Sum() == theirs.Fingerprint().Sum() {
				t.Error("the sums are equal")
			}
		})
	}
}
