package filesink

import (
	"errors"
	"fmt"
	"math"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/clock"
)

// errNoTime says that an element can't be put into a bucket by its timestamp.
var errNoTime = errors.New("element without a timestamp for its bucket: assign timestamps, or use BucketByTime")

// open opens the writer of one subtask.
func (s *Sink[T]) open(ctx connector.WriterContext, states []connector.WriterState) (connector.Writer[T], error) {
	layout, err := s.checked()
	if err != nil {
		return nil, err
	}
	p := s.newParts(ctx)
	p.formatter = s.formatter()
	p.slow = s.policy != nil || s.bulk != nil
	if p.refill, err = s.refiller(); err != nil {
		return nil, s.mistake("%w", err)
	}
	if err = p.root(); err == nil && len(states) > 0 {
		err = p.restore(states)
	} else if err == nil && s.clear && !goesOn(ctx) {
		err = p.clearAll("")
	}
	if err != nil {
		p.fail(s.mistake("%w", err))
		return nil, errors.Join(s.mistake("%w", err), p.drop())
	}
	w := &writer[T]{parts: p, delimiter: s.encoding.Delimiter, by: s.by, with: s.with}
	w.times.layout = layout
	if timed, ok := ctx.(connector.TimedContext); ok {
		w.now = timed.Now
	} else {
		w.now = clock.NewSystem().Millis
	}
	if s.bulk == nil {
		w.encode = s.encoding.Open()
	}
	switch {
	case s.bucketing == byContext:
		return w, nil
	case s.bulk != nil:
		return &bulkWriter[T]{w}, nil
	}
	return &runWriter[T]{w}, nil
}

// goesOn tells whether the job was restored from a snapshot that has the sink.
func goesOn(ctx connector.WriterContext) bool {
	r, ok := ctx.(connector.RestoredContext)
	return ok && r.Restored()
}

// writer writes the elements of one subtask.
type writer[T any] struct {
	*parts
	encode    func(dst []byte, x T) ([]byte, error) // nil: the files are whole ones of a format
	one       [1]T                                  // an element that comes alone
	delimiter string
	by        func(*T) string
	with      func(T, connector.ElementContext) string
	times     namer
	now       func() int64
}

// Write implements connector.Writer.
func (w *writer[T]) Write(x T, at connector.ElementContext) error {
	if err := w.work(); err != nil {
		return err
	}
	var bucket string
	var err error
	switch w.bucketing {
	case byElement:
		w.one[0] = x
		bucket = w.by(&w.one[0])
	case byContext:
		bucket = w.with(x, at)
	default:
		bucket, err = w.timed(at.Timestamp, at.ProcessingTime)
	}
	if err != nil {
		return err
	}
	if w.encode == nil {
		w.one[0] = x
		return w.addAll(bucket, w.one[:], at.ProcessingTime)
	}
	return w.add(bucket, x, 0, at.ProcessingTime)
}

// bucket is that of the ith element of a run.
func (w *writer[T]) bucket(xs []T, times []int64, i int, now int64) (string, error) {
	if w.bucketing == byElement {
		return w.by(&xs[i]), nil
	}
	at := int64(math.MinInt64)
	if times != nil {
		at = times[i]
	}
	return w.timed(at, now)
}

// timed is the bucket of an element for which its times count.
func (w *writer[T]) timed(timestamp, now int64) (string, error) {
	switch w.bucketing {
	case processingTime:
		return w.times.at(now), nil
	case eventTime:
		if timestamp == math.MinInt64 {
			return "", w.fail(errNoTime)
		}
		return w.times.at(timestamp), nil
	}
	return "", nil
}

// add writes element i of a run to the file of a bucket.
func (w *writer[T]) add(bucket string, x T, i int, now int64) error {
	f, err := w.at(bucket, now)
	if err != nil {
		return err
	}
	buf, err := w.encode(f.buf, x)
	if err != nil {
		return w.fail(&connector.ElementError{Index: i, Err: fmt.Errorf("encode an element for %s: %w", f.path, err)})
	}
	f.buf = append(buf, w.delimiter...)
	f.changed = now
	f.elements++
	if len(f.buf) < block {
		return nil
	}
	if err := f.spill(); err != nil {
		return w.fail(err)
	}
	return nil
}

// Flush implements connector.Writer.
func (w *writer[T]) Flush(endOfInput bool) error { return w.flush(endOfInput, w.now()) }

// OnTime implements connector.TimedWriter.
func (w *writer[T]) OnTime(now int64) (next int64, err error) {
	if err := w.work(); err != nil {
		return 0, err
	}
	if next, err = w.look(now); err == nil && w.busy {
		next = now + 1
	}
	return next, err
}

// Prepare implements connector.CommittingWriter.
func (w *writer[T]) Prepare() ([]Committable, error) { return w.prepare() }

// Snapshot implements connector.StatefulWriter.
func (w *writer[T]) Snapshot(int64) ([]byte, error) { return w.snapshot() }

// Close implements connector.Writer.
func (w *writer[T]) Close() error { return w.drop() }

// runWriter writes many elements at once, where the watermark is not asked for.
type runWriter[T any] struct{ *writer[T] }

// WriteRun implements connector.RunWriter.
func (w *runWriter[T]) WriteRun(xs []T, times []int64) error {
	if err := w.work(); err != nil {
		return err
	}
	now := w.now()
	for i := range xs {
		var bucket string
		if w.bucketing == byElement {
			bucket = w.by(&xs[i])
		} else {
			var err error
			if bucket, err = w.bucket(xs, times, i, now); err != nil {
				return err
			}
		}
		if err := w.add(bucket, xs[i], i, now); err != nil {
			return err
		}
	}
	return nil
}
