package socket

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/flott-dev/flott/connector"
)

// runBytes is what a writer gathers of a run before it sends.
const runBytes = 64 << 10

// Sink sends records to a TCP server; it is Flink's writeToSocket. Each subtask has a connection of its own. It is a
// description: its methods return a changed copy.
//
// A record is sent at once, or together with others that came with it; a server that does not read holds the job up. If
// a connection breaks, the records that were not handed to the operating system as a whole are sent by the next one;
// others may be lost.
type Sink[T any] struct {
	peer
	encode func(T) ([]byte, error)
}

// NewSink sends what encode makes of each element; nothing is added, so encode ends lines itself (see Line). Subtasks
// call it concurrently; the sink does not keep or change the bytes.
func NewSink[T any](host string, port int, encode func(T) ([]byte, error)) *Sink[T] {
	return &Sink[T]{newPeer(host, port), encode}
}

// Line encodes a string as a line of text.
func Line(s string) ([]byte, error) { return append([]byte(s), '\n'), nil }

// Retries sets how often a subtask tries to connect again after it failed or its connection broke, twice a second; a
// negative number is for ever. The default is 0.
func (s Sink[T]) Retries(n int) *Sink[T] { s.retries = int64(n); return &s }

// DialWith replaces the way to connect, for proxies and tests.
func (s Sink[T]) DialWith(d Dial) *Sink[T] { s.dial = d; return &s }

// Check reports mistakes of the description.
func (s *Sink[T]) Check() error {
	if s.encode == nil {
		return errors.New("socket sink: no encode function")
	}
	return nil
}

// Writer implements connector.Sink. It connects.
func (s *Sink[T]) Writer(ctx connector.WriterContext) (connector.Writer[T], error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	conn, err := s.connect(ctx.Context(), false)
	if err != nil {
		return nil, fmt.Errorf("socket sink: %w", err)
	}
	return &writer[T]{sender: sender{ctx: ctx.Context(), peer: s.peer, conn: conn}, encode: s.encode}, nil
}

type writer[T any] struct {
	sender
	encode func(T) ([]byte, error)
}

// Write implements connector.Writer.
func (w *writer[T]) Write(x T, _ connector.ElementContext) error {
	if err := w.add(x, 0); err != nil {
		return err
	}
	return w.send()
}

// WriteRun implements connector.RunWriter.
func (w *writer[T]) WriteRun(xs []T, _ []int64) error {
	for i, x := range xs {
		if err := w.add(x, i); err != nil {
			return err
		}
		if len(w.buf) < runBytes {
			continue
		}
		if err := w.send(); err != nil {
			return err
		}
	}
	return w.send()
}

// add takes element i of a run.
func (w *writer[T]) add(x T, i int) error {
	record, err := w.encode(x)
	if err != nil {
		return &connector.ElementError{Index: i, Err: fmt.Errorf("encode an element for %s: %w", w.peer.address, err)}
	}
	w.buf = append(w.buf, record...)
	w.ends = append(w.ends, len(w.buf))
	return nil
}

// sender is a connection with the records that are to be sent. Between calls there are none.
type sender struct {
	ctx  context.Context
	peer peer
	conn net.Conn
	buf  []byte
	ends []int // of the records in buf
}

func (s *sender) send() error {
	for len(s.buf) > 0 {
		if s.conn == nil {
			return net.ErrClosed
		}
		n, err := s.conn.Write(s.buf)
		if err == nil {
			break
		}
		s.drop(n)
		if err := s.reconnect(err); err != nil {
			return err
		}
	}
	s.buf, s.ends = s.buf[:0], s.ends[:0]
	return nil
}

// drop forgets the records of which all bytes are among the first n.
func (s *sender) drop(n int) {
	k, from := 0, 0
	for k < len(s.ends) && s.ends[k] <= n {
		from = s.ends[k]
		k++
	}
	s.buf = s.buf[:copy(s.buf, s.buf[from:])]
	s.ends = s.ends[:copy(s.ends, s.ends[k:])]
	for i := range s.ends {
		s.ends[i] -= from
	}
}

// reconnect replaces a connection that broke with cause.
func (s *sender) reconnect(cause error) error {
	_ = s.conn.Close() // it is broken
	s.conn = nil
	conn, err := s.peer.connect(s.ctx, true)
	switch {
	case err == nil:
		s.conn = conn
		return nil
	case s.ctx.Err() != nil:
		return context.Cause(s.ctx)
	case errors.Is(err, errNoRetry):
		return fmt.Errorf("write to %s: %w", s.peer.address, cause)
	}
	return fmt.Errorf("write to %s: %w, then %w", s.peer.address, cause, err)
}

// Flush implements connector.Writer: everything was sent by Write.
func (s *sender) Flush(bool) error { return nil }

// Close implements connector.Writer.
func (s *sender) Close() error {
	if s.conn == nil {
		return nil
	}
	err := s.conn.Close()
	s.conn = nil
	if errors.Is(err, net.ErrClosed) || err == nil {
		return nil // a cancelled task has closed it already
	}
	return fmt.Errorf("close the connection to %s: %w", s.peer.address, err)
}
