package jobmanager

import (
	"errors"
	"fmt"
	"path"
	"sync"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/vfs"
)

// stores are the snapshots whose manifests are being written, by folder. A storage may hang. Until a manifest gets its name
// the snapshot can be given up: the name is refused then, however late the storage comes back, so that the snapshot will never
// exist and a restart may go on from an older one. Once it is being named only the storage knows.
type stores struct {
	mu  sync.Mutex
	all map[string]*storeUnderWay
}

type storeUnderWay struct {
	id      int64
	naming  bool  // the manifest is getting its name, or has it
	givenUp bool  // it will never get it
	until   int64 // ns: for so long a restart waits to hear how it went
}

// errGivenUp is what a storage hears that comes back too late, and why the checkpoint failed.
var errGivenUp = errors.New("the storage has not answered in time: the snapshot was given up")

func (s *stores) begin(folder string, u *storeUnderWay) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]*storeUnderWay{}
	}
	s.all[folder] = u
}

func (s *stores) end(folder string, u *storeUnderWay) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[folder] == u {
		delete(s.all, folder)
	}
}

// name asks whether the manifest of a folder may get its name; from then on it can't be given up.
func (s *stores) name(folder string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.all[folder]
	if u == nil {
		return true
	}
	u.naming = !u.givenUp
	return u.naming
}

// giveUp gives a store up if that is still possible.
func (s *stores) giveUp(u *storeUnderWay) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.naming || u.givenUp {
		return false
	}
	u.givenUp = true
	return true
}

// underWay are those that have neither ended nor been given up.
func (s *stores) underWay() (all []*storeUnderWay) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.all {
		if !u.givenUp {
			all = append(all, u)
		}
	}
	return all
}

// fenced is a file system that names no manifest of a snapshot that was given up.
type fenced struct {
	vfs.FS
	stores *stores
}

// Rename implements vfs.FS.
func (f fenced) Rename(from, to string) error {
	if path.Base(to) == checkpoint.ManifestName && !f.stores.name(path.Dir(to)) {
		return errGivenUp
	}
	return f.FS.Rename(from, to)
}

// WholeFiles implements checkpoint.WholeFS.
func (f fenced) WholeFiles(folder string) bool {
	w, ok := f.FS.(checkpoint.WholeFS)
	return ok && w.WholeFiles(folder)
}

// OnDisk implements vfs.OnDisk.
func (f fenced) OnDisk(folder string) bool { return vfs.IsOnDisk(f.FS, folder) }

// Create implements vfs.FS. A manifest that appears whole is sent when it is closed, as it can't be refused from then on.
func (f fenced) Create(name string, how vfs.Mode) (vfs.Writer, error) {
	if path.Base(name) == checkpoint.ManifestName && f.WholeFiles(path.Dir(name)) {
		return &fencedManifest{f: f, name: name, how: how}, nil
	}
	return f.FS.Create(name, how)
}

// fencedManifest is a manifest that gets its name when it is closed.
type fencedManifest struct {
	f    fenced
	name string
	how  vfs.Mode
	data []byte
}

// Write implements io.Writer.
func (m *fencedManifest) Write(p []byte) (int, error) {
	m.data = append(m.data, p...)
	return len(p), nil
}

// Sync implements vfs.Writer: nothing has been sent.
func (m *fencedManifest) Sync() error { return nil }

// Close sends it, unless the snapshot was given up.
func (m *fencedManifest) Close() error {
	if !m.f.stores.name(path.Dir(m.name)) {
		return errGivenUp
	}
	w, err := m.f.FS.Create(m.name, m.how)
	if err != nil {
		return err
	}
	_, err = vfs.WriteAll(w, m.data)
	if err == nil {
		err = w.Sync()
	}
	return errors.Join(err, w.Close())
}

// storeKind and leaveKind are those of the keeper's own timers for what hangs.
const (
	storeKind control.TimerKind = 254
	leaveKind control.TimerKind = 253
)

// storePatience is for how long a restart waits for a checkpoint that is being stored before it gives it up; the checkpoint
// timeout if that is less.
const storePatience = 5 * time.Second

// await has a restart wait for what is being stored, but not for long.
func (k *Keeper) await() {
	for _, u := range k.stores.underWay() {
		t := control.Timer{Kind: storeKind, Checkpoint: u.id}
		soon := k.clock.Nanos() + min(storePatience, k.opt.Config.Timeout).Nanoseconds()
		if at, set := k.timers[t]; !set || soon < at {
			k.timers[t] = soon
		}
	}
}

// storeDue takes the time at which a store is to be over.
func (k *Keeper) storeDue(id int64) {
	for _, u := range k.stores.underWay() {
		if u.id != id {
			continue
		}
		if k.stores.giveUp(u) {
			k.step(control.StoreFailed{Checkpoint: id, Err: errGivenUp, GivenUp: len(k.waiting) > 0})
			return
		}
		if k.clock.Nanos() < u.until {
			k.timers[control.Timer{Kind: storeKind, Checkpoint: id}] = u.until
			return
		}
		waiting := k.waiting
		k.waiting = nil
		for _, answer := range waiting {
			answer(control.Restore{Err: fmt.Errorf("restore the job: snapshot %d is being stored since more than %v, and nobody knows whether it exists: %w", id, k.opt.Config.Timeout, errUnknown)})
		}
	}
}

// errUnknown is why nothing can be restored while a storage hangs that may already have completed a snapshot.
var errUnknown = errors.New("the storage has not answered in time")
