package pebble

import (
	"encoding/binary"
	"fmt"
	"iter"
	"unsafe"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// ledger is what tables of all kinds are made of: the declaration, the namespace and keys of rows, times, accounts.
//
// The key of a row is {space}{key group}{key}{namespace}{the kind's own}, numbers big-endian, so that the rows of a space
// lie key group by key group, those of one owner (a key in a namespace) together. Keys and namespaces of fixed width are
// their canonical bytes, others are led by their length.
type ledger struct {
	store *store
	shape shape
	s     statebackend.TableSpec
	held  int64
	epoch uint32 // counts the ends of addresses, from 1
	name  uint16 // number among the owners of the cache, once owned
	owned bool
	fixed bool    // values have Fixed layout, and addresses in the cache
	n     int     // values, lists or map entries
	ns    []byte  // the selected namespace as it is in keys
	key   []byte  // scratch
	size  uintptr // of a value in the cache, for Fixed layout: a multiple of 8, at least 8
	width int     // of the encoding of such a value
	tail  int     // bytes that rows with values in place have behind the value at least
}

const stampBytes = 8

func newLedger(s *store, spec *statebackend.TableSpec) (ledger, error) {
	l := ledger{store: s, s: *spec, epoch: 1, fixed: spec.Value.Layout == serde.Fixed, shape: shapeOf(spec, s.Key)}
	if l.fixed {
		l.size = max(8, roundUp(spec.Value.Size))
		b, err := spec.Value.Append(nil, spec.Value.New())
		if err != nil {
			return l, l.wrap("open", err)
		}
		l.width = len(b)
	}
	return l, nil
}

// what is slot if rows of values hold Go values.
func (l *ledger) what() uint8 {
	if l.fixed {
		return slot
	}
	return 0
}

func (l *ledger) spec() *statebackend.TableSpec { return &l.s }
func (l *ledger) base() *ledger                 { return l }
func (l *ledger) lapse()                        { l.next() }

// next ends all addresses.
func (l *ledger) next() {
	if l.epoch++; l.epoch == 0 {
		l.epoch = 1
	}
}

// Spec implements the tables' contracts.
func (l *ledger) Spec() *statebackend.TableSpec { return &l.s }

// Len implements the tables' contracts.
func (l *ledger) Len() int { return l.n }

// MemoryBytes implements the tables' contracts.
func (l *ledger) MemoryBytes() int64 { return l.held }

// SetNamespace implements the tables' contracts.
func (l *ledger) SetNamespace(canonical []byte) {
	l.next()
	l.ns = appendPart(l.ns[:0], l.s.Namespace, canonical)
}

// enter begins a method: it ends the addresses and makes room for n bytes.
func (l *ledger) enter(n int) error {
	l.next()
	return l.store.cache.trim(n)
}

// appendPart appends a canonical key of a type to the key of a row.
func appendPart(dst []byte, k *serde.Key, canonical []byte) []byte {
	if k.Width == 0 {
		dst = binary.AppendUvarint(dst, uint64(len(canonical)))
	}
	return append(dst, canonical...)
}

// spaceBytes and headBytes are what a key of a row begins with.
const (
	spaceBytes = 2
	headBytes  = spaceBytes + 2
)

// compose makes the key of the row of key i and the namespace in a space, in the table's scratch.
func (l *ledger) compose(space uint16, i int) []byte {
	group := keygroup.Of(uint32(l.store.hashes[i]), l.store.MaxParallelism)
	b := binary.BigEndian.AppendUint16(l.key[:0], space)
	b = binary.BigEndian.AppendUint16(b, uint16(group))
	b = appendPart(b, l.store.Key, l.store.keys.Bytes(i))
	b = append(b, l.ns...)
	l.key = b
	return b
}

// parse takes a key of a row apart, into a snapshot's row.
func (l *ledger) parse(key []byte, r *statebackend.Row) error {
	if err := l.shape.parse(key, r); err != nil {
		return err
	}
	r.Hash = l.store.Key.HashOne(r.Key, l.store.Seed)
	return nil
}

// rows gives the rows of a snapshot, for another goroutine.
func (l *ledger) rows(f *frozen) iter.Seq2[*statebackend.Row, error] {
	key, seed := l.store.Key, l.store.Seed
	g := &reading{
		shape: l.shape, now: f.now, last: 1<<16 - 1, scan: f.scan,
		hash: func(b []byte) uint64 { return key.HashOne(b, seed) },
		wrap: (&ledger{store: l.store, s: l.s}).snapshotError,
	}
	if l.s.TTL != nil {
		ttl := *l.s.TTL
		g.ttl = &ttl
	}
	return g.rows()
}

func (l *ledger) snapshotError(err error) error { return l.wrap("snapshot of", err) }

// told implements keeper.
func (l *ledger) told() metaTable { return metaTable{name: l.s.Name, shape: l.shape, n: l.n} }

// begin implements keeper.
func (l *ledger) begin(uint64) {}

// bounds are the first key of a space and the first after it.
func bounds(space uint16) (from, to []byte) {
	return binary.BigEndian.AppendUint16(nil, space), binary.BigEndian.AppendUint16(nil, space+1)
}

func (l *ledger) now() int64 {
	if l.s.TTL == nil {
		return 0
	}
	return l.store.Now()
}

func (l *ledger) expired(at, now int64) bool { return l.s.TTL != nil && l.s.TTL.Expired(at, now) }

func (l *ledger) wrap(verb string, err error) error {
	return fmt.Errorf("operator %q: %s state %q: %w", l.store.Operator, verb, l.s.Name, err)
}

// unread says that the tree could not be read: because it could not be written, if so.
func (l *ledger) unread(err error) error {
	if broken := l.store.tree.broken(); broken != nil {
		err = broken
	}
	return l.wrap("read", err)
}

func (l *ledger) errLayout(what string) error {
	return fmt.Errorf("state %q: %s of type %s: layout %v has none", l.s.Name, what, l.s.Value.Name, l.s.Value.Layout)
}

// encode gives the encoding of the value at v. It is good until the next call.
func (l *ledger) encode(v unsafe.Pointer) ([]byte, error) {
	b, err := l.s.Value.Append(l.store.buf[:0], v)
	if err != nil {
		return nil, l.wrap("write", err)
	}
	l.store.buf = b[:0]
	return b, nil
}

// decode makes the Go value at v of what encode gave.
func (l *ledger) decode(b []byte, v unsafe.Pointer) error {
	if _, err := l.s.Value.Read(b, v); err != nil {
		return l.wrap("read", err)
	}
	return nil
}

// bring gives what a row holds of the value at v: its memory in Fixed layout, else its encoding. It is good until the next
// call.
func (l *ledger) bring(v unsafe.Pointer) (b []byte, n int, err error) {
	if l.fixed {
		return bytesAt(v, l.s.Value.Size), int(l.size), nil
	}
	b, err = l.encode(v)
	return b, len(b), err
}

// fetch makes the Go value at v of what a row holds.
func (l *ledger) fetch(b []byte, v unsafe.Pointer) error {
	if l.fixed {
		copy(bytesAt(v, l.s.Value.Size), b)
		return nil
	}
	return l.decode(b, v)
}

func bytesAt(p unsafe.Pointer, n uintptr) []byte { return unsafe.Slice((*byte)(p), n) }

func roundUp(n uintptr) uintptr { return (n + 7) &^ 7 }
