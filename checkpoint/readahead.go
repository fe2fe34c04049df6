package checkpoint

import (
	"io"
	"sync"
)

// What is read ahead of who reads a long stretch of a file, so that the disk works while rows are taken in: so many buffers of
// so many bytes.
const (
	aheadBytes   = 512 << 10
	aheadBuffers = 3
	aheadLeast   = 4 << 20 // what is shorter is not worth a goroutine
)

// readAhead reads a stretch of a file from front to back, ahead of its consumer, on a goroutine of its own. Who ends it, ends
// the goroutine.
type readAhead struct {
	full chan aheadPiece
	free chan []byte
	quit chan struct{}
	done sync.WaitGroup
	buf  []byte // that of rest
	rest []byte // read, and not yet given
	err  error  // what follows
}

// aheadPiece is what was read in one go.
type aheadPiece struct {
	b   []byte
	err error
}

// newReadAhead begins to read bytes at ... end.
func newReadAhead(r io.ReaderAt, at, end int64) *readAhead {
	a := &readAhead{full: make(chan aheadPiece, aheadBuffers), free: make(chan []byte, aheadBuffers), quit: make(chan struct{})}
	for range aheadBuffers {
		a.free <- make([]byte, aheadBytes)
	}
	a.done.Go(func() { a.run(r, at, end) })
	return a
}

func (a *readAhead) run(r io.ReaderAt, at, end int64) {
	defer close(a.full)
	for at < end {
		var b []byte
		select {
		case b = <-a.free:
		case <-a.quit:
			return
		}
		n, err := r.ReadAt(b[:min(int64(len(b)), end-at)], at)
		at += int64(n)
		if err == io.EOF && at == end {
			err = nil
		}
		a.full <- aheadPiece{b[:n], err} // there is room: buffers are as many as places
		if err != nil {
			return
		}
	}
}

// read fills b with what follows. After an error nothing does.
func (a *readAhead) read(b []byte) (n int, err error) {
	for n < len(b) {
		if len(a.rest) == 0 {
			if a.err != nil {
				return n, a.err
			}
			if a.buf != nil {
				a.free <- a.buf
				a.buf = nil
			}
			p, ok := <-a.full
			if !ok {
				return n, io.EOF
			}
			a.buf, a.rest, a.err = p.b[:cap(p.b)], p.b, p.err
		}
		k := copy(b[n:], a.rest)
		n, a.rest = n+k, a.rest[k:]
	}
	return n, nil
}

// end stops the reading and waits for the goroutine.
func (a *readAhead) end() {
	close(a.quit)
	a.done.Wait()
}
