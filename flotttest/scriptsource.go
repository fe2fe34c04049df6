package flotttest

import (
	"github.com/flott-dev/flott/connector"
)

// ScriptedSource is a source that follows scripts: script i goes to subtask i, modulo the parallelism, which plays its
// scripts one after the other. Use it with FromSource; FromScripts is shorter.
type ScriptedSource[T any] struct{ scripts []*Script[T] }

// ScriptPosition is the split of a ScriptedSource: a Script by its number, and the Step that comes next.
type ScriptPosition struct {
	Script, Step int
}

// NewSource returns a source that follows the scripts.
func NewSource[T any](scripts ...*Script[T]) *ScriptedSource[T] { return &ScriptedSource[T]{scripts} }

// Bounded implements connector.Source.
func (s *ScriptedSource[T]) Bounded() bool { return true }

// Enumerator implements connector.Source.
func (s *ScriptedSource[T]) Enumerator(ctx connector.EnumeratorContext[ScriptPosition], restored []byte) (connector.Enumerator[ScriptPosition], error) {
	return &scriptEnumerator{ctx: ctx, scripts: len(s.scripts), assigned: restored != nil}, nil
}

// Reader implements connector.Source.
func (s *ScriptedSource[T]) Reader(ctx connector.ReaderContext) (connector.Reader[T, ScriptPosition], error) {
	return &scriptReader[T]{ctx: ctx, scripts: s.scripts}, nil
}

// scriptEnumerator hands all scripts out at the start.
type scriptEnumerator struct {
	ctx      connector.EnumeratorContext[ScriptPosition]
	scripts  int
	assigned bool
}

// Start implements connector.Enumerator.
func (e *scriptEnumerator) Start() error {
	p := e.ctx.Parallelism()
	for i := 0; i < e.scripts && !e.assigned; i++ {
		e.ctx.Assign(i%p, ScriptPosition{Script: i})
	}
	for i := range p {
		e.ctx.NoMoreSplits(i)
	}
	return nil
}

// Request implements connector.Enumerator.
func (*scriptEnumerator) Request(int) error { return nil }

// AddBack implements connector.Enumerator.
func (e *scriptEnumerator) AddBack(subtask int, splits []ScriptPosition) error {
	e.ctx.Assign(subtask, splits...)
	return nil
}

// Snapshot implements connector.Enumerator: that the scripts were handed out is all there is to know.
func (*scriptEnumerator) Snapshot(int64) ([]byte, error) { return []byte{1}, nil }

// Close implements connector.Enumerator.
func (*scriptEnumerator) Close() error { return nil }

// scriptReader plays scripts.
type scriptReader[T any] struct {
	ctx     connector.ReaderContext
	scripts []*Script[T]
	splits  []ScriptPosition
	last    bool
	waiting *pause // a goroutine waits for it
}

// Poll implements connector.Reader.
func (r *scriptReader[T]) Poll(out *connector.Output[T]) (connector.Status, error) {
	for len(r.splits) > 0 {
		at := &r.splits[0]
		steps := r.scripts[at.Script].steps
		for at.Step < len(steps) {
			s := &steps[at.Step]
			if s.kind == stepPause && r.paused(s.pause) {
				return connector.Nothing, nil
			}
			if s.kind == stepElement && out.Room() == 0 {
				return connector.More, nil
			}
			at.Step++
			play(s, out)
			if s.kind == stepCut {
				return connector.More, nil
			}
		}
		r.splits = r.splits[1:]
	}
	if r.last {
		return connector.Done, nil
	}
	return connector.Nothing, nil
}

func play[T any](s *step[T], out *connector.Output[T]) {
	switch s.kind {
	case stepElement:
		if s.element.Time == NoTime {
			out.Emit(s.element.Value)
		} else {
			out.EmitAt(s.element.Value, s.element.Time)
		}
	case stepWatermark:
		out.Watermark(s.ms)
	case stepIdle:
		out.Idle()
	}
}

// paused tells the test that the pause is reached; while it lasts a goroutine waits for its end.
func (r *scriptReader[T]) paused(p *pause) bool {
	p.reach.Do(func() { close(p.reached) })
	select {
	case <-p.resuming:
		return false
	default:
	}
	if r.waiting != p {
		r.waiting = p
		r.ctx.Go(func() {
			select {
			case <-p.resuming:
				r.ctx.Wake()
			case <-r.ctx.Context().Done():
			}
		})
	}
	return true
}

// AddSplits implements connector.Reader.
func (r *scriptReader[T]) AddSplits(splits []ScriptPosition) error {
	r.splits = append(r.splits, splits...)
	return nil
}

// NoMoreSplits implements connector.Reader.
func (r *scriptReader[T]) NoMoreSplits() { r.last = true }

// Snapshot implements connector.Reader.
func (r *scriptReader[T]) Snapshot(int64) ([]ScriptPosition, error) {
	return append([]ScriptPosition(nil), r.splits...), nil
}

// Committed implements connector.Reader.
func (*scriptReader[T]) Committed(int64) error { return nil }

// Close implements connector.Reader.
func (*scriptReader[T]) Close() error { return nil }
