package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Format is what the files of a store in a snapshot are called (statebackend.FileSet.Format). docs/formats/pebble-files.md
// describes them.
const Format = "pebble/1"

// meta is what a snapshot says beside the files.
type meta struct {
	overlay string // local name of the table of the cache's rows; empty: there is none
	tables  []metaTable
	files   []metaFile
}

// metaTable is a table, or a part of it, in the tree.
type metaTable struct {
	name string
	shape
	n    int
	last uint64
}

// metaFile is a file of the tree: a file of the set under another name, or one that is here.
type metaFile struct {
	local string
	name  string // in the set; empty: content
	body  []byte
}

func (m *meta) encode() []byte {
	b := appendText(nil, m.overlay)
	b = binary.AppendUvarint(b, uint64(len(m.tables)))
	for i := range m.tables {
		t := &m.tables[i]
		b = appendText(b, t.name)
		b = append(b, byte(t.kind), flag(t.namespaced)|flag(t.dated)<<1)
		b = binary.AppendUvarint(b, uint64(t.key))
		b = binary.AppendUvarint(b, uint64(t.namespace))
		for _, space := range t.used() {
			b = binary.AppendUvarint(b, uint64(space))
		}
		b = binary.AppendUvarint(b, uint64(t.n+1)) // 0: to be counted
		b = binary.AppendUvarint(b, t.last)
	}
	b = binary.AppendUvarint(b, uint64(len(m.files)))
	for i := range m.files {
		f := &m.files[i]
		b = appendText(b, f.local)
		b = appendText(b, f.name)
		if f.name == "" {
			b = appendText(b, string(f.body))
		}
	}
	return b
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// metaReader reads what encode wrote.
type metaReader struct {
	b   []byte
	err error
}

func (r *metaReader) fail() {
	if r.err == nil {
		r.err = errors.New("it is damaged")
	}
	r.b = nil
}

func (r *metaReader) number(most uint64) uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 || n > most {
		r.fail()
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *metaReader) bytes() []byte {
	n := r.number(uint64(len(r.b)))
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func decodeMeta(b []byte) (*meta, error) {
	r := &metaReader{b: b}
	m := &meta{overlay: string(r.bytes())}
	if m.overlay != "" && !fileName(m.overlay) {
		r.fail()
	}
	for n := r.number(uint64(len(r.b))); n > 0 && r.err == nil; n-- {
		m.tables = append(m.tables, r.table())
	}
	for n := r.number(uint64(len(r.b))); n > 0 && r.err == nil; n-- {
		f := metaFile{local: string(r.bytes()), name: string(r.bytes())}
		if f.name == "" {
			f.body = r.bytes()
		}
		if !fileName(f.local) {
			r.fail()
		}
		m.files = append(m.files, f)
	}
	if len(r.b) > 0 {
		r.fail()
	}
	if r.err != nil {
		return nil, fmt.Errorf("read what a snapshot says of the files of a disk store: %w", r.err)
	}
	return m, nil
}

func (r *metaReader) table() (t metaTable) {
	t.name = string(r.bytes())
	t.kind = kind(r.number(uint64(timerRows)))
	flags := r.number(3)
	t.namespaced, t.dated = flags&1 != 0, flags&2 != 0
	t.key, t.namespace = int(r.number(1<<16)), int(r.number(1<<16))
	if t.kind == 0 {
		r.fail()
	}
	for i := range t.used() {
		if t.spaces[i] = uint16(r.number(lastSpace)); t.spaces[i] == 0 {
			r.fail()
		}
	}
	t.n = int(r.number(1<<62)) - 1
	t.last = r.number(1<<64 - 1)
	return t
}

// fileName says whether a name can be that of a file in a folder, and of no other.
func fileName(name string) bool {
	if name == "" || name[0] == '.' || len(name) > 200 {
		return false
	}
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_' {
			return false
		}
	}
	return true
}
