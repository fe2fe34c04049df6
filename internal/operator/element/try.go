package element

import (
	"context"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
)

// tryMapper applies an f that can fail or wait.
type tryMapper[T, R any] struct {
	mapped
	f func(context.Context, T) (R, error)
}

// TryMap returns the driver of a map that can fail.
func TryMap[T, R any](in, out *frame.Type, f func(context.Context, T) (R, error)) operator.Operator {
	return &tryMapper[T, R]{mapped: mapped{Unary: operator.Unary{In: in, Out: operator.NewOutput(out)}}, f: f}
}

func (m *tryMapper[T, R]) Inputs() []operator.Input { return []operator.Input{m} }

func (m *tryMapper[T, R]) Push(r *frame.Run) error {
	xs, ctx := frame.Values[T](r), m.RT.Ctx
	for from := 0; from < len(xs); {
		n := min(len(xs)-from, m.buf.Cap())
		out := frame.Fill[R](m.buf, n)
		var err error
		for i := range out {
			if out[i], err = m.f(ctx, xs[from+i]); err != nil {
				return err
			}
		}
		if err := m.push(r, from); err != nil {
			return err
		}
		from += n
	}
	return nil
}
