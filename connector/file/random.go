package file

import (
	"errors"
	"fmt"
	"io"

	"github.com/flott-dev/flott/internal/vfs"
)

// ErrSequential says that a file can't be read from anywhere, as its format wants.
var ErrSequential = errors.New("the format needs a plain file, not a stream or one that is compressed as a whole or in a charset")

// ReaderAt gives the whole file and its size, for formats that read from its end or here and there; the window is then
// of no use. It is for the goroutine of the decoder, and for as long as the split is read. The error wraps ErrSequential
// where the file can be read from begin to end only.
func (in *Input) ReaderAt() (r io.ReaderAt, size int64, err error) {
	switch src := in.src.(type) {
	case *stored:
		return &anywhere{in: in, file: src.file}, in.size, nil
	case interface { // such as a bytes.Reader, in tests of formats
		io.ReaderAt
		Size() int64
	}:
		return src, src.Size(), nil
	}
	return nil, 0, fmt.Errorf("read %s: %w", in.path, ErrSequential)
}

// anywhere counts the bytes that are read and names the place of errors.
type anywhere struct {
	in   *Input
	file vfs.File
}

// ReadAt implements io.ReaderAt.
func (a *anywhere) ReadAt(p []byte, off int64) (int, error) {
	n, err := a.file.ReadAt(p, off)
	a.in.read += int64(n)
	if err != nil && err != io.EOF {
		err = &Error{Path: a.in.path, Offset: off, Err: err}
	}
	return n, err
}

// taken is a number of bytes that grows as the file is read.
func (in *Input) taken() int64 { return in.Offset() + in.read }
