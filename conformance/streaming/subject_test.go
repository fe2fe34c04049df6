package streaming_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
)

// subject is an operator under test whose elements come as JSON.
type subject interface {
	push(input int, elements []rawElement) error // as one run
	watermark(input int, ms int64) error
	clock(ms int64) error
	output() []string // since the start or the last clear
	clear()
	control() *flotttest.Control
	// again is the same operator anew, with more options.
	again(t *testing.T, more ...flotttest.Option) subject
}

// restarted is a subject after a snapshot and a restore.
func restarted(t *testing.T, s subject) subject {
	t.Helper()
	taken := s.control().Snapshot()
	s.control().Close()
	return s.again(t, flotttest.Restore(taken))
}

// rescaled are the new subtasks after a snapshot of all old ones.
func rescaled(t *testing.T, old []subject, parallelism int) []subject {
	t.Helper()
	var taken []*flotttest.Snapshot
	for _, s := range old {
		taken = append(taken, s.control().Snapshot())
		s.control().Close()
	}
	fresh := make([]subject, parallelism)
	for i := range fresh {
		fresh[i] = old[0].again(t, flotttest.WithSubtask(i, parallelism), flotttest.Restore(taken...))
	}
	return fresh
}

type rawElement struct {
	value json.RawMessage
	ts    int64
}

// tuple reads a JSON array into the targets.
func tuple(b []byte, to ...any) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	if len(parts) != len(to) {
		return fmt.Errorf("read a tuple of %d fields: %s", len(to), b)
	}
	for i, p := range parts {
		if err := json.Unmarshal(p, to[i]); err != nil {
			return err
		}
	}
	return nil
}

// read makes elements of their JSON.
func read[T any](elements []rawElement) ([]flotttest.Element[T], error) {
	var out []flotttest.Element[T]
	for _, e := range elements {
		var v T
		if err := json.Unmarshal(e.value, &v); err != nil {
			return nil, fmt.Errorf("read element %s: %w", e.value, err)
		}
		out = append(out, flotttest.Element[T]{Value: v, Time: e.ts})
	}
	return out, nil
}

// eventTexts are the texts of events as conformance.Entry has them.
func eventTexts[R any](events []flotttest.Event[R], text func(R) string) []string {
	out := []string{}
	for _, e := range events {
		switch {
		case e.Kind == flotttest.IsEnd:
		case e.Kind == flotttest.IsElement && e.Element.Time == flotttest.NoTime:
			out = append(out, text(e.Element.Value))
		case e.Kind == flotttest.IsElement:
			out = append(out, fmt.Sprintf("%s@%d", text(e.Element.Value), e.Element.Time))
		default:
			out = append(out, e.String())
		}
	}
	return out
}

func jsonText[R any](v R) string { return conformance.Text(v) }

// one is a subject with one input.
type one[T, R any] struct {
	*flotttest.Harness[T, R]
	read func([]rawElement) ([]flotttest.Element[T], error)
	text func(R) string
	open func(t *testing.T, more []flotttest.Option) *flotttest.Harness[T, R]
}

func newOne[T, R any](t *testing.T, opts []flotttest.Option, build func(in *stream.Stream[T]) *stream.Stream[R]) *one[T, R] {
	t.Helper()
	open := func(t *testing.T, more []flotttest.Option) *flotttest.Harness[T, R] {
		t.Helper()
		return flotttest.NewHarness(t, build, slices.Concat(opts, more)...)
	}
	return &one[T, R]{open(t, nil), read[T], jsonText[R], open}
}

func (s *one[T, R]) again(t *testing.T, more ...flotttest.Option) subject {
	t.Helper()
	return &one[T, R]{s.open(t, more), s.read, s.text, s.open}
}

func (s *one[T, R]) push(input int, elements []rawElement) error {
	if input > 1 {
		return fmt.Errorf("an element for input %d", input)
	}
	xs, err := s.read(elements)
	if err != nil {
		return err
	}
	return s.TryProcessElements(xs...)
}

func (s *one[T, R]) watermark(_ int, ms int64) error { return s.TryProcessWatermark(ms) }

func (s *one[T, R]) clock(ms int64) error { return s.TrySetProcessingTime(ms) }

func (s *one[T, R]) output() []string { return eventTexts(s.Output(), s.text) }

func (s *one[T, R]) clear() { s.Clear() }

// two is a subject with two inputs.
type two[A, B, R any] struct {
	*flotttest.TwoInputHarness[A, B, R]
	open func(t *testing.T, more []flotttest.Option) *flotttest.TwoInputHarness[A, B, R]
}

func newTwo[A, B, R any](t *testing.T, opts []flotttest.Option, build func(a *stream.Stream[A], b *stream.Stream[B]) *stream.Stream[R]) *two[A, B, R] {
	t.Helper()
	open := func(t *testing.T, more []flotttest.Option) *flotttest.TwoInputHarness[A, B, R] {
		t.Helper()
		return flotttest.NewTwoInputHarness(t, build, slices.Concat(opts, more)...)
	}
	return &two[A, B, R]{open(t, nil), open}
}

func (s *two[A, B, R]) again(t *testing.T, more ...flotttest.Option) subject {
	t.Helper()
	return &two[A, B, R]{s.open(t, more), s.open}
}

func (s *two[A, B, R]) push(input int, elements []rawElement) error {
	switch input {
	case 1:
		xs, err := read[A](elements)
		if err != nil {
			return err
		}
		return s.First.TryProcessElements(xs...)
	case 2:
		xs, err := read[B](elements)
		if err != nil {
			return err
		}
		return s.Second.TryProcessElements(xs...)
	}
	return fmt.Errorf("an element for input %d", input)
}

func (s *two[A, B, R]) watermark(input int, ms int64) error {
	switch input {
	case 1:
		return s.First.TryProcessWatermark(ms)
	case 2:
		return s.Second.TryProcessWatermark(ms)
	}
	return fmt.Errorf("a watermark for input %d", input)
}

func (s *two[A, B, R]) clock(ms int64) error { return s.TrySetProcessingTime(ms) }

func (s *two[A, B, R]) output() []string { return eventTexts(s.Output(), jsonText[R]) }

func (s *two[A, B, R]) clear() { s.Clear() }

// sides gives the texts of what a subject emitted to a side output.
func sides(t *testing.T, s subject, tag string) []string {
	t.Helper()
	switch tag {
	case "int-out":
		return sideTexts(s, intOut())
	case "long-out":
		return sideTexts(s, longOut())
	case "br-out":
		return sideTexts(s, brOut())
	case "non-br-out":
		return sideTexts(s, nonBrOut())
	}
	t.Fatalf("side output %q is unknown", tag)
	return nil
}

// sideOptions announce the side outputs of the vectors' functions.
func sideOptions() []flotttest.Option {
	return []flotttest.Option{
		flotttest.WithSideOutput(intOut()), flotttest.WithSideOutput(longOut()),
		flotttest.WithSideOutput(brOut()), flotttest.WithSideOutput(nonBrOut()),
	}
}

func sideTexts[X any](s subject, tag process.OutputTag[X]) []string {
	c := s.control()
	var events []flotttest.Event[X]
	for _, e := range c.SideOutput(tag) {
		events = append(events, flotttest.Event[X]{Kind: flotttest.IsElement, Element: e})
	}
	return eventTexts(events, jsonText[X])
}

func (s *one[T, R]) control() *flotttest.Control { return s.Control }

func (s *two[A, B, R]) control() *flotttest.Control { return s.Control }

// wayOptions let the ways differ in more than the cut: memory that is shared with others, and elements that were encoded.
func wayOptions(w conformance.Way) []flotttest.Option {
	switch {
	case w.Seed%2 == 1:
		return []flotttest.Option{flotttest.WithReadOnlyInput()}
	case w.Seed == 0 && len(w.Cut(2)) == 1:
		return []flotttest.Option{flotttest.WithEnv(flotttest.Isolated())}
	}
	return nil
}

// pending gathers the elements between two control steps and hands them over in runs.
type pending struct {
	to    subject
	way   conformance.Way
	input int
	held  []rawElement
}

// add holds an element back; one for another input is a control step for those held.
func (p *pending) add(input int, e rawElement) error {
	if input != p.input {
		if err := p.flush(); err != nil {
			return err
		}
		p.input = input
	}
	p.held = append(p.held, e)
	return nil
}

func (p *pending) flush() error {
	held := p.held
	p.held = nil
	for _, n := range p.way.Cut(len(held)) {
		if err := p.to.push(p.input, held[:n]); err != nil {
			return err
		}
		held = held[n:]
	}
	return nil
}

// compare reports a difference of outputs.
func compare(t *testing.T, step int, what string, got, want []string, anyOrder bool) {
	t.Helper()
	got, want = slices.Clone(got), slices.Clone(want)
	if anyOrder {
		slices.Sort(got)
		slices.Sort(want)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("step %d: %s:\n got %q\nwant %q", step, what, got, want)
	}
}
