package interval

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// buffer holds the elements of one side: for each key and bucket of times a map from (time, number among those of that
// time) to the element. Buckets are what lets a search skip the times that are out of range. Calls with an index mean a
// key of the store's current run.
type buffer struct {
	table  statebackend.MapTable
	ahead  statebackend.NearMapTable // the same one; nil if it can't
	value  *serde.Handle
	shift  uint
	large  int64 // bytes from which on the table is not near the processor anyway
	bucket int64 // the selected one
	chosen bool  // one is
	name   [8]byte

	entry    entry
	index    int            // of the key that is searched
	into     unsafe.Pointer // where a search puts what it finds
	from, to int64
	found    func(t int64) error
	err      error
	each     func() bool // see, bound once: a method value would be allocated at each use
}

// entry is the map key: a time, and the number of the element among those of the time.
type entry [2]int64

// open opens the table that has the name. Elements are of type value; those found come to into.
func (b *buffer) open(store statebackend.Store, name string, value *serde.Handle, shift uint, into unsafe.Pointer) error {
	bucket, err := serde.KeyOf[int64]()
	if err != nil {
		return fmt.Errorf("open buffer %q: %w", name, err)
	}
	key, err := serde.KeyOf[entry]()
	if err != nil {
		return fmt.Errorf("open buffer %q: %w", name, err)
	}
	b.value, b.shift, b.large, b.into, b.each = value, shift, largeBytes, into, b.see
	b.table, err = store.Map(statebackend.TableSpec{Name: name, Value: value, MapKey: key, Namespace: bucket})
	b.ahead, _ = b.table.(statebackend.NearMapTable)
	return err
}

// largeBytes is the size of a table from which on most of what is asked for is in no cache of a processor.
const largeBytes = 2 << 20

// near says that keys [from,to) of the run are about to use a bucket.
func (b *buffer) near(bucket int64, from, to int) {
	if b.ahead != nil && b.table.MemoryBytes() >= b.large {
		b.choose(bucket)
		b.ahead.Near(from, to)
	}
}

func (b *buffer) choose(bucket int64) {
	if b.chosen && b.bucket == bucket {
		return
	}
	b.bucket, b.chosen = bucket, true
	binary.LittleEndian.PutUint64(b.name[:], uint64(bucket))
	b.table.SetNamespace(b.name[:])
}

// add copies the element at p in, as the last one of time t. first says that it is the only one of that time.
func (b *buffer) add(i int, t int64, p unsafe.Pointer) (first bool, err error) {
	b.choose(t >> b.shift)
	b.entry = entry{t, 0}
	if b.value.Layout == serde.Fixed {
		slot, fresh, err := b.table.Slot(i, b.at())
		if err == nil && !fresh {
			if b.entry, err = b.free(i, t); err == nil {
				slot, _, err = b.table.Slot(i, b.at())
			}
		}
		if err != nil {
			return false, err
		}
		copy(unsafe.Slice((*byte)(slot), b.value.Size), unsafe.Slice((*byte)(p), b.value.Size))
		return fresh, nil
	}
	taken, err := b.table.Has(i, b.at())
	if err == nil && taken {
		b.entry, err = b.free(i, t)
	}
	if err != nil {
		return false, err
	}
	return !taken, b.table.Save(i, b.at(), p)
}

func (b *buffer) at() unsafe.Pointer { return unsafe.Pointer(&b.entry) }

// free is the first entry of time t that there is not: numbers are taken from 0 on without a gap, so it is found in
// logarithmic time, however many elements have the same time.
func (b *buffer) free(i int, t int64) (entry, error) {
	taken, unknown := int64(0), int64(1) // the greatest number known to be taken; the one asked for next
	for {
		b.entry = entry{t, unknown}
		is, err := b.table.Has(i, b.at())
		if err != nil {
			return entry{}, err
		}
		if !is {
			break
		}
		taken, unknown = unknown, 2*unknown
	}
	for free := unknown; ; {
		if free == taken+1 {
			return entry{t, free}, nil
		}
		b.entry = entry{t, taken + (free-taken)/2}
		is, err := b.table.Has(i, b.at())
		switch {
		case err != nil:
			return entry{}, err
		case is:
			taken = b.entry[1]
		default:
			free = b.entry[1]
		}
	}
}

// remove drops all elements of time t.
func (b *buffer) remove(i int, t int64) error {
	b.choose(t >> b.shift)
	for n := int64(0); ; n++ {
		b.entry = entry{t, n}
		if is, err := b.table.Remove(i, b.at()); !is || err != nil {
			return err
		}
	}
}

// search calls found for each element with a time in from ... to, those of one time in the order in which they came.
func (b *buffer) search(i int, from, to int64, found func(t int64) error) error {
	if from > to {
		return nil
	}
	b.index, b.from, b.to, b.found = i, from, to, found
	for bucket := from >> b.shift; ; bucket++ {
		b.choose(bucket)
		if err := b.table.Each(i, b.at(), b.loaded(), b.each); err != nil {
			return err
		}
		if b.err != nil || bucket == to>>b.shift {
			return b.err
		}
	}
}

// loaded is where Each puts elements: nowhere if decoding those that are out of range would cost more than another access
// for those in range.
func (b *buffer) loaded() unsafe.Pointer {
	if b.value.Layout == serde.Encoded {
		return nil
	}
	return b.into
}

// see is what Each calls.
func (b *buffer) see() bool {
	t := b.entry[0]
	if t < b.from || t > b.to {
		return true
	}
	if b.value.Layout == serde.Encoded {
		if _, b.err = b.table.Load(b.index, b.at(), b.into); b.err != nil {
			return false
		}
	}
	b.err = b.found(t)
	return b.err == nil
}
