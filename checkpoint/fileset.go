package checkpoint

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend"
)

// fileSet is the files of a backend in a part.
type fileSet struct {
	format string
	meta   []byte
	files  []storedFile
}

// storedFile is a file of a backend, as it lies in a snapshot.
type storedFile struct {
	// name is what the backend calls it.
	name string
	// path is the file, seen from the snapshot's folder.
	path   string
	size   int64
	digest digest
}

// bytes is what all files take.
func (s *fileSet) bytes() int64 {
	n := int64(0)
	for i := range s.files {
		n += s.files[i].size
	}
	return n
}

func (s *fileSet) encode(e *encoder) {
	e.string(s.format)
	e.bytes(s.meta)
	e.uint(uint64(len(s.files)))
	for i := range s.files {
		f := &s.files[i]
		e.bytes([]byte(f.name))
		e.bytes([]byte(f.path))
		e.uint(uint64(f.size))
		e.raw(f.digest[:])
	}
}

func decodeFiles(d *decoder) *fileSet {
	s := &fileSet{format: d.string(), meta: d.bytes()}
	for range d.items(3 + digestBytes) {
		f := storedFile{name: string(d.bytes()), path: string(d.bytes()), size: int64(d.number(maxChunk))}
		copy(f.digest[:], d.take(uint64(digestBytes)))
		s.files = append(s.files, f)
	}
	return s
}

func (s *fileSet) check() error {
	if s.format == "" {
		return errors.New("files of a backend without a format")
	}
	names := make(map[string]bool, len(s.files))
	for i := range s.files {
		f := &s.files[i]
		if names[f.name] || !isFilePath(f.path) || f.size < 0 || f.size > maxChunk {
			return fmt.Errorf("file %d of the backend (%q, at %q, %d bytes) can't be", i+1, f.name, f.path, f.size)
		}
		names[f.name] = true
	}
	return nil
}

// pieceBytes is how much of a file one checksum covers.
const pieceBytes = 64 << 10

// fileDigest makes the digest of a file while it is read or written: that of the checksums of its pieces, which costs next to
// nothing.
type fileDigest struct {
	pieces hash.Hash
	table  *crc32.Table
	crc    uint32
	n      int // bytes of the open piece
}

func newFileDigest() *fileDigest {
	return &fileDigest{pieces: sha256.New(), table: crc32.MakeTable(crc32.Castagnoli)}
}

func (d *fileDigest) write(b []byte) {
	for len(b) > 0 {
		k := min(len(b), pieceBytes-d.n)
		d.crc = crc32.Update(d.crc, d.table, b[:k])
		if d.n, b = d.n+k, b[k:]; d.n == pieceBytes {
			d.seal()
		}
	}
}

func (d *fileDigest) seal() {
	c := d.crc
	d.pieces.Write([]byte{byte(c), byte(c >> 8), byte(c >> 16), byte(c >> 24)})
	d.crc, d.n = 0, 0
}

// sum ends the file.
func (d *fileDigest) sum() (out digest) {
	if d.n > 0 {
		d.seal()
	}
	copy(out[:], d.pieces.Sum(nil))
	return out
}

// open opens a stored file. Who reads it to its end knows that it is what was written, or gets a *DamagedError.
func (f *storedFile) open(from vfs.FS, folder string) (io.ReadCloser, error) {
	name := inFolder(folder, f.path)
	file, err := from.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &DamagedError{File: name, Reason: "it does not exist"}
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Size() != f.size {
		err = &DamagedError{File: name, Reason: fmt.Sprintf("it has %d bytes and should have %d", info.Size(), f.size)}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &checkedFile{file: file, name: name, want: f, digest: newFileDigest(), left: f.size}, nil
}

// checkedFile checks a stored file while it is read.
type checkedFile struct {
	file   vfs.File
	name   string
	want   *storedFile
	digest *fileDigest
	left   int64
	end    error // what Read gives once everything was read
}

// Read implements io.Reader.
func (c *checkedFile) Read(b []byte) (int, error) {
	if c.left == 0 {
		if c.end == nil {
			c.end = io.EOF
			if got := c.digest.sum(); got != c.want.digest {
				c.end = &DamagedError{File: c.name, Reason: fmt.Sprintf("its digest is %x and should be %x", got, c.want.digest)}
			}
		}
		return 0, c.end
	}
	if len(b) == 0 {
		return 0, nil
	}
	n, err := c.file.Read(b[:min(int64(len(b)), c.left)])
	c.digest.write(b[:n])
	c.left -= int64(n)
	if err == io.EOF && c.left > 0 {
		return n, &DamagedError{File: c.name, Reason: fmt.Sprintf("it ends %d bytes too early", c.left)}
	}
	if err == io.EOF {
		err = nil
	}
	return n, err
}

// Close implements io.Closer.
func (c *checkedFile) Close() error { return c.file.Close() }

// verify reads the whole file.
func (f *storedFile) verify(from vfs.FS, folder string) error {
	r, err := f.open(from, folder)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return errors.Join(err, r.Close())
}

// probe looks whether the file is there.
func (f *storedFile) probe(from vfs.FS, folder string) error {
	r, err := f.open(from, folder)
	if err != nil {
		return err
	}
	return r.Close()
}

// as is the set as its backend sees it.
func (s *fileSet) as(from vfs.FS, folder string) statebackend.FileSet {
	set := statebackend.FileSet{Format: s.format, Meta: s.meta, Files: make([]statebackend.File, len(s.files))}
	for i := range s.files {
		f := &s.files[i]
		set.Files[i] = statebackend.File{
			Name: f.name, Size: f.size, Open: func() (io.ReadCloser, error) { return f.open(from, folder) },
		}
	}
	return set
}
