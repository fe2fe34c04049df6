package flotttest_test

import (
	"fmt"
	"testing"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/stream"
)

func numbersSource(env *stream.Env) *stream.Stream[int64] { return env.FromSequence(1, 4) }

func TestSourcesAreDrivenElementByElement(t *testing.T) {
	h := flotttest.NewSourceHarness(t, numbersSource)
	if !h.Next(2) {
		t.Error("the source has ended")
	}
	taken := h.Snapshot()
	if h.Next(3) || !h.Poll() {
		t.Error("the source has not ended")
	}
	h.Expect(t, "1", "2", "3", "4", fmt.Sprint("watermark ", flotttest.MaxWatermark), "end")

	again := flotttest.NewSourceHarness(t, numbersSource, flotttest.Restore(taken))
	again.Next(2)
	again.Expect(t, "3", "4")
}

func TestSinksAreDrivenElementByElement(t *testing.T) {
	disk := vfs.NewMem()
	open := func(opts ...flotttest.Option) *flotttest.SinkHarness[string] {
		return flotttest.NewSinkHarness(t, func(in *stream.Stream[string]) {
			in.Map(func(s string) string { return s + "!" }).
				CommitTo(filesink.New("/out", file.TextEncoding[string]("\n")).NoBuckets().RollOnCheckpoint().On(disk, nil))
		}, opts...)
	}
	read := func() string {
		b, err := vfs.ReadFile(disk, "/out/part-0-0")
		if err != nil {
			return "nothing"
		}
		return string(b)
	}
	h := open()
	h.ProcessElement("a", flotttest.NoTime)
	taken := h.Snapshot()
	if read() != "nothing" {
		t.Errorf("before the checkpoint is complete: %q", read())
	}
	h.Cancel()
	h.Close()
	open(flotttest.Restore(taken))
	if read() != "a!\n" {
		t.Errorf("restored: %q", read())
	}
}

func ExampleNewSourceHarness() {
	t := &testing.T{}
	h := flotttest.NewSourceHarness(t, func(env *stream.Env) *stream.Stream[int64] { return env.FromSequence(10, 12) })
	h.Next(1)
	fmt.Println(h.Values())
	h.Next(2)
	fmt.Println(h.Values())
	// Output:
	// [10]
	// [10 11 12]
}

func ExampleNewSinkHarness() {
	t := &testing.T{}
	got := flotttest.NewSink[int]()
	h := flotttest.NewSinkHarness(t, func(in *stream.Stream[int]) { in.SinkTo(got) })
	h.ProcessElement(7, flotttest.NoTime)
	h.EndInput()
	fmt.Println(got.Values())
	// Output: [7]
}
