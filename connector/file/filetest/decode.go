package filetest

import (
	"io"
	"strings"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/internal/frame"
)

// Decode reads a text with a format, as one split that comes in pieces of up to chunk bytes.
func Decode[T any](format file.Format[T], text string, chunk int) ([]T, error) {
	typ, err := frame.TypeOf[T]()
	if err != nil {
		return nil, err
	}
	if err := format.Check(); err != nil {
		return nil, err
	}
	d, err := format.Decoder(file.NewInput("f", chunks{strings.NewReader(text), chunk}))
	if err != nil {
		return nil, err
	}
	var all []T
	col := frame.NewColumn(typ, 16)
	out := connector.NewOutput[T](col, func(frame.Mark) error { return nil })
	for err == nil {
		col.Reset()
		err = d.Decode(out)
		run := col.Run()
		all = append(all, frame.Values[T](&run)...)
	}
	if err == io.EOF {
		err = nil
	}
	return all, err
}

// chunks reads a few bytes at a time.
type chunks struct {
	io.Reader
	n int
}

func (c chunks) Read(p []byte) (int, error) { return c.Reader.Read(p[:min(len(p), c.n)]) }
