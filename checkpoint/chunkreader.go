package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"

	"github.com/flott-dev/flott/internal/vfs"
)

// readBytes is how much of a chunk is read at a time, unless a block is larger.
const readBytes = 256 << 10

// Layers of changes are read side by side, each ahead. Those of a long chain are read in smaller pieces, so that all together hold
// about layersBytes, but in pieces of leastRead at least.
const (
	layersBytes = 16 << 20
	layersFew   = 8
	leastRead   = 64 << 10
)

// stepOf is how much of each of so many layers is read at a time; 0: as if it were alone.
func stepOf(layers int) int {
	if layers <= layersFew {
		return 0
	}
	return min(readBytes, max(leastRead, layersBytes/(layers*aheadBuffers)))
}

// chunkReader reads one chunk. What it gives was checked.
type chunkReader struct {
	chunk *chunk
	name  string // in errors
	r     io.ReaderAt
	close func() error
	crc   *crc32.Table
	buf   []byte
	step  int // bytes that are read at a time; 0: readBytes, or aheadBytes if that is ahead
}

// openChunk opens a chunk and checks that it is the one that the manifest means.
func openChunk(f vfs.FS, folder string, c *chunk) (*chunkReader, error) {
	r := &chunkReader{chunk: c, crc: crc32.MakeTable(crc32.Castagnoli)}
	size := int64(len(c.inline))
	if c.path == "" {
		r.name = "in the manifest of " + folder
		r.r, r.close = bytes.NewReader(c.inline), func() error { return nil }
	} else {
		r.name = inFolder(folder, c.path)
		file, err := f.Open(r.name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &DamagedError{File: r.name, Reason: "it does not exist"}
		}
		if err != nil {
			return nil, err
		}
		r.r, r.close = file, file.Close
		info, err := file.Stat()
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		size = info.Size()
	}
	if err := r.identify(size); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *chunkReader) damaged(format string, args ...any) error {
	return &DamagedError{File: r.name, Reason: fmt.Sprintf(format, args...)}
}

// identify checks header, size and digest.
func (r *chunkReader) identify(size int64) error {
	var header [chunkHeader]byte
	if err := r.readAt(header[:], 0); err != nil {
		return err
	}
	if string(header[:4]) != chunkMagic {
		return r.damaged("it begins with %q, not %q: it is no chunk", header[:4], chunkMagic)
	}
	if v := binary.LittleEndian.Uint32(header[4:]); v != ChunkVersion {
		return &VersionError{File: r.name, Format: "chunk", Version: v, Known: ChunkVersion}
	}
	if size != r.chunk.size {
		return r.damaged("it has %d bytes and should have %d", size, r.chunk.size)
	}
	var d digest
	if err := r.readAt(d[:], size-int64(digestBytes)); err != nil {
		return err
	}
	if d != r.chunk.digest {
		return r.damaged("its digest is %x, but the manifest means the chunk with digest %x", d, r.chunk.digest)
	}
	return nil
}

// readAt fills b; a file that ends before is damaged.
func (r *chunkReader) readAt(b []byte, at int64) error {
	n, err := r.r.ReadAt(b, at)
	return r.whole(n, len(b), at, err)
}

// whole gives the error of reading want bytes, of which there were n.
func (r *chunkReader) whole(n, want int, at int64, err error) error {
	if n == want {
		return nil
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return r.damaged("it ends at byte %d, within what byte %d begins", at+int64(n), at)
	}
	return err
}

// block is a checked block of a chunk. Its bytes are valid until the next one is read.
type block struct {
	at      int64 // in the chunk
	header  []byte
	payload []byte
	rows    uint32
	group   int
}

// blocks calls f for each block of a section, in order; at is where the section begins. It stops when f returns false or an
// error.
func (r *chunkReader) blocks(s *section, at int64, f func(*block) (bool, error)) error {
	w := window{r: r, at: at, end: at + s.bytes()}
	defer w.leave()
	for _, g := range s.groups {
		for left := g.bytes; left > 0; {
			b, err := w.next(s.index, g.group, left)
			if err != nil {
				return err
			}
			left -= b.bytes()
			if more, err := f(&b); err != nil || !more {
				return err
			}
		}
	}
	return nil
}

// window is a range of a chunk that is read from front to back, through a buffer.
type window struct {
	r       *chunkReader
	at, end int64  // what is still to be read into the buffer
	b       []byte // what was read and not yet given
	ahead   *readAhead
}

// bytes is what the block takes in the chunk.
func (b *block) bytes() int64 { return int64(blockHeader + len(b.payload)) }

// next gives the next block, which is of a table and a key group and has at most left bytes.
func (w *window) next(index, group int, left int64) (block, error) {
	at := w.at - int64(len(w.b))
	b, err := w.block(left)
	if err != nil {
		return block{}, err
	}
	b.at = at
	if got := int(binary.LittleEndian.Uint16(b.header[12:])); got != index || b.group != group {
		return block{}, w.r.damaged("the block at byte %d is of table %d, key group %d, where table %d, key group %d should be",
			at, got, b.group, index, group)
	}
	return b, nil
}

// block reads and checks a block that has at most left bytes.
func (w *window) block(left int64) (b block, err error) {
	at := w.at - int64(len(w.b))
	if left < blockHeader {
		return b, w.r.damaged("the block at byte %d has %d bytes only", at, left)
	}
	if err := w.fill(blockHeader); err != nil {
		return b, err
	}
	n := int64(binary.LittleEndian.Uint32(w.b[4:]))
	if n > left-blockHeader || n > math.MaxInt-blockHeader {
		return b, w.r.damaged("the block at byte %d has %d bytes, where %d are left", at, n, left-blockHeader)
	}
	size := blockHeader + int(n)
	if err := w.fill(size); err != nil {
		return b, err
	}
	b.header, b.payload = w.b[:blockHeader], w.b[blockHeader:size:size]
	want, got := binary.LittleEndian.Uint32(b.header), crc32.Update(0, w.r.crc, w.b[4:size])
	if got != want {
		return b, w.r.damaged("the checksum of the block at byte %d is %08x and should be %08x", at, got, want)
	}
	if b.rows = binary.LittleEndian.Uint32(b.header[8:]); b.rows == 0 {
		return b, w.r.damaged("the block at byte %d has no rows", at)
	}
	b.group = int(binary.LittleEndian.Uint16(b.header[14:]))
	w.b = w.b[size:]
	return b, nil
}

// leave ends what reads ahead.
func (w *window) leave() {
	if w.ahead != nil {
		w.ahead.end()
		w.ahead = nil
	}
}

// fill sees to it that n bytes are in the buffer, of which the window has so many left.
func (w *window) fill(n int) error {
	if len(w.b) >= n {
		return nil
	}
	if w.ahead == nil && w.end-w.at >= aheadLeast && w.r.chunk.path != "" {
		w.ahead = newReadAhead(w.r.r, w.at, w.end, cmp.Or(w.r.step, aheadBytes))
	}
	if w.ahead != nil {
		return w.fillAhead(n)
	}
	r := w.r
	if want := max(n, int(min(int64(cmp.Or(r.step, readBytes)), w.end-w.at+int64(len(w.b))))); len(r.buf) < want {
		kept := w.b
		r.buf = make([]byte, want)
		w.b = r.buf[:copy(r.buf, kept)]
	}
	kept := copy(r.buf, w.b)
	more := int(min(int64(len(r.buf)-kept), w.end-w.at))
	if err := r.readAt(r.buf[kept:kept+more], w.at); err != nil {
		return err
	}
	w.at += int64(more)
	w.b = r.buf[:kept+more]
	return nil
}

// fillAhead is fill with what was read ahead, which is not copied but for the end of a buffer.
func (w *window) fillAhead(n int) error {
	for len(w.b) < n {
		b, err := w.ahead.more(w.b)
		if err != nil {
			return w.r.whole(len(w.b), n, w.at-int64(len(w.b)), err)
		}
		w.at += int64(len(b) - len(w.b))
		w.b = b
	}
	return nil
}

// bytes is what the section takes.
func (s *section) bytes() int64 {
	n := int64(0)
	for _, g := range s.groups {
		n += g.bytes
	}
	return n
}
