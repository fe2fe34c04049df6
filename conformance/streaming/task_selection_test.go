package streaming_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/co"
	"github.com/flott-dev/flott/process"
)

type selectionCase struct {
	conformance.Head
	Kind        string   `json:"kind"`
	Selection   string   `json:"selection"`
	AllAtStart  bool     `json:"all_input_available_before_start"`
	Input1      []string `json:"input1"`
	Input2      []int64  `json:"input2"`
	Expect      []string `json:"expect_values"`
	ExpectError bool     `json:"expect_error"`
	Order       string   `json:"order"`
}

// runSelection lets a function choose its input. What it reads may not depend on which input's elements come first, or on how
// they are cut into frames.
func runSelection(t *testing.T, c conformance.Case, w conformance.Way) {
	var v selectionCase
	c.Decode(t, &v)
	for name, order := range map[string]func(in [2][]arrival) []arrival{
		"in turn": inTurn,
		"first":   func(in [2][]arrival) []arrival { return append(slices.Clone(in[0]), in[1]...) },
		"second":  func(in [2][]arrival) []arrival { return append(slices.Clone(in[1]), in[0]...) },
	} {
		got, err := v.play(t, order([2][]arrival{arrivals(0, v.Input1, w), arrivals(1, v.Input2, w)}))
		switch {
		case v.ExpectError:
			if err == nil || errors.Is(err, exchange.ErrCancelled) || !strings.Contains(err.Error(), "has ended") {
				t.Errorf("%s: error %v", name, err)
			}
			continue
		case err != nil:
			t.Fatalf("%s: %v", name, err)
		case v.Order == "any":
			slices.Sort(got)
			slices.Sort(v.Expect)
		}
		if !slices.Equal(got, v.Expect) {
			t.Errorf("%s: got %q, want %q", name, got, v.Expect)
		}
	}
}

// arrival is a frame that comes on an input.
type arrival struct {
	input int
	fill  func(f *frame.Frame)
}

// arrivals are the frames of an input, cut as the way says; the end comes in one of its own.
func arrivals[T any](input int, values []T, w conformance.Way) (out []arrival) {
	for _, n := range w.Cut(len(values)) {
		part := values[:n]
		values = values[n:]
		out = append(out, arrival{input, func(f *frame.Frame) {
			for _, x := range part {
				frame.Add(&f.Column, x, frame.NoTime)
			}
		}})
	}
	return append(out, arrival{input, func(f *frame.Frame) { f.AddMark(frame.Mark{Kind: frame.End}) }})
}

func inTurn(in [2][]arrival) (out []arrival) {
	for i := range max(len(in[0]), len(in[1])) {
		for _, side := range in {
			if i < len(side) {
				out = append(out, side[i])
			}
		}
	}
	return out
}

// play runs a task on frames that come whenever it has nothing to read, or all before it starts.
func (v *selectionCase) play(t *testing.T, frames []arrival) (got []string, err error) {
	t.Helper()
	text, numbers := typeOf[string](t), typeOf[int64](t)
	b := newTaskBench(t, []*frame.Type{text, numbers}, 1, chained{"selector", text, func() operator.Operator {
		return co.Process(co.Inputs{First: text, Second: numbers}, text, nil,
			func(*process.Runtime) process.CoFunction[string, int64, string] { return v.function(t) })
	}})
	next := func() bool {
		if len(frames) == 0 {
			return false
		}
		b.send(frames[0].input, 0, frames[0].fill)
		frames = frames[1:]
		return true
	}
	for v.AllAtStart && next() {
	}
	err = b.run(next)
	for _, s := range b.out.take() {
		if text, ok := strings.CutPrefix(s, `"`); ok {
			got = append(got, strings.TrimSuffix(text, `"`))
		}
	}
	return got, err
}

// function is the function of that selection.
func (v *selectionCase) function(t *testing.T) process.CoFunction[string, int64, string] {
	t.Helper()
	f := &selective{left: [2]int{len(v.Input1), len(v.Input2)}}
	switch v.Selection {
	case "all":
		f.choose = func() process.InputSelection { return process.SelectAll }
	case "always_first":
		f.choose = func() process.InputSelection { return process.SelectFirst }
	case "first_then_second":
		f.choose = f.firstThenSecond
	case "alternate_after_2":
		f.choose = f.alternate
	default:
		t.Fatalf("selection %q is unknown", v.Selection)
	}
	return f
}

// selective names the input of each element.
type selective struct {
	choose func() process.InputSelection
	left   [2]int // elements that are still to come
	ended  [2]bool
	now    int // the input that is read
	inRow  int
}

func (f *selective) NextSelection() process.InputSelection { return f.choose() }

func (f *selective) firstThenSecond() process.InputSelection {
	if f.ended[0] {
		return process.SelectSecond
	}
	return process.SelectFirst
}

func (f *selective) alternate() process.InputSelection {
	if f.ended[f.now] || f.inRow == 2 && f.left[1-f.now] > 0 {
		f.now, f.inRow = 1-f.now, 0
	}
	return process.SelectFirst << f.now
}

func (f *selective) note(input int) {
	f.left[input]--
	f.inRow++
}

func (f *selective) ProcessElement1(_ *process.Context, x string, out *process.Collector[string]) error {
	f.note(0)
	out.Collect("[Operator0-1]: " + x)
	return nil
}

func (f *selective) ProcessElement2(_ *process.Context, x int64, out *process.Collector[string]) error {
	f.note(1)
	out.Collect(fmt.Sprintf("[Operator0-2]: %d", x))
	return nil
}

func (f *selective) EndInput1(*process.Collector[string]) error {
	f.ended[0] = true
	return nil
}

func (f *selective) EndInput2(*process.Collector[string]) error {
	f.ended[1] = true
	return nil
}
