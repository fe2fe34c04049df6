package file

import (
	"fmt"
	"io"
)

// Charset is an encoding of text.
type Charset string

const (
	// UTF8 is the default: bytes are taken as they are.
	UTF8 Charset = "UTF-8"
	// Latin1 is ISO 8859-1: every byte is the code point of that number.
	Latin1 Charset = "ISO-8859-1"
)

func (c Charset) check() error {
	switch c {
	case "", UTF8, Latin1:
		return nil
	}
	return fmt.Errorf("unknown charset %q", string(c))
}

// plain tells whether a file is read as it lies on the disk, so that it can be cut and read from anywhere.
func (s *settings) plain(path string) bool { return s.charset == "" || s.charset == UTF8 }

func (s *settings) decode(raw *stored) (io.Reader, error) { return raw, nil }
