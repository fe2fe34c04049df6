package slices

import (
	"fmt"
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/statebackend/heap"
)

// roster gives keys numbers: ids from 0 on, as dense as it can be, by which columns hold what belongs to the keys. The table
// that maps keys to ids lies in memory, as the windows do, whatever the job's state backend is: it is in no snapshot, and each
// element looks into it. The keys themselves lie in a column by id, as results need them.
type roster struct {
	*ledger
	key     *operator.Key
	memory  *windows.Memory
	extract func(*frame.Run) serde.Column
	scratch serde.KeyScratch
	canon   serde.Canon
	hashes  []uint64
	hasher  serde.Hasher
	store   statebackend.Store
	table   statebackend.Table
	slots   []unsafe.Pointer
	fresh   []bool
	ids     []uint32 // of the run

	keys    unsafe.Pointer  // by id
	shadows windows.Shadows // the snapshots that need keys
	room    int
	limit   int      // more than any id in use
	free    []uint32 // ids below limit that are not in use, the smallest last
	old     unsafe.Pointer
}

// maxIDs is the number of ids that there can be.
const maxIDs = 1 << 31

func (k *roster) open(rt *operator.Runtime) (err error) {
	k.ids = make([]uint32, frame.MaxLen)
	if k.memory.Size == 0 { // there is one key
		k.keys, k.limit = k.memory.New(1), 1
		return nil
	}
	k.extract, k.hasher = k.key.Extract(), k.key.Hasher(rt.Seed)
	k.hashes, k.fresh = make([]uint64, frame.MaxLen), make([]bool, frame.MaxLen)
	k.slots = make([]unsafe.Pointer, frame.MaxLen)
	k.old = k.memory.New(frame.MaxLen)
	k.store, err = heap.Backend{}.Open(statebackend.Options{
		Key: k.key.Key, Seed: rt.Seed, Operator: rt.Name, Memory: rt.Memory, Now: func() int64 { return rt.Now },
	})
	if err != nil {
		return fmt.Errorf("open the keys of windows: %w", err)
	}
	id, err := serde.Of[uint32]()
	if err != nil {
		return fmt.Errorf("open the keys of windows: %w", err)
	}
	k.table, err = k.store.Table(statebackend.TableSpec{Name: "window keys", Value: id})
	return err
}

func (k *roster) close() error {
	if k.shadows.Open() {
		k.yield()
	}
	if k.store == nil {
		return nil
	}
	return k.store.Close()
}

// of gives the ids of a run of at most frame.MaxLen elements, new ones to new keys. They are valid until the next run.
func (k *roster) of(r *frame.Run) ([]uint32, error) {
	if k.table == nil {
		return k.ids[:r.N], nil
	}
	k.canon.N = 0 // those of the run before
	return k.identify(k.extract(r))
}

// identify gives the ids of a column of at most frame.MaxLen keys.
func (k *roster) identify(keys serde.Column) (ids []uint32, err error) {
	n := keys.N
	ids = k.ids[:n]
	if k.table == nil {
		return ids, nil
	}
	if k.canon, err = k.key.Canon(keys, &k.scratch); err != nil {
		return nil, fmt.Errorf("take the key of an element: %w", err)
	}
	hashes, slots := k.hashes[:n], k.slots[:n]
	k.hasher.Run(&k.canon, hashes)
	k.store.BeginRun(&k.canon, hashes)
	known := k.table.Len()
	if err = k.table.Slots(0, n, slots, k.fresh[:n]); err != nil {
		return nil, err
	}
	if k.table.Len() != known {
		if err = k.enrol(n); err != nil {
			return nil, err
		}
	}
	for i, p := range slots {
		ids[i] = *(*uint32)(p)
	}
	return ids, nil
}

// enrol gives ids to those of the n keys of the run that are new.
func (k *roster) enrol(n int) error {
	for i, fresh := range k.fresh[:n] {
		if !fresh {
			continue
		}
		id, err := k.take()
		if err != nil {
			return err
		}
		b := k.canon.Bytes(i)
		if err := k.reserve(k.behind(b)); err != nil {
			return err
		}
		if err := k.key.Decode(b, k.at(id)); err != nil {
			return fmt.Errorf("keep the key of an element: %w", err)
		}
		*(*uint32)(k.slots[i]) = id
	}
	return nil
}

// behind is the memory of a key that does not lie in the column: texts.
func (k *roster) behind(canonical []byte) int64 {
	if !k.key.Pointers {
		return 0
	}
	return int64(len(canonical))
}

// take gives an id that is not in use.
func (k *roster) take() (uint32, error) {
	if n := len(k.free); n > 0 {
		id := k.free[n-1]
		k.free = k.free[:n-1]
		return id, nil
	}
	if k.limit == k.room {
		if err := k.grow(); err != nil {
			return 0, err
		}
	}
	k.limit++
	return uint32(k.limit - 1), nil
}

func (k *roster) grow() error {
	room := max(least, 2*k.room)
	if room > maxIDs {
		return fmt.Errorf("operator %q: windows: more keys than one subtask can hold: raise the parallelism", k.rt.Name)
	}
	if err := k.reserve(int64(room) * int64(k.memory.Size)); err != nil {
		return err
	}
	keys := k.memory.New(room)
	if k.keys != nil {
		k.memory.Move(keys, k.keys, k.room)
		k.yield()
	}
	k.keys, k.room = keys, room
	return nil
}

// yield gives the memory of the keys back, or leaves it to the snapshots that need it.
func (k *roster) yield() {
	n := int64(k.room) * int64(k.memory.Size)
	if k.shadows.Lend(k.rt.Memory, n) {
		k.held -= n
		return
	}
	k.release(n)
}

// own makes the keys the roster's alone.
func (k *roster) own() error {
	if !k.shadows.Open() {
		return nil
	}
	if err := k.reserve(int64(k.room) * int64(k.memory.Size)); err != nil {
		return err
	}
	keys := k.memory.New(k.room)
	k.memory.Move(keys, k.keys, k.room)
	k.yield()
	k.keys = keys
	return nil
}

func (k *roster) at(id uint32) unsafe.Pointer { return k.memory.At(k.keys, int(id)) }

// used is the number of ids in use.
func (k *roster) used() int { return k.limit - len(k.free) }

// sweep forgets the keys whose ids are not in live, a bit for each id.
func (k *roster) sweep(live []uint64) error {
	isFree := make([]uint64, (k.limit+63)/64)
	for _, id := range k.free {
		isFree[id>>6] |= 1 << (id & 63)
	}
	dead := make([]uint32, 0, frame.MaxLen)
	limit := 0
	for id := range k.limit {
		word, bit := id>>6, uint64(1)<<(id&63)
		switch {
		case live[word]&bit != 0:
			limit = id + 1
		case isFree[word]&bit == 0:
			if dead = append(dead, uint32(id)); len(dead) == cap(dead) {
				if err := k.forget(dead); err != nil {
					return err
				}
				dead = dead[:0]
			}
		}
	}
	if err := k.forget(dead); err != nil {
		return err
	}
	k.limit, k.free = limit, k.free[:0]
	for id := limit - 1; id >= 0; id-- {
		if live[id>>6]>>(id&63)&1 == 0 {
			k.free = append(k.free, uint32(id))
		}
	}
	return nil
}

// forget removes keys by their ids.
func (k *roster) forget(ids []uint32) error {
	if len(ids) == 0 {
		return nil
	}
	if err := k.own(); err != nil {
		return err
	}
	for i, id := range ids {
		k.memory.Move(k.memory.At(k.old, i), k.at(id), 1)
		k.memory.Zero(k.at(id), 1)
	}
	defer k.memory.Zero(k.old, len(ids))
	canon, err := k.key.Canon(serde.Column{P: k.old, N: len(ids), Stride: k.memory.Size}, &k.scratch)
	if err != nil {
		return fmt.Errorf("forget keys without windows: %w", err)
	}
	k.canon = canon
	hashes := k.hashes[:len(ids)]
	k.hasher.Run(&k.canon, hashes)
	k.store.BeginRun(&k.canon, hashes)
	if err := k.table.Slots(0, len(ids), k.slots[:len(ids)], k.fresh[:len(ids)]); err != nil { // brings them near, all at once
		return err
	}
	for i := range ids {
		k.release(k.behind(k.canon.Bytes(i)))
		if err := k.table.Delete(i); err != nil {
			return err
		}
	}
	return nil
}
