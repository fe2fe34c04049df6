package keyed

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/timers"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/state"
)

// services adds the key at hand and its timers to a context's services.
type services struct {
	operator.Services
	keyer  *keyer
	timers *timers.Service
	run    state.CurrentRun // which key of the store's run is at hand
	text   [1]string
	hash   [1]uint64
}

// Register implements process.Services.
func (s *services) Register(d process.Domain, at int64) {
	if s.run.Index < 0 {
		panic("register a timer: no key is at hand")
	}
	if err := s.timers.Register(d, s.keyer.canon.Bytes(s.run.Index), s.keyer.hashes[s.run.Index], nil, at); err != nil {
		s.run.Fail(err)
	}
}

// Delete implements process.Services.
func (s *services) Delete(d process.Domain, at int64) {
	if s.run.Index < 0 {
		panic("delete a timer: no key is at hand")
	}
	if err := s.timers.Delete(d, s.keyer.canon.Bytes(s.run.Index), s.keyer.hashes[s.run.Index], nil, at); err != nil {
		s.run.Fail(err)
	}
}

// atKey opens a run of the one key that a timer belongs to.
func (s *services) atKey(key []byte, hash uint64) {
	k := s.keyer
	s.hash[0] = hash
	k.canon = serde.Canon{N: 1, Width: k.key.Width}
	if k.key.Width > 0 {
		k.canon.P, k.canon.Stride = unsafe.Pointer(unsafe.SliceData(key)), k.key.Width
	} else {
		s.text[0] = unsafe.String(unsafe.SliceData(key), len(key)) // valid during the call, which is as long as the run
		k.canon.Text = s.text[:]
	}
	k.hashes[0] = hash
	k.store.BeginRun(&k.canon, s.hash[:])
	s.run.Index = 0
}
