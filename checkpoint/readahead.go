package checkpoint

import (
	"io"
	"sync"
)

// What is read ahead of who reads a long stretch of a file, so that the disk works while rows are taken in: so many buffers of
// so many bytes, each behind room for what is left of the one before.
const (
	aheadBytes   = 512 << 10 // unless there are many streams
	aheadBuffers = 3
	aheadRoom    = 72 << 10 // a block, as writers make them
	aheadLeast   = 4 << 20  // what is shorter is not worth a goroutine
)

// readAhead reads a stretch of a file from front to back, ahead of its consumer, on a goroutine of its own. Who ends it, ends
// the goroutine.
type readAhead struct {
	full chan aheadPiece
	free chan []byte
	quit chan struct{}
	done sync.WaitGroup
	buf  []byte // the one that the consumer looks at
	err  error  // what follows
}

// aheadPiece is a buffer of which n bytes, behind the room, were read in one go.
type aheadPiece struct {
	buf []byte
	n   int
	err error
}

// newReadAhead begins to read bytes at ... end, in pieces of some bytes.
func newReadAhead(r io.ReaderAt, at, end int64, piece int) *readAhead {
	a := &readAhead{full: make(chan aheadPiece, aheadBuffers), free: make(chan []byte, aheadBuffers), quit: make(chan struct{})}
	for range aheadBuffers {
		a.free <- make([]byte, aheadRoom+piece)
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
		n, err := r.ReadAt(b[aheadRoom:aheadRoom+min(int64(len(b)-aheadRoom), end-at)], at)
		at += int64(n)
		if err == io.EOF && at == end {
			err = nil
		}
		a.full <- aheadPiece{b, n, err} // there is room: buffers are as many as places
		if err != nil {
			return
		}
	}
}

// more gives what is left of what it gave before and the bytes that follow, side by side. They are valid until it is called
// again. After an error nothing follows.
func (a *readAhead) more(left []byte) ([]byte, error) {
	if a.err != nil {
		return left, a.err
	}
	p, ok := <-a.full
	if !ok {
		a.err = io.EOF
		return left, a.err
	}
	b := p.buf[:aheadRoom+p.n]
	if len(left) > aheadRoom { // a large block
		b = append(append(make([]byte, 0, len(left)+p.n), left...), b[aheadRoom:]...)
	} else {
		b = b[aheadRoom-len(left):]
		copy(b, left)
	}
	if a.buf != nil {
		a.free <- a.buf
	}
	a.buf, a.err = p.buf, p.err
	return b, nil
}

// end stops the reading and waits for the goroutine.
func (a *readAhead) end() {
	close(a.quit)
	a.done.Wait()
}
