// Package keyed holds the drivers of operators on keyed streams: rolling aggregates and keyed process functions. A
// driver takes the keys of a run as a column, hashes them in one go and opens the run on the store; only the loops that
// call user closures are generic.
package keyed

import (
	"fmt"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// keyer is what every keyed driver has: the store and the keys of the run at hand.
type keyer struct {
	rt      *operator.Runtime
	key     *operator.Key
	extract func(*frame.Run) serde.Column
	scratch serde.KeyScratch
	canon   serde.Canon
	hashes  []uint64
	seed    uint64
	store   statebackend.Store
	piece   frame.Run
}

func (k *keyer) open(rt *operator.Runtime) (err error) {
	k.rt, rt.AtHand = rt, k.atHand
	k.extract = k.key.Extract()
	k.hashes = make([]uint64, frame.MaxLen)
	k.seed = rt.Seed
	k.store, err = rt.OpenState(statebackend.Options{
		Key: k.key.Key, Seed: rt.Seed, Operator: rt.Name,
		Now: func() int64 { return rt.Now },
	})
	if err != nil {
		return fmt.Errorf("open keyed state: %w", err)
	}
	return nil
}

// Snapshot implements operator.Snapshotter: it adds the store's tables.
func (k *keyer) Snapshot(s *operator.Snapshot) error { return s.Freeze(k.store) }

func (k *keyer) close() error {
	if k.store == nil {
		return nil
	}
	return k.store.Close()
}

// begin opens a run of at most frame.MaxLen elements on the store and returns its keys as they are in Go memory.
func (k *keyer) begin(r *frame.Run) (serde.Column, error) {
	k.canon.N = 0 // those of the run before
	col := k.extract(r)
	var err error
	if k.canon, err = k.key.Canon(col, &k.scratch); err != nil {
		return col, fmt.Errorf("take the key of an element: %w", err)
	}
	k.key.Hash(&k.canon, k.seed, k.hashes)
	k.store.BeginRun(&k.canon, k.hashes[:r.N])
	return col, nil
}

// atHand is operator.Runtime's: the key and the element of a run that began.
func (k *keyer) atHand(r *frame.Run) string {
	if r == nil {
		return ""
	}
	i, ok := r.Culprit()
	if !ok || i >= k.canon.N {
		return ""
	}
	return operator.AtHand(operator.NamedKey(k.key.Key, k.canon.Bytes(i)), operator.NamedElement(r, i))
}

// each cuts a run into pieces of at most frame.MaxLen elements: the size of the scratch columns.
func (k *keyer) each(r *frame.Run, push func(*frame.Run) error) error {
	if r.N <= frame.MaxLen {
		return push(r)
	}
	for from := 0; from < r.N; from += frame.MaxLen {
		k.piece = r.Slice(from, min(r.N, from+frame.MaxLen))
		k.rt.Run = &k.piece
		if err := push(&k.piece); err != nil {
			return err
		}
	}
	return nil
}
