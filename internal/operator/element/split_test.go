package element

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
)

// names of a number: one that nobody selects, a double, none.
func names(x int64) []string {
	switch x % 4 {
	case 0:
		return []string{"even", "four", "even"}
	case 2:
		return []string{"even", "unknown"}
	case 1:
		return []string{"odd"}
	}
	return nil
}

func TestSplitGivesElementsToEverySelectionOfOneOfTheirNames(t *testing.T) {
	typ := kit.TypeOf[int64](t)
	selections := []Selection{
		{Tag: "even", Names: []string{"even"}},
		{Tag: "odd or four", Names: []string{"odd", "four", "even"}},
		{Tag: "four", Names: []string{"four"}},
		{Tag: "nothing", Names: []string{"nothing"}},
	}
	wants := map[string]func(x int64) bool{
		"even": func(x int64) bool { return x%2 == 0 }, "odd or four": func(x int64) bool { return x%4 != 3 },
		"four": func(x int64) bool { return x%4 == 0 }, "nothing": func(int64) bool { return false },
	}
	for _, n := range lengths() {
		op := Split(typ, selections, names)
		rt := kit.Runtime()
		outs := map[string]*kit.Recorder{}
		for _, s := range selections {
			outs[s.Tag] = kit.Record(t, op.Output(s.Tag), rt)
		}
		whole := kit.OpenAt(t, op, rt)
		r := kit.Run(t, kit.Numbers(n), kit.Numbers(n)...)
		untouched := kit.Share(t, r)
		kit.Must(t, op.Inputs()[0].Push(r))
		untouched()
		kit.Must(t, op.Inputs()[0].Mark(kit.End()))
		for tag, in := range wants {
			var want []string
			for x := range int64(n) {
				if in(x) {
					want = append(want, fmt.Sprintf("%d@%d", x, x))
				}
			}
			if want = append(want, "end"); !slices.Equal(outs[tag].Got, want) {
				t.Errorf("run of %d: selection %s got %.200q, want %.200q", n, tag, outs[tag].Got, want)
			}
		}
		whole.Want(t, "end")
	}
	if Split(typ, selections, names).Output("unknown") != nil {
		t.Error("a selection that was not asked for")
	}
}

func TestSplitEndsAtErrorsOfASelectionsConsumer(t *testing.T) {
	typ, own := kit.TypeOf[int64](t), errors.New("own")
	op := Split(typ, []Selection{{Tag: "a", Names: []string{"odd"}}, {Tag: "b", Names: []string{"odd"}}}, names)
	rt := kit.Runtime()
	a, b := kit.Record(t, op.Output("a"), rt), kit.Record(t, op.Output("b"), rt)
	kit.OpenAt(t, op, rt)
	a.Fail = own
	if err := op.Inputs()[0].Push(kit.Run(t, nil, kit.Numbers(3*frame.MaxLen)...)); !errors.Is(err, own) {
		t.Errorf("error %v", err)
	}
	if len(a.Runs) != 1 || len(b.Runs) != 0 {
		t.Errorf("%d and %d runs", len(a.Runs), len(b.Runs))
	}
}
