package file

import (
	"fmt"
	"io"

	"github.com/flott-dev/flott/internal/vfs"
)

// Pump reads what can wait for long (standard input, pipes, sockets) on a goroutine of its own, a few blocks ahead, so
// that a subtask never waits for it: Read returns ErrWait if nothing is there. It is not for concurrent use.
type Pump struct {
	full chan block
	free chan []byte
	stop chan struct{}
	wake func()
	now  []byte // of the block that is being read
	buf  []byte
	err  error
}

// block is what one read gave.
type block struct {
	data []byte
	err  error
}

// pumpBlocks blocks of pumpBlock bytes are read ahead at most.
const (
	pumpBlocks = 2
	pumpBlock  = 64 << 10
)

// NewPump opens a text and reads it on a goroutine that start starts; wake is called there whenever there is more. The
// text is closed there, too, at its end or after Close.
func NewPump(open func() (io.ReadCloser, error), start func(f func()), wake func()) *Pump {
	p := &Pump{
		full: make(chan block, pumpBlocks), free: make(chan []byte, pumpBlocks),
		stop: make(chan struct{}), wake: wake,
	}
	for range pumpBlocks {
		p.free <- make([]byte, pumpBlock)
	}
	start(func() { p.run(open) })
	return p
}

func (p *Pump) run(open func() (io.ReadCloser, error)) {
	src, err := open()
	if err != nil {
		p.hand(block{nil, err})
		return
	}
	defer func() { _ = src.Close() }() // it was only read
	for err == nil {
		select {
		case buf := <-p.free:
			var n int
			n, err = src.Read(buf)
			p.hand(block{buf[:n], err})
		case <-p.stop:
			return
		}
	}
}

// hand never blocks: there are no more blocks than room in full, and the last error comes in place of one.
func (p *Pump) hand(b block) {
	p.full <- b
	p.wake()
}

// Read implements io.Reader; ErrWait says that nothing is there.
func (p *Pump) Read(dst []byte) (int, error) {
	for len(p.now) == 0 {
		if p.err != nil {
			return 0, p.err
		}
		if p.buf != nil {
			p.free <- p.buf[:cap(p.buf)]
			p.buf = nil
		}
		select {
		case b := <-p.full:
			p.buf, p.now, p.err = b.data, b.data, b.err
		default:
			return 0, ErrWait
		}
	}
	n := copy(dst, p.now)
	p.now = p.now[n:]
	return n, nil
}

// Close ends the goroutine when it comes back from reading; it does not wait for that. It is called once.
func (p *Pump) Close() error {
	close(p.stop)
	return nil
}

// pumped opens a file that is not on a disk.
func (o *opener) pumped(s *Split) (*Input, error) {
	if s.Position > 0 {
		return nil, fmt.Errorf("go on at %d of %s: it can't be read a second time", s.Position, s.Path)
	}
	open := func() (io.ReadCloser, error) {
		f, err := o.fs.Open(s.Path)
		if err != nil {
			return nil, fmt.Errorf("open a file to read: %w", err)
		}
		raw := &stored{file: f, path: s.Path}
		src, err := o.decode(raw)
		if err != nil {
			_ = f.Close() // the first error is the one to tell
			return nil, raw.name(err)
		}
		return src, nil
	}
	// The task does not wait for this goroutine: a read of standard input, or the opening of a pipe that nobody writes
	// to, can't be interrupted and ends with the process at the latest.
	in := o.input(s)
	in.src = NewPump(open, func(f func()) { go f() }, o.wake)
	return in, nil
}

// waits tells whether reading a file may take as long as somebody pleases.
func (o *opener) waits(s *Split) bool {
	if s.Path == vfs.Stdin {
		return true
	}
	if s.Length >= 0 {
		return false // only files on disks are cut
	}
	info, err := o.fs.Stat(s.Path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}
