package task

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
)

// isolated stands between two chained operators and hands on what the elements' encodings decode to, as if a process
// boundary lay between them: an operator that changes or keeps what it should not is found out.
type isolated struct {
	operator.Input
	scope *operator.Scope
	copy  *frame.Frame
	run   frame.Run
}

func isolate(in operator.Input, typ *frame.Type, scope *operator.Scope) operator.Input {
	return &isolated{Input: in, scope: scope, copy: frame.New(typ, typ.FrameLen(frame.Bytes))}
}

// Push implements operator.Input.
func (i *isolated) Push(r *frame.Run) error {
	for from := 0; from < r.N; {
		to := min(r.N, from+i.copy.Cap())
		i.copy.Append(r, from, to)
		if err := i.copy.Recode(); err != nil {
			return err
		}
		i.run = i.copy.Run()
		i.scope.Run = &i.run
		if err := i.Input.Push(&i.run); err != nil {
			return err // and the copies are left for whoever tells at which element it failed
		}
		i.copy.Recycle()
		from = to
	}
	return nil
}
