package keyed

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
)

// BatchHandler is a Handler that takes event-time timers many at a time.
type BatchHandler interface {
	Handler
	// FireAll is called for event-time timers in the order of their times, the one at[i] of key i, all of which are at hand as
	// those of a run are: it says by Current which one it means.
	FireAll(at []int64) error
}

// fireMost is how many timers are taken at a time.
const fireMost = 256

// fired are timers that are about to be taken, with copies of their keys.
type fired struct {
	handler BatchHandler // nil: they are taken one by one
	keys    []byte
	ends    []int // of the keys
	texts   []string
	hashes  []uint64
	at      []int64
}

// OpenBatched is Open for a driver that takes timers many at a time. Those of processing time come one by one.
func (k *Keys) OpenBatched(rt *operator.Runtime, sides *operator.Sides, h BatchHandler) error {
	k.handler, k.ends, k.fired.handler, k.onEvent = h, h, h, k.fireEventLater
	return k.openTimers(rt, sides, k.fireProcessing, nil)
}

func (k *Keys) fireEventLater(key []byte, hash uint64, _ []byte, at int64) error {
	f := &k.fired
	f.keys = append(f.keys, key...)
	f.ends, f.hashes, f.at = append(f.ends, len(f.keys)), append(f.hashes, hash), append(f.at, at)
	if len(f.at) < fireMost {
		return nil
	}
	return k.fireAll()
}

// fireAll has the timers taken that have fired.
func (k *Keys) fireAll() error {
	f := &k.fired
	n := len(f.at)
	if n == 0 {
		return nil
	}
	k.begun, k.firing = nil, timer{process.EventTime, f.at[0]}
	k.canon = serde.Canon{N: n, Width: k.key.Width}
	if k.key.Width > 0 {
		k.canon.P, k.canon.Stride = unsafe.Pointer(unsafe.SliceData(f.keys)), k.key.Width
	} else {
		f.texts = f.texts[:0]
		from := 0
		for _, end := range f.ends {
			f.texts = append(f.texts, unsafe.String(unsafe.SliceData(f.keys[from:end]), end-from))
			from = end
		}
		k.canon.Text = f.texts
	}
	copy(k.hashes, f.hashes)
	k.store.BeginRun(&k.canon, k.hashes[:n])
	err := f.handler.FireAll(f.at)
	f.keys, f.ends, f.hashes, f.at = f.keys[:0], f.ends[:0], f.hashes[:0], f.at[:0]
	return err
}

// Fires says which of the timers of FireAll is being taken: its key is at hand.
func (k *Keys) Fires(i int) { k.services.run.Index, k.firing.at = i, k.fired.at[i] }
