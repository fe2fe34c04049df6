package operator

import "github.com/flott-dev/flott/internal/frame"

// MapKernel writes the results for n elements of r, from offset from on, into out. An error ends the run.
type MapKernel func(r *frame.Run, from, n int, out *frame.Column) error

// Mapping is the part of a map that does not look at elements: one result in a column of its own for each element of the
// input, with the element's timestamp. Drivers open it in Open.
type Mapping struct {
	out   *Output
	buf   *frame.Column
	run   frame.Run
	times []int64
}

// Open makes the column.
func (m *Mapping) Open(out *Output) {
	m.out = out
	m.buf = frame.NewColumn(out.Type, out.Type.FrameLen(frame.Bytes))
}

// Push sends the kernel's results for a run.
func (m *Mapping) Push(r *frame.Run, kernel MapKernel) error {
	for from := 0; from < r.N; {
		n := min(r.N-from, m.buf.Cap())
		if err := kernel(r, from, n, m.buf); err != nil {
			return err
		}
		m.run = m.buf.Run()
		m.times = LendTimes(&m.run, r, from, m.times)
		err := m.out.Push(&m.run)
		m.buf.Reset()
		if err != nil {
			return err
		}
		from += n
	}
	return nil
}

// MapEach is the kernel that calls f. It is unrolled because Go keeps no register across a closure call: the index goes
// through memory once per four calls instead of each.
func MapEach[T, R any](f func(T) R) MapKernel {
	return func(r *frame.Run, from, n int, col *frame.Column) error {
		xs, ys := frame.Values[T](r)[from:from+n], frame.Fill[R](col, n)
		at := r.Hand()
		i := 0
		for ; i+4 <= n; i += 4 {
			x, y := xs[i:i+4:i+4], ys[i:i+4:i+4]
			*at = from + i
			y[0] = f(x[0])
			*at = from + i + 1
			y[1] = f(x[1])
			*at = from + i + 2
			y[2] = f(x[2])
			*at = from + i + 3
			y[3] = f(x[3])
		}
		for ; i < n; i++ {
			*at = from + i
			ys[i] = f(xs[i])
		}
		*at = frame.Passed
		return nil
	}
}
