package file

import (
	"errors"
	"fmt"
	"io"

	"github.com/flott-dev/flott/connector"
)

// reader reads the splits of one subtask, one after the other.
type reader[T any] struct {
	ctx     connector.ReaderContext
	format  Format[T]
	opener  opener
	splits  []Split // still to read; the first is open if decoder is not nil
	asked   bool
	last    bool
	input   *Input
	decoder Decoder[T]
}

// Poll implements connector.Reader.
func (r *reader[T]) Poll(out *connector.Output[T]) (connector.Status, error) {
	if r.decoder == nil {
		if len(r.splits) == 0 {
			return r.starving(), nil
		}
		if err := r.begin(); err != nil {
			return connector.More, err
		}
	}
	before := r.input.taken()
	err := r.decoder.Decode(out)
	r.ctx.Counter("numBytesIn", r.input.taken()-before)
	switch err {
	case nil:
		return connector.More, nil
	case io.EOF:
		r.splits = r.splits[1:]
		return connector.More, r.end()
	case ErrWait:
		return connector.Nothing, nil
	default:
		return connector.More, err
	}
}

// starving asks for a split, once.
func (r *reader[T]) starving() connector.Status {
	if r.last {
		return connector.Done
	}
	if !r.asked {
		r.asked = true
		r.ctx.RequestSplit()
	}
	return connector.Nothing
}

func (r *reader[T]) begin() error {
	in, err := r.opener.open(&r.splits[0])
	if err != nil {
		return err
	}
	r.input = in
	r.decoder, err = r.format.Decoder(in)
	if err != nil {
		r.decoder = nil
		_ = r.end() // the first error is the one to tell
	}
	return err
}

// end closes the open split.
func (r *reader[T]) end() error {
	if r.input == nil {
		return nil
	}
	in, d := r.input, r.decoder
	r.input, r.decoder = nil, nil
	if err := errors.Join(closeDecoder(d), in.Close()); err != nil {
		return fmt.Errorf("close %s: %w", in.path, err)
	}
	return nil
}

// AddSplits implements connector.Reader.
func (r *reader[T]) AddSplits(splits []Split) error {
	r.splits = append(r.splits, splits...)
	r.asked = false
	r.ctx.Wake()
	return nil
}

// NoMoreSplits implements connector.Reader.
func (r *reader[T]) NoMoreSplits() {
	r.last = true
	r.ctx.Wake()
}

// Snapshot implements connector.Reader.
func (r *reader[T]) Snapshot(int64) ([]Split, error) {
	splits := append([]Split(nil), r.splits...)
	if r.decoder != nil {
		splits[0].Position, splits[0].Skip = r.decoder.Position(), skipped(r.decoder)
	}
	return splits, nil
}

// Committed implements connector.Reader.
func (r *reader[T]) Committed(int64) error { return nil }

// Close implements connector.Reader.
func (r *reader[T]) Close() error { return r.end() }

// ReportBad makes the reader skip bad records and hand them to f, on the subtask's goroutine, instead of what the
// source's OnBad says; the engine's way to make a side output of them. It is called before the first Poll.
func (r *reader[T]) ReportBad(f func(Bad)) {
	own := *r.opener.settings
	own.lenient = true
	r.opener.settings, r.opener.report = &own, f
}
