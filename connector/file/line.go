package file

import "bytes"

// lineCounter goes through a file to count its lines.
type lineCounter struct {
	in   *Input
	buf  []byte
	at   int64
	line int64 // of at
}

// to is the number of the line at an offset that is not before that of the last call; 0 if it can't be read.
func (c *lineCounter) to(at int64) int64 {
	if c.buf == nil {
		c.buf = make([]byte, 32<<10)
	}
	for c.at < at {
		n, err := c.in.src.Read(c.buf[:min(int64(len(c.buf)), at-c.at)])
		c.line += int64(bytes.Count(c.buf[:n], []byte{'\n'}))
		c.at += int64(n)
		if err != nil && c.at < at {
			return 0
		}
	}
	return c.line
}
