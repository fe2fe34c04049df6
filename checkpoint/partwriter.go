package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io/fs"
	"math"
	"path"

	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend"
)

// The format of chunks: a header, blocks, a digest. docs/formats/snapshot.md describes it.
const (
	// ChunkVersion is the version of the chunk format that this program writes, and the highest that it reads.
	ChunkVersion = 1

	chunkMagic  = "FLTC"
	chunkSuffix = ".chunk"
	fileSuffix  = ".file" // of files of backends
	chunkHeader = 8       // magic, version
	blockHeader = 16      // checksum, bytes, rows, index, group
	blockTarget = 64 << 10
	flushBytes  = 256 << 10
	digestBytes = len(digest{})
)

// partWriter writes one part: rows gather in a block, blocks in a buffer, buffers in a file, files in the part.
type partWriter struct {
	fs                  vfs.FS
	ctx                 context.Context
	folder, operator    string
	token               string
	chunkBytes          int64
	inlineBytes         int
	part                *Part
	layer               int              // of the chunks that are written
	files               []string         // written so far
	to                  vfs.DirectWriter // nil: there is no file yet
	direct              *DirectFiles     // where it comes from
	memory              statebackend.Budget
	number              int    // of the last file
	chunk               *chunk // nil: none is open
	inFile              bool   // the chunk has a file
	flushed             int64  // bytes of the chunk that the file was given
	buf                 []byte
	headers             hash.Hash // over the chunk's header and those of its blocks
	crc                 *crc32.Table
	index, group        int     // of the open section; group is -1 before its first row
	section             section // the open section
	open                bool    // a block is open
	blockAt, blockCount int
	last                lastKey
}

// size is the number of bytes of the open chunk.
func (p *partWriter) size() int64 { return p.flushed + int64(len(p.buf)) }

// begin begins a section.
func (p *partWriter) begin(index int) {
	p.index, p.group = index, -1
	p.section = section{index: index, place: index}
}

// end ends a section; one without rows leaves nothing.
func (p *partWriter) end() error {
	if err := p.seal(); err != nil {
		return err
	}
	if p.section.rows > 0 {
		p.chunk.sections = append(p.chunk.sections, p.section)
	}
	p.section = section{}
	return nil
}

// openBlock begins a block of the section's group, and a chunk if none is open.
func (p *partWriter) openBlock() {
	if p.chunk == nil {
		p.chunk = &chunk{layer: p.layer}
		p.flushed = 0
		p.buf = append(p.buf[:0], chunkMagic...)
		p.buf = binary.LittleEndian.AppendUint32(p.buf, ChunkVersion)
		if p.headers == nil {
			p.headers = sha256.New()
			p.crc = crc32.MakeTable(crc32.Castagnoli)
		}
		p.headers.Reset()
		p.headers.Write(p.buf)
	}
	p.open, p.blockAt, p.blockCount = true, len(p.buf), 0
	p.last.valid = false
	p.buf = append(p.buf, make([]byte, blockHeader)...)
}

// wrote counts a row of the open block.
func (p *partWriter) wrote() error {
	p.blockCount++
	return p.sealIfFull()
}

// sealIfFull seals the open block if it is large enough.
func (p *partWriter) sealIfFull() error {
	if len(p.buf)-p.blockAt < blockTarget {
		return nil
	}
	return p.seal()
}

// seal ends the open block, if there is one.
func (p *partWriter) seal() error {
	if !p.open {
		return nil
	}
	p.open = false
	block := p.buf[p.blockAt:]
	payload := len(block) - blockHeader
	if uint64(payload) > math.MaxUint32 {
		return fmt.Errorf("a row of %d bytes: the most are 4 GiB", payload)
	}
	binary.LittleEndian.PutUint32(block[4:], uint32(payload))
	binary.LittleEndian.PutUint32(block[8:], uint32(p.blockCount))
	binary.LittleEndian.PutUint16(block[12:], uint16(p.index))
	binary.LittleEndian.PutUint16(block[14:], uint16(p.group))
	binary.LittleEndian.PutUint32(block, crc32.Update(0, p.crc, block[4:]))
	p.headers.Write(block[:blockHeader])
	s := &p.section
	s.rows += int64(p.blockCount)
	if n := len(s.groups); n == 0 || s.groups[n-1].group != p.group {
		s.groups = append(s.groups, groupBytes{group: p.group})
	}
	s.groups[len(s.groups)-1].bytes += int64(len(block))
	if len(p.buf) < p.flushAt() {
		return nil
	}
	return p.flush()
}

// flushAt is how full the buffer is to be: once it is that of a file, so full that there is just room for a block.
func (p *partWriter) flushAt() int {
	at := max(flushBytes, p.inlineBytes+1)
	if p.inFile {
		at = max(at, cap(p.buf)-2*blockTarget)
	}
	return at
}

// flush writes the buffer to the chunk's file, which it makes if there is none.
func (p *partWriter) flush() error {
	if err := p.ctx.Err(); err != nil {
		return context.Cause(p.ctx)
	}
	if err := p.openFile(); err != nil {
		return err
	}
	n := len(p.buf)
	var err error
	p.buf, err = p.to.Write(p.buf)
	p.flushed += int64(n - len(p.buf))
	return err
}

// openFile makes the chunk's file if there is none.
func (p *partWriter) openFile() (err error) {
	if p.inFile {
		return nil
	}
	p.chunk.path, err = p.create(chunkSuffix)
	p.inFile = err == nil
	return err
}

// create makes a file of a name that no other has: a frozen attempt may write for the same checkpoint, too, and litter of an
// earlier one may be there.
func (p *partWriter) create(suffix string) (name string, err error) {
	stem := fmt.Sprintf("%s-%d", p.operator, p.part.Subtask)
	if p.token != "" {
		stem += "-" + p.token
	}
	for {
		p.number++
		name = fmt.Sprintf("%s-%d%s", stem, p.number, suffix)
		full := path.Join(p.folder, name)
		if p.to == nil {
			p.to = p.direct.take(p.fs, p.folder)
			if p.memory != nil {
				p.to.Use(p.memory)
			}
		}
		err := p.to.Create(full)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			p.files = append(p.files, full)
		}
		return name, err
	}
}

// endChunk ends the open section and the chunk: in a file, or in the part if it is small.
func (p *partWriter) endChunk() error {
	if err := p.end(); err != nil || p.chunk == nil {
		return err
	}
	copy(p.chunk.digest[:], p.headers.Sum(nil))
	p.buf = append(p.buf, p.chunk.digest[:]...)
	p.chunk.size = p.size()
	if !p.inFile && len(p.buf) <= p.inlineBytes {
		p.chunk.inline = append([]byte(nil), p.buf...)
	} else if err := p.closeFile(); err != nil {
		return err
	}
	p.part.chunks = append(p.part.chunks, *p.chunk)
	p.chunk = nil
	return nil
}

// closeFile writes the rest of a chunk's file. It is durable once everything is.
func (p *partWriter) closeFile() (err error) {
	if err := p.ctx.Err(); err != nil {
		return context.Cause(p.ctx)
	}
	if err := p.openFile(); err != nil {
		return err
	}
	p.inFile = false
	p.buf, err = p.to.End(p.buf)
	return err
}

// finish ends the part and makes the names of its files durable.
func (p *partWriter) finish() error {
	if err := p.endChunk(); err != nil {
		return err
	}
	if p.to == nil {
		return nil
	}
	err := p.to.Wait()
	p.buf = nil // it is not ours any more
	if err != nil || len(p.files) == 0 {
		return err
	}
	return p.fs.SyncDir(p.folder)
}

// discard removes the files of a part that failed; what can't be removed stays as litter.
func (p *partWriter) discard() {
	if p.to != nil {
		_ = p.to.Wait()
	}
	p.buf = nil
	for _, name := range p.files {
		_ = p.fs.Remove(name)
	}
}
