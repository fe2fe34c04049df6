// Package file reads files in parallel and writes them: a source over files, folders and globs with any record format, a
// text format and a text sink. It owns how files are found, cut into splits, decompressed, decoded and framed into
// records; formats (this package's, connector/csv, connector/jsonl, the user's) turn records into elements. It knows no
// engine: the engine drives it through package connector.
package file

import "math"

// Split is a part of a file, the unit of work of a reader. A record belongs to the split in which it begins; one that
// begins exactly at the end belongs to it, too, and the next split skips it.
type Split struct {
	// Path is the name of the file.
	Path string
	// Start is the split's first byte.
	Start int64
	// Length is the number of bytes; -1: up to the end of a file that can't be cut.
	Length int64
	// Position is where the next record to read begins; Start while nothing was read. It counts the bytes of the decoded
	// text where a file is compressed or in another charset.
	Position int64
	// Skip is the number of records behind Position that were read, in formats whose records lie in blocks: only blocks
	// have positions there.
	Skip int64
}

// end is the last position at which a record of this split may begin.
func (s *Split) end() int64 {
	if s.Length < 0 {
		return math.MaxInt64
	}
	return s.Start + s.Length
}
