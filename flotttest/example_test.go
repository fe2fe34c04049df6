package flotttest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/stream"
)

// A harness is made of the part of a program that is to be tested.
func ExampleNewHarness() {
	test := func(t *testing.T) {
		h := flotttest.NewHarness(t, func(in *stream.Stream[string]) *stream.Stream[int] {
			return in.FlatMapSeq(strings.FieldsSeq).Map(func(w string) int { return len(w) })
		})
		h.ProcessElement("to be or not", 10)
		h.ProcessWatermark(10)
		h.Expect(t, "2@10", "2@10", "2@10", "3@10", "watermark 10")
	}
	_ = test
}

// A whole job runs in an environment; Run collects what comes out.
func ExampleRun() {
	test := func(t *testing.T) {
		got := flotttest.Run(t, func(env *stream.Env) *stream.Stream[string] {
			return env.FromElements("b", "a").Map(strings.ToUpper)
		})
		flotttest.Same(t, got, []string{"A", "B"})
	}
	_ = test
}

// Elements with timestamps print as value@time.
func ExampleAt() {
	fmt.Println(flotttest.At("x", 12), flotttest.Untimed("y"))
	// Output: x@12 y
}
