package localcopy

import (
	"encoding/binary"
	"hash"
	"hash/crc32"
	"path"

	"github.com/flott-dev/flott/internal/vfs"
)

// A copy is the bytes of the file and behind them: their number (8 bytes), their CRC-32C (4), the magic; little-endian. It is
// not synced: what a crash leaves of it, the checksum tells.
const (
	magic      = "FLTL"
	trailLen   = 16
	verifyStep = 256 << 10
)

func trail(size int64, sum uint32) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(size))
	return append(binary.LittleEndian.AppendUint32(b, sum), magic...)
}

func newSum() hash.Hash32 { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }

// writer writes a file and its copy.
type writer struct {
	vfs.Writer
	copy *copying // nil: there is none, or none any more
}

// Write implements io.Writer: only the storage's errors count.
func (w *writer) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if w.copy != nil && (err != nil || !w.copy.write(p)) {
		w.copy.giveUp()
		w.copy = nil
	}
	return n, err
}

// Close implements io.Closer: the copy gets its name once the file has its own.
func (w *writer) Close() error {
	err := w.Writer.Close()
	c := w.copy
	w.copy = nil
	switch {
	case c == nil:
	case err != nil:
		c.giveUp()
	default:
		c.finish()
	}
	return err
}

// copying is a copy that is being written.
type copying struct {
	f    *FS
	name string // in the end
	file vfs.Writer
	sum  hash.Hash32
	size int64
}

// newCopy begins a copy; nil if the disk does not let us.
func (f *FS) newCopy(name string) *copying {
	file, err := f.opt.Disk.Create(name+writing, vfs.Truncate)
	if err != nil { // the first one finds no folder
		if err = f.opt.Disk.MkdirAll(path.Dir(name)); err == nil {
			file, err = f.opt.Disk.Create(name+writing, vfs.Truncate)
		}
	}
	if err != nil {
		f.lost.Add(1)
		return nil
	}
	return &copying{f: f, name: name, file: file, sum: newSum()}
}

func (c *copying) write(p []byte) bool {
	_, err := vfs.WriteAll(c.file, p)
	c.sum.Write(p)
	c.size += int64(len(p))
	return err == nil
}

func (c *copying) finish() {
	_, err := c.file.Write(trail(c.size, c.sum.Sum32()))
	if closed := c.file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = c.f.opt.Disk.Rename(c.name+writing, c.name)
	}
	if err != nil {
		c.f.lost.Add(1)
		_ = c.f.opt.Disk.Remove(c.name + writing)
	}
}

// giveUp drops a copy that will not be whole.
func (c *copying) giveUp() {
	c.f.lost.Add(1)
	_ = c.file.Close()
	_ = c.f.opt.Disk.Remove(c.name + writing)
}
