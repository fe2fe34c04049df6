package socket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
)

var errNoRetry = errors.New("no try left")

// Split is the one split of a Source: its connection. There is nothing in it to go on from.
type Split struct {
	Address string // of the server, for messages
}

// Source reads the lines that a TCP server sends. One subtask reads, whatever the parallelism; the others end at once.
// It is a description: its methods return a changed copy.
//
// The source ends when the server closes the connection and, with MaxRetry, does not take a new one in that time. A
// connection that breaks, and a server that is not there, are errors after the same time. Text behind the last delimiter
// is an element at the end; before that, it goes on with what the next connection sends.
type Source struct {
	peer
	format file.Text
}

// Text reads the lines of text that a server sends; it is Flink's socketTextStream.
func Text(host string, port int) *Source { return &Source{peer: newPeer(host, port)} }

// Delimiter sets what ends an element; the default is "\n", with which a CR before it is not part of the element.
func (s Source) Delimiter(d string) *Source { s.format.Delimiter = d; return &s }

// MaxRetry sets for how long the source tries to connect again, twice a second: a negative duration is for ever, 0, the
// default, not at all.
func (s Source) MaxRetry(d time.Duration) *Source {
	s.retries = int64((d + pause - 1) / pause)
	if d < 0 {
		s.retries = -1
	}
	return &s
}

// DialWith replaces the way to connect, for proxies and tests.
func (s Source) DialWith(d Dial) *Source { s.dial = d; return &s }

// Check reports mistakes of the description.
func (s *Source) Check() error {
	if err := s.format.Check(); err != nil {
		return fmt.Errorf("socket source: %w", err)
	}
	return nil
}

// Bounded implements connector.Source: a server may send for ever.
func (s *Source) Bounded() bool { return false }

// Enumerator implements connector.Source.
func (s *Source) Enumerator(ctx connector.EnumeratorContext[Split], restored []byte) (connector.Enumerator[Split], error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	e := &enumerator{ctx: ctx, split: Split{s.address}}
	if restored != nil {
		if len(restored) != 1 || restored[0] > 1 {
			return nil, errors.New("restore the socket enumerator: snapshot is damaged")
		}
		e.given = restored[0] == 1
	}
	return e, nil
}

// Reader implements connector.Source.
func (s *Source) Reader(ctx connector.ReaderContext) (connector.Reader[string, Split], error) {
	return &reader{source: s, ctx: ctx}, nil
}

// enumerator gives the split to the first that asks.
type enumerator struct {
	ctx   connector.EnumeratorContext[Split]
	split Split
	given bool
}

func (e *enumerator) Start() error { return nil }

func (e *enumerator) Request(subtask int) error {
	if !e.given {
		e.given = true
		e.ctx.Assign(subtask, e.split)
	}
	e.ctx.NoMoreSplits(subtask)
	return nil
}

func (e *enumerator) AddBack(_ int, splits []Split) error {
	e.given = e.given && len(splits) == 0
	return nil
}

func (e *enumerator) Snapshot(int64) ([]byte, error) {
	if e.given {
		return []byte{1}, nil
	}
	return []byte{0}, nil
}

func (e *enumerator) Close() error { return nil }

// reader reads the connection of one subtask, most often none.
type reader struct {
	source  *Source
	ctx     connector.ReaderContext
	split   *Split
	asked   bool
	last    bool
	decoder file.Decoder[string] // nil before the first Poll with a split
	pump    *file.Pump
	cancel  context.CancelFunc
}

// Poll implements connector.Reader.
func (r *reader) Poll(out *connector.Output[string]) (connector.Status, error) {
	if r.split == nil {
		if r.last {
			return connector.Done, nil
		}
		if !r.asked {
			r.asked = true
			r.ctx.RequestSplit()
		}
		return connector.Nothing, nil
	}
	if r.decoder == nil {
		if err := r.begin(); err != nil {
			return connector.More, err
		}
	}
	switch err := r.decoder.Decode(out); err {
	case nil:
		return connector.More, nil
	case file.ErrWait:
		return connector.Nothing, nil
	case io.EOF:
		r.split = nil
		return connector.More, r.Close()
	default:
		return connector.More, err
	}
}

func (r *reader) begin() (err error) {
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(r.ctx.Context())
	open := func() (io.ReadCloser, error) { return &connections{ctx: ctx, peer: r.source.peer}, nil }
	r.pump = file.NewPump(open, r.ctx.Go, r.ctx.Wake)
	r.decoder, err = r.source.format.Decoder(file.NewInput(r.source.address, r.pump))
	return err
}

// AddSplits implements connector.Reader.
func (r *reader) AddSplits(splits []Split) error {
	if len(splits) != 1 || r.split != nil {
		return errors.New("a socket is one split")
	}
	r.split = &splits[0]
	r.ctx.Wake()
	return nil
}

// NoMoreSplits implements connector.Reader.
func (r *reader) NoMoreSplits() {
	r.last = true
	r.ctx.Wake()
}

// Snapshot implements connector.Reader.
func (r *reader) Snapshot(int64) ([]Split, error) {
	if r.split == nil {
		return nil, nil
	}
	return []Split{*r.split}, nil
}

// Committed implements connector.Reader.
func (r *reader) Committed(int64) error { return nil }

// Close implements connector.Reader.
func (r *reader) Close() error {
	if r.pump == nil {
		return nil
	}
	r.cancel()
	pump := r.pump
	r.pump = nil
	return pump.Close()
}

// connections is the text of one connection after the other. It is read on a goroutine of the task.
type connections struct {
	ctx  context.Context
	peer peer
	conn net.Conn
	lost bool  // a connection came to its end, well or not
	err  error // of the last connection; nil: the server closed it
}

// Read implements io.Reader.
func (c *connections) Read(p []byte) (int, error) {
	for {
		if c.conn == nil {
			if err := c.connect(); err != nil {
				return 0, err
			}
		}
		n, err := c.conn.Read(p)
		if n > 0 {
			return n, nil
		}
		if err == nil {
			continue
		}
		if c.lost, c.err = true, err; err == io.EOF {
			c.err = nil
		}
		_ = c.conn.Close() // it was only read, and is at its end
		c.conn = nil
	}
}

func (c *connections) connect() (err error) {
	c.conn, err = c.peer.connect(c.ctx, c.lost)
	switch {
	case err == nil:
		return nil
	case c.ctx.Err() != nil:
		return context.Cause(c.ctx)
	case c.err != nil:
		return fmt.Errorf("read from %s: %w", c.peer.address, c.err)
	case c.lost:
		return io.EOF // the server has said all
	}
	return err
}

// Close implements io.Closer.
func (c *connections) Close() error {
	if c.conn == nil {
		return nil
	}
	return c.conn.Close()
}
