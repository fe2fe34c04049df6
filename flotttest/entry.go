package flotttest

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/valve"
)

// entry is where a test's elements come in.
type entry[T any] struct {
	c      *Control
	source *source
	frame  *frame.Frame
	run    frame.Run
}

func newEntry[T any](c *Control, number int) *entry[T] {
	s := c.entries[number]
	return &entry[T]{c: c, source: s, frame: frame.New(s.out.Type, s.out.Type.FrameLen(frame.Bytes))}
}

// push hands elements over as one run, or as several if they are more than a frame can hold.
func (e *entry[T]) push(elements ...Element[T]) error {
	return e.c.guard(func() error {
		for part := range slices.Chunk(elements, e.frame.Cap()) {
			if err := e.pushFrame(part); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *entry[T]) pushFrame(elements []Element[T]) error {
	defer e.frame.Reset()
	for _, x := range elements {
		frame.Add(&e.frame.Column, x.Value, x.Time)
	}
	if e.c.config.settings.Isolated {
		if err := e.frame.Recode(); err != nil {
			return err
		}
	}
	e.run = e.frame.Run()
	if !e.c.config.readOnly {
		return e.source.out.Push(&e.run)
	}
	e.run.Shared = true
	values, times := frame.Values[T](&e.run), e.run.Times
	before, stamps := slices.Clone(values), slices.Clone(times)
	if err := e.source.out.Push(&e.run); err != nil {
		return err
	}
	for i := range before {
		if !reflect.DeepEqual(before[i], values[i]) || times != nil && times[i] != stamps[i] {
			return fmt.Errorf("the operator has changed element %v, which others read as well, to %v", before[i], values[i])
		}
	}
	return nil
}

func (e *entry[T]) mark(m frame.Mark) error {
	return e.c.guard(func() error { return e.source.out.Mark(m) })
}

func (e *entry[T]) watermark(ms int64) error {
	return e.mark(frame.Mark{Kind: frame.Watermark, Value: ms})
}

func (e *entry[T]) end() error { return e.mark(frame.Mark{Kind: frame.End}) }

func (e *entry[T]) idle(idle bool) error {
	if idle {
		return e.mark(frame.Mark{Kind: frame.Idle})
	}
	return e.mark(frame.Mark{Kind: frame.Active})
}

// union makes one input of several outputs, as a task does with its channels.
type union struct {
	in    operator.Input
	valve *valve.Valve
	used  int
}

func newUnion(in operator.Input, outputs int) *union {
	return &union{in: in, valve: valve.New(outputs)}
}

// next is the side of one more output.
func (u *union) next() operator.Input {
	u.used++
	return &unionSide{u, u.used - 1}
}

type unionSide struct {
	*union
	channel int
}

func (s *unionSide) Type() *frame.Type { return s.in.Type() }

func (s *unionSide) Push(r *frame.Run) error { return s.in.Push(r) }

func (s *unionSide) Mark(m frame.Mark) error {
	switch m.Kind {
	case frame.Watermark, frame.Idle, frame.Active, frame.End:
	default:
		return s.in.Mark(m)
	}
	a := s.valve.Step(s.channel, m)
	for _, m := range a.Marks() {
		if err := s.in.Mark(m); err != nil {
			return err
		}
	}
	return nil
}
