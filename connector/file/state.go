package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// stateVersion is the first byte of an enumerator's snapshot. Version 2 holds, with numbers as varints and texts behind
// their lengths: the number of pending splits, each as path, start, length, position, records to skip; the number of
// files seen, each as path, size, time of change, scans absent. Version 1, which is read as well, has no records to skip.
const stateVersion = 2

var errState = errors.New("snapshot is cut off or damaged")

func encodeState(pending []Split, seen seenFiles) []byte {
	b := []byte{stateVersion}
	b = binary.AppendUvarint(b, uint64(len(pending)))
	for _, s := range pending {
		b = appendText(b, s.Path)
		b = appendNumbers(b, s.Start, s.Length, s.Position, s.Skip)
	}
	b = binary.AppendUvarint(b, uint64(len(seen)))
	for _, p := range slices.Sorted(maps.Keys(seen)) { // the same state gives the same bytes
		b = appendText(b, p)
		b = appendNumbers(b, seen[p].size, seen[p].modified, seen[p].absent)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendNumbers(b []byte, ns ...int64) []byte {
	for _, n := range ns {
		b = binary.AppendVarint(b, n)
	}
	return b
}

func decodeState(b []byte) ([]Split, seenFiles, error) {
	if len(b) == 0 {
		return nil, nil, errState
	}
	if b[0] < 1 || b[0] > stateVersion {
		return nil, nil, fmt.Errorf("snapshot of version %d; this program reads versions up to %d", b[0], stateVersion)
	}
	d := stateDecoder{b: b[1:]}
	var pending []Split
	for n := d.length(); n > 0 && !d.bad; n-- {
		s := Split{Path: d.text(), Start: d.number(), Length: d.number(), Position: d.number()}
		if b[0] >= 2 {
			s.Skip = d.number()
		}
		pending = append(pending, s)
	}
	seen := seenFiles{}
	for n := d.length(); n > 0 && !d.bad; n-- {
		seen[d.text()] = seenFile{d.number(), d.number(), d.number()}
	}
	if d.bad || len(d.b) > 0 {
		return nil, nil, errState
	}
	return pending, seen, nil
}

// stateDecoder reads a snapshot; bad is set when it is not one.
type stateDecoder struct {
	b   []byte
	bad bool
}

func (d *stateDecoder) number() int64 {
	n, size := binary.Varint(d.b)
	d.skip(size)
	return n
}

// length reads a number of things that take a byte each, at least.
func (d *stateDecoder) length() int {
	n, size := binary.Uvarint(d.b)
	d.skip(size)
	if n > uint64(len(d.b)) {
		d.bad = true
		return 0
	}
	return int(n)
}

func (d *stateDecoder) text() string {
	n := d.length()
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func (d *stateDecoder) skip(size int) {
	if size <= 0 {
		d.bad = true
		d.b = nil
		return
	}
	d.b = d.b[size:]
}
