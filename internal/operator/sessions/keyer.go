package sessions

import (
	"fmt"
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/statebackend/heap"
)

// keyer takes the keys of a run, and finds the chain of each in a table: the number of its latest node. The table lies in
// memory, as the sessions do, whatever the job's state backend is: it is in no snapshot, and each element looks into it.
type keyer struct {
	key     *operator.Key
	extract func(*frame.Run) serde.Column
	scratch serde.KeyScratch
	canon   serde.Canon
	hashes  []uint64
	seed    uint64
	store   statebackend.Store
	table   statebackend.Table
	latest  []unsafe.Pointer // of the run at hand: where the table keeps it, *uint32; 0: the key is new
	fresh   []bool
}

func (k *keyer) open(rt *operator.Runtime) (err error) {
	k.extract = k.key.Extract()
	k.hashes, k.latest, k.fresh = make([]uint64, frame.MaxLen), make([]unsafe.Pointer, frame.MaxLen), make([]bool, frame.MaxLen)
	k.seed = rt.Seed
	k.store, err = heap.Backend{}.Open(statebackend.Options{
		Key: k.key.Key, Seed: rt.Seed, Operator: rt.Name, Memory: rt.Memory, Now: func() int64 { return rt.Now },
	})
	if err != nil {
		return fmt.Errorf("open keyed state: %w", err)
	}
	number, err := serde.Of[uint32]()
	if err != nil {
		return fmt.Errorf("open session windows: %w", err)
	}
	k.table, err = k.store.Table(statebackend.TableSpec{Name: "session keys", Value: number})
	return err
}

func (k *keyer) close() error {
	if k.store == nil {
		return nil
	}
	return k.store.Close()
}

// begin finds the chains of a run of at most frame.MaxLen elements.
func (k *keyer) begin(r *frame.Run) error {
	if err := k.name(k.extract(r)); err != nil {
		return err
	}
	return k.table.Slots(0, r.N, k.latest, k.fresh)
}

// name opens a run of keys on the store.
func (k *keyer) name(keys serde.Column) (err error) {
	if k.canon, err = k.key.Canon(keys, &k.scratch); err != nil {
		return fmt.Errorf("take the key of an element: %w", err)
	}
	k.key.Hash(&k.canon, k.seed, k.hashes)
	k.store.BeginRun(&k.canon, k.hashes[:keys.N])
	return nil
}

// decode makes the Go value of key i of the run at p. It shares no memory with the element.
func (k *keyer) decode(i int, p unsafe.Pointer) error {
	if err := k.key.Decode(k.canon.Bytes(i), p); err != nil {
		return fmt.Errorf("decode the key of an element: %w", err)
	}
	return nil
}
