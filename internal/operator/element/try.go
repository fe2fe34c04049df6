package element

import (
	"context"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
)

// tryMapper is a mapper whose kernel can fail or wait.
type tryMapper struct {
	mapper
	try func(ctx context.Context, r *frame.Run, from, n int, out *frame.Column) error
}

// Inputs implements operator.Operator.
func (m *tryMapper) Inputs() []operator.Input { return []operator.Input{m} }

// Push implements operator.Input.
func (m *tryMapper) Push(r *frame.Run) error {
	for from := 0; from < r.N; {
		n := min(r.N-from, m.buf.Cap())
		if err := m.try(m.RT.Ctx, r, from, n, m.buf); err != nil {
			return err
		}
		if err := m.push(r, from); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// TryMap returns the driver of a map that can fail.
func TryMap[T, R any](in, out *frame.Type, f func(context.Context, T) (R, error)) operator.Operator {
	m := &tryMapper{try: func(ctx context.Context, r *frame.Run, from, n int, col *frame.Column) (err error) {
		xs, ys := frame.Values[T](r)[from:from+n], frame.Fill[R](col, n)
		for i, x := range xs {
			if ys[i], err = f(ctx, x); err != nil {
				return err
			}
		}
		return nil
	}}
	m.Unary = operator.Unary{In: in, Out: operator.NewOutput(out)}
	return m
}
