package watermarks

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/watermark"
)

// assigner is the loop that writes a run's timestamps; nil if elements keep theirs. Loops are unrolled by 4: the loop
// index goes through memory at every call of a closure.
func assigner[T any](s *watermark.Spec[T]) func(r *frame.Run, dst []int64) {
	switch {
	case s.Pointer != nil:
		at := s.Pointer
		return func(r *frame.Run, dst []int64) {
			xs := frame.Values[T](r)
			dst = dst[:len(xs)]
			i := 0
			pos := r.Hand()
			for ; i+4 <= len(xs); i += 4 {
				x, d := xs[i:i+4:i+4], dst[i:i+4:i+4]
				*pos = i
				d[0] = at(&x[0])
				*pos = i + 1
				d[1] = at(&x[1])
				*pos = i + 2
				d[2] = at(&x[2])
				*pos = i + 3
				d[3] = at(&x[3])
			}
			for ; i < len(xs); i++ {
				*pos = i
				dst[i] = at(&xs[i])
			}
			*pos = frame.Passed
		}
	case s.Millis != nil:
		at := s.Millis
		return func(r *frame.Run, dst []int64) {
			xs := frame.Values[T](r)
			dst = dst[:len(xs)]
			i := 0
			pos := r.Hand()
			for ; i+4 <= len(xs); i += 4 {
				x, d := xs[i:i+4:i+4], dst[i:i+4:i+4]
				*pos = i
				d[0] = at(x[0])
				*pos = i + 1
				d[1] = at(x[1])
				*pos = i + 2
				d[2] = at(x[2])
				*pos = i + 3
				d[3] = at(x[3])
			}
			for ; i < len(xs); i++ {
				*pos = i
				dst[i] = at(xs[i])
			}
			*pos = frame.Passed
		}
	case s.AssignPointer != nil:
		at := s.AssignPointer
		return func(r *frame.Run, dst []int64) {
			pos := r.Hand()
			for i, xs := 0, frame.Values[T](r); i < len(xs); i++ {
				*pos = i
				dst[i] = at(&xs[i], r.Time(i))
			}
			*pos = frame.Passed
		}
	case s.Assign != nil:
		at := s.Assign
		return func(r *frame.Run, dst []int64) {
			pos := r.Hand()
			for i, x := range frame.Values[T](r) {
				*pos = i
				dst[i] = at(x, r.Time(i))
			}
			*pos = frame.Passed
		}
	}
	return nil
}

// perElement asks a punctuated strategy's function until its watermark grows.
func perElement[T any](e *watermark.Emitter, f func(*T, int64) (int64, bool)) func(*frame.Run, int) int {
	return func(r *frame.Run, from int) int {
		xs := frame.Values[T](r)
		at := r.Hand()
		for i := from; i < len(xs); i++ {
			*at = i
			if ms, ok := f(&xs[i], r.Time(i)); ok {
				if e.Watermark(ms); e.Pending() {
					*at = frame.Passed
					return i + 1
				}
			}
		}
		*at = frame.Passed
		return len(xs)
	}
}

// perEvent asks a generator until it has emitted something new.
func perEvent[T any](e *watermark.Emitter, g watermark.Generator[T]) func(*frame.Run, int) int {
	return func(r *frame.Run, from int) int {
		xs := frame.Values[T](r)
		at := r.Hand()
		for i := from; i < len(xs); i++ {
			*at = i
			if g.OnEvent(&xs[i], r.Time(i), e); e.Pending() {
				*at = frame.Passed
				return i + 1
			}
		}
		*at = frame.Passed
		return len(xs)
	}
}
