package heap

import (
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/flott-dev/flott/statebackend"
)

// rowLog keeps rows as bytes, in order. It is filled on one goroutine and then read by any.
type rowLog struct {
	*ledger
	chunks [][]byte
	bytes  int64 // that the chunks hold
}

// A log's chunks double in size from the first to the last of these; larger rows have one of their own.
const (
	firstLogChunk = 1 << 10
	logChunk      = 64 << 10
)

// add appends a copy of a row.
func (l *rowLog) add(r *statebackend.Row) error {
	n := 5*binary.MaxVarintLen64 + 16 + len(r.Key) + len(r.Namespace) + len(r.MapKey) + len(r.Value)
	last := len(l.chunks) - 1
	if last < 0 || cap(l.chunks[last])-len(l.chunks[last]) < n {
		size := max(l.chunkSize(), n)
		if err := l.reserve(int64(size)); err != nil {
			return err
		}
		l.chunks = append(l.chunks, make([]byte, 0, size))
		l.bytes += int64(size)
		last++
	}
	b := binary.AppendUvarint(l.chunks[last], uint64(r.Group))
	b = binary.LittleEndian.AppendUint64(b, r.Hash)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.At))
	for _, part := range [][]byte{r.Key, r.Namespace, r.MapKey, r.Value} {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	l.chunks[last] = b
	return nil
}

// chunkSize is the size of the next chunk.
func (l *rowLog) chunkSize() int {
	if len(l.chunks) == 0 {
		return firstLogChunk
	}
	return min(max(firstLogChunk, 2*cap(l.chunks[len(l.chunks)-1])), logChunk)
}

// rows gives the rows of a table that info describes.
func (l *rowLog) rows(info *statebackend.TableInfo) iter.Seq2[*statebackend.Row, error] {
	chunks := l.chunks
	return func(yield func(*statebackend.Row, error) bool) {
		var r statebackend.Row
		for _, b := range chunks {
			for len(b) > 0 {
				b = readLogged(b, &r)
				if info.Namespace == nil {
					r.Namespace = nil
				}
				if info.MapKey == nil {
					r.MapKey = nil
				}
				if !yield(&r, nil) {
					return
				}
			}
		}
	}
}

// readLogged takes a row from the front of a log.
func readLogged(b []byte, r *statebackend.Row) (rest []byte) {
	group, n := binary.Uvarint(b)
	b = b[n:]
	r.Group = int(group)
	r.Hash = binary.LittleEndian.Uint64(b)
	r.At = int64(binary.LittleEndian.Uint64(b[8:]))
	b = b[16:]
	for _, part := range []*[]byte{&r.Key, &r.Namespace, &r.MapKey, &r.Value} {
		size, n := binary.Uvarint(b)
		end := n + int(size)
		*part = b[n:end:end]
		b = b[end:]
	}
	return b
}

func (l *rowLog) close() {
	l.release(l.bytes)
	l.chunks, l.bytes = nil, 0
}

// keptTable is a table of a snapshot that the program does not open. Its rows go from snapshot to snapshot.
type keptTable struct {
	statebackend.TableInfo
	log   rowLog
	based bool // a base has the rows
}

func (k *keptTable) close() { k.log.close() }

func (k *keptTable) table() statebackend.FrozenTable {
	return statebackend.FrozenTable{TableInfo: k.TableInfo, Rows: k.log.rows(&k.TableInfo)}
}

// freeze gives the table to a snapshot. It does not change.
func (k *keptTable) freeze(how statebackend.Freezing) statebackend.FrozenTable {
	t := k.table()
	if how.Changes && k.based {
		t.Changes = true
		t.Rows = func(func(*statebackend.Row, error) bool) {}
	}
	k.based = k.based || how.Anchor
	return t
}

// keepUnopened reads the tables of the snapshot that nobody has opened, once.
func (s *store) keepUnopened() error {
	if s.frozen || s.Restored == nil {
		s.frozen = true
		return nil
	}
	for _, name := range s.Restored.Tables() {
		if _, opened := s.names[name]; opened {
			continue
		}
		if err := s.keep(name); err != nil {
			return fmt.Errorf("operator %q: keep state %q, which the program does not use: %w", s.Operator, name, err)
		}
	}
	s.frozen = true
	return nil
}

func (s *store) keep(name string) error {
	t, ok := s.Restored.Table(name)
	if !ok || t.Kind != "value" && t.Kind != "list" && t.Kind != "map" {
		return nil
	}
	k := &keptTable{TableInfo: t.TableInfo}
	k.log.ledger = &ledger{store: s, state: name}
	for row, err := range t.Rows {
		if err == nil {
			err = k.log.add(row)
		}
		if err != nil {
			k.close()
			return err
		}
	}
	s.kept = append(s.kept, k)
	return nil
}
