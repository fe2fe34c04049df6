package source

import (
	"context"
	"errors"
	"fmt"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
)

// feedDepth is how many full frames may wait for the subtask.
const feedDepth = 4

// function drives a source function, which runs on a goroutine of its own.
type function struct {
	head
	run    func(ctx context.Context, rt *process.Runtime, feed *host.Feed[*frame.Frame]) error
	feed   *host.Feed[*frame.Frame]
	cancel context.CancelFunc
	part   frame.Run
	out    int64 // latest watermark
	idle   bool
}

// Func returns the driver of a source function.
func Func[T any](typ *frame.Type, f process.SourceFunction[T]) operator.Operator {
	return &function{
		head: head{Out: operator.NewOutput(typ)},
		run: func(ctx context.Context, rt *process.Runtime, feed *host.Feed[*frame.Frame]) error {
			return f(ctx, process.NewSourceContext[T](rt, feed))
		},
	}
}

// Open implements operator.Operator: the function starts.
func (s *function) Open(rt *operator.Runtime) error {
	s.out = frame.MinWatermark
	typ := s.Out.Type
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(rt.Ctx)
	s.feed = host.NewFeed(ctx, rt.Waiter, feedDepth, func() *frame.Frame {
		return frame.New(typ, typ.FrameLen(frame.Bytes))
	})
	user := process.NewRuntime(rt.Host)
	rt.Spawn.Go(func() { s.feed.End(s.call(ctx, user)) })
	return s.head.Open(rt)
}

// call turns a panic into an error: on a goroutine of its own nobody else would catch it.
func (s *function) call(ctx context.Context, rt *process.Runtime) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = operator.Recovered(p)
		}
	}()
	return s.run(ctx, rt, s.feed)
}

// Close implements operator.Operator: the function is told to return; the job waits for its goroutine.
func (s *function) Close() error {
	if s.cancel != nil {
		s.cancel()
	}
	return nil
}

// Poll implements operator.Source.
func (s *function) Poll() (operator.Status, error) {
	f, ok, ended, err := s.feed.Take()
	switch {
	case ok:
		if err := s.send(f); err != nil {
			return operator.Done, err
		}
		f.Recycle()
		s.feed.Return(f)
		return operator.More, nil
	case !ended:
		return operator.Nothing, nil
	case err != nil && !(errors.Is(err, context.Canceled) && s.rt.Ctx.Err() != nil):
		return operator.Done, fmt.Errorf("run the source function: %w", err)
	case s.rt.Ctx.Err() != nil: // it returned because the task is being cancelled: that is no end of the input
		return operator.Nothing, nil
	}
	return operator.Done, nil
}

// send cuts a frame at its marks.
func (s *function) send(f *frame.Frame) error {
	all := f.Run()
	pos := 0
	for i := range f.Marks {
		m := f.Marks[i]
		if err := s.push(&all, pos, int(m.Pos)); err != nil {
			return err
		}
		pos = int(m.Pos)
		if err := s.mark(m); err != nil {
			return err
		}
	}
	return s.push(&all, pos, all.N)
}

func (s *function) push(all *frame.Run, from, to int) error {
	if from == to {
		return nil
	}
	if err := s.wake(); err != nil {
		return err
	}
	s.part = all.Slice(from, to)
	return s.Out.Push(&s.part)
}

// wake ends idleness.
func (s *function) wake() error {
	if !s.idle {
		return nil
	}
	s.idle = false
	return s.Out.Mark(frame.Mark{Kind: frame.Active})
}

func (s *function) mark(m frame.Mark) error {
	switch m.Kind {
	case frame.Watermark:
		if m.Value <= s.out {
			return nil
		}
		s.out = m.Value
		if err := s.wake(); err != nil {
			return err
		}
	case frame.Idle:
		if s.idle {
			return nil
		}
		s.idle = true
	}
	m.Pos = 0
	return s.Out.Mark(m)
}
