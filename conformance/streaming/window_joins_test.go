package streaming_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/window"
)

type windowJoinCase struct {
	conformance.Head
	Kind   string `json:"kind"`
	Window struct {
		Kind   string `json:"kind"`
		Size   int64  `json:"size_ms"`
		Slide  int64  `json:"slide_ms"`
		Offset int64  `json:"offset_ms"`
		Gap    int64  `json:"gap_ms"`
	} `json:"window"`
	Key       string `json:"key"`
	Timestamp string `json:"timestamp"`
	Left      []any  `json:"left"`
	Right     []any  `json:"right"`
	Pairs     []struct {
		Left  any `json:"left"`
		Right any `json:"right"`
	} `json:"expect_pairs"`
	Groups []struct {
		Key    any   `json:"key"`
		Window any   `json:"window"`
		Left   []any `json:"left"`
		Right  []any `json:"right"`
	} `json:"expect_groups"`
	Order string `json:"order"`
}

// joined is an element of a window join: a tuple as it is in the vector.
type joined struct {
	Key  string
	Text string
	TS   int64
}

func (j joined) key() string { return j.Key }

func (j joined) time() time.Time { return time.UnixMilli(j.TS) }

func tupleText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// elements reads an input.
func (v *windowJoinCase) elements(t *testing.T, tuples []any) []joined {
	t.Helper()
	if v.Key != "first_field" || v.Timestamp != "last_field" {
		t.Fatalf("key %q and timestamp %q are unknown", v.Key, v.Timestamp)
	}
	var out []joined
	for _, x := range tuples {
		fields := x.([]any)
		out = append(out, joined{fmt.Sprint(fields[0]), tupleText(x), int64(fields[len(fields)-1].(float64))})
	}
	return out
}

func (v *windowJoinCase) assigner(t *testing.T) window.Assigner[window.Time] {
	t.Helper()
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	switch v.Window.Kind {
	case "tumbling_event_time":
		return window.Tumbling(ms(v.Window.Size)).Offset(ms(v.Window.Offset))
	case "sliding_event_time":
		return window.Sliding(ms(v.Window.Size), ms(v.Window.Slide)).Offset(ms(v.Window.Offset))
	case "session_event_time":
		return window.Session(ms(v.Window.Gap))
	}
	t.Fatalf("window %+v is unknown", v.Window)
	return nil
}

// inputs makes the two streams, in every layout of the job that variants have.
func (v *windowJoinCase) inputs(t *testing.T, env *stream.Env) (left, right *stream.Stream[joined]) {
	from := func(tuples []any) *stream.Stream[joined] {
		return env.FromSlice(v.elements(t, tuples)).AssignAscendingTimestamps(joined.time)
	}
	return from(v.Left), from(v.Right)
}

func runWindowJoin(t *testing.T, c conformance.Case) {
	var v windowJoinCase
	c.Decode(t, &v)
	var want []string
	for _, p := range v.Pairs {
		want = append(want, tupleText(p.Left)+" "+tupleText(p.Right))
	}
	flotttest.Variants(t, func(t *testing.T, env *stream.Env) {
		left, right := v.inputs(t, env)
		got := flotttest.Collect(t, env, left.Join(right).Where(joined.key).EqualTo(joined.key).Window(v.assigner(t)).
			Apply(func(a, b joined) string { return a.Text + " " + b.Text }))
		compare(t, 0, "pairs", valuesOf(got), want, true)
	})
}

func runWindowCoGroup(t *testing.T, c conformance.Case) {
	var v windowJoinCase
	c.Decode(t, &v)
	var want []string
	for _, g := range v.Groups {
		want = append(want, groupText(allTexts(g.Left), allTexts(g.Right)))
	}
	flotttest.Variants(t, func(t *testing.T, env *stream.Env) {
		left, right := v.inputs(t, env)
		texts := func(js []joined) (out []string) {
			for _, j := range js {
				out = append(out, j.Text)
			}
			return out
		}
		got := flotttest.Collect(t, env, left.CoGroup(right).Where(joined.key).EqualTo(joined.key).Window(v.assigner(t)).
			Apply(func(_ window.Info[string, window.Time], as, bs []joined, emit func(string)) {
				emit(groupText(texts(as), texts(bs)))
			}))
		compare(t, 0, "groups", valuesOf(got), want, true)
	})
}

func allTexts(vs []any) (out []string) {
	for _, v := range vs {
		out = append(out, tupleText(v))
	}
	return out
}

func groupText(left, right []string) string {
	return strings.Join(left, ",") + " | " + strings.Join(right, ",")
}

func valuesOf(es []flotttest.Element[string]) []string {
	out := []string{}
	for _, e := range es {
		out = append(out, e.Value)
	}
	slices.Sort(out)
	return out
}
