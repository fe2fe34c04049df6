package operator

import "github.com/flott-dev/flott/internal/frame"

// Emitter buffers what an operator emits element by element and pushes it in runs.
type Emitter struct {
	Column *frame.Column
	out    *Output
	run    frame.Run
}

// Open makes the buffer; out must be bound.
func (e *Emitter) Open(out *Output) {
	e.out = out
	e.Column = frame.NewColumn(out.Type, out.Type.FrameLen(frame.Bytes))
}

// Flush pushes what is in the buffer.
func (e *Emitter) Flush() error {
	if e.Column.Len() == 0 {
		return nil
	}
	e.run = e.Column.Run()
	err := e.out.Push(&e.run)
	e.Column.Reset()
	return err
}
