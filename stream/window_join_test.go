package stream_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/window"
)

func TestLateElementsOfWindowedJoinsAreSideOutputs(t *testing.T) {
	tags := [2]process.OutputTag[string]{process.NewOutputTag[string]("late left"), process.NewOutputTag[string]("late right")}
	first := func(s string) byte { return s[0] }
	for name, build := range map[string]func(a, b *stream.Stream[string]) *stream.Stream[string]{
		"join": func(a, b *stream.Stream[string]) *stream.Stream[string] {
			return a.Join(b).Where(first).EqualTo(first).Window(window.Tumbling(10 * ms)).AllowedLateness(5 * ms).
				SideOutputLeftLateData(tags[0]).SideOutputRightLateData(tags[1]).
				Apply(func(a, b string) string { return a + "+" + b })
		},
		"co-group": func(a, b *stream.Stream[string]) *stream.Stream[string] {
			return a.CoGroup(b).Where(first).EqualTo(first).Window(window.Tumbling(10 * ms)).AllowedLateness(5 * ms).
				SideOutputLeftLateData(tags[0]).SideOutputRightLateData(tags[1]).
				Apply(func(_ window.Info[byte, window.Time], as, bs []string, emit func(string)) {
					for _, a := range as {
						for _, b := range bs {
							emit(a + "+" + b)
						}
					}
				})
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := flotttest.NewTwoInputHarness(t, build, flotttest.WithSideOutput(tags[0]), flotttest.WithSideOutput(tags[1]))
			h.First.ProcessElement("a1", 8)
			h.First.ProcessWatermark(14)
			h.Second.ProcessElement("a2", 9)
			h.Second.ProcessWatermark(13)
			h.First.ProcessElement("a3", 7) // late and allowed: it joins with all that the window holds
			h.Second.ProcessWatermark(14)   // the window is gone
			h.First.ProcessElement("a4", 6)
			h.Second.ProcessElement("a5", 5)
			var got []string
			for _, e := range h.Elements() {
				got = append(got, e.String())
			}
			slices.Sort(got)
			if want := []string{"a1+a2@9", "a1+a2@9", "a3+a2@9"}; !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			for i, want := range []string{"[a4@6]", "[a5@5]"} {
				if late := fmt.Sprint(h.SideOutput(tags[i])); late != want {
					t.Errorf("side output %q holds %s, want %s", tags[i].Name(), late, want)
				}
			}
			if n := h.Metric("numLateRecordsDropped"); n != int64(0) {
				t.Errorf("%v elements are counted as dropped", n)
			}
		})
	}
}
