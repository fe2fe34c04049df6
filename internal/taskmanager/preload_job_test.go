package taskmanager

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"unsafe"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/statebackend/heap"
)

// counting is a backend in memory that counts what it opens and, when it is told to, fails, or has stores that look like those
// on disk.
type counting struct {
	heap.Backend
	mu     sync.Mutex
	opened int
	fails  int // this one of those that are opened, counted from 1
	disk   bool
}

type onDisk struct{ statebackend.Store }

func (onDisk) Timers(statebackend.TimerSpec) (statebackend.Timers, error) { return nil, errBoom }

func (c *counting) Open(o statebackend.Options) (statebackend.Store, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened++; c.opened == c.fails {
		return nil, errBoom
	}
	s, err := c.Backend.Open(o)
	if c.disk && err == nil {
		s = onDisk{s}
	}
	return s, err
}

// keyed is an operator "second" with three tables by int64s, in which the first of two runs has put a value for each of 100 keys.
type keyed struct {
	key   *serde.Key
	specs []statebackend.TableSpec
	mu    sync.Mutex
	found []int // keys, by subtask
}

func newKeyed(t *testing.T) *keyed {
	key, err := serde.KeyOf[int64]()
	if err != nil {
		t.Fatal(err)
	}
	value, err := serde.Of[int64]()
	if err != nil {
		t.Fatal(err)
	}
	return &keyed{key: key, specs: []statebackend.TableSpec{
		{Name: "value", Value: value}, {Name: "list", Value: value, List: true}, {Name: "map", Value: value, MapKey: key},
	}}
}

// add appends the operator behind a source. fill says that it puts its values there, else it looks for them.
func (k *keyed) add(s *snapshots, parallelism int, fill bool) {
	first := s.add("first", parallelism, played(parallelism), nil, nil)
	stores := make([]statebackend.Store, parallelism)
	second := s.stateful("second", parallelism, &stateful{
		node: node{hooks: hooks{open: func(rt *operator.Runtime) (err error) {
			stores[rt.Subtask], err = k.open(rt, fill)
			return err
		}}},
		snapshot:  func(rt *operator.Runtime, sn *operator.Snapshot) error { return sn.Freeze(stores[rt.Subtask]) },
		completed: func(int64) {},
	}, first)
	first.UID, second.UID = "first", "second"
	made := second.New
	second.New = func() operator.Operator { return &storing{made().(*stateful), stores} }
}

// storing closes its store.
type storing struct {
	*stateful
	stores []statebackend.Store
}

func (s *storing) Close() error { return s.stores[s.RT.Subtask].Close() }

func (k *keyed) open(rt *operator.Runtime, fill bool) (statebackend.Store, error) {
	s, err := rt.OpenState(statebackend.Options{Key: k.key, Seed: rt.Seed, Operator: rt.Name})
	if err != nil {
		return nil, err
	}
	values, err := s.Table(k.specs[0])
	if err != nil {
		return nil, err
	}
	if _, err = s.List(k.specs[1]); err != nil {
		return nil, err
	}
	if _, err = s.Map(k.specs[2]); err != nil {
		return nil, err
	}
	keys, hashes := make([]int64, 100), make([]uint64, 100)
	for i := range keys {
		keys[i] = int64(i)
	}
	canon := serde.Canon{Width: 8, P: unsafe.Pointer(&keys[0]), Stride: 8, N: len(keys)}
	k.key.Hash(&canon, rt.Seed, hashes)
	s.BeginRun(&canon, hashes)
	n := 0
	for i := range keys {
		if fill {
			if err := values.Save(i, unsafe.Pointer(&keys[i])); err != nil {
				return nil, err
			}
		} else if v := values.Find(i); v != nil && *(*int64)(v) == keys[i] {
			n++
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.found = append(k.found, n)
	return s, nil
}

// restoring is a cluster that goes on from a snapshot of 100 keys, with twice the parallelism and a backend that counts.
func restoring(t *testing.T) (*snapshots, *keyed, *counting) {
	s, k := newSnapshots(t), newKeyed(t)
	s.opt.Backend = &counting{}
	k.add(s, 1, true)
	a, err := s.deploy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := &checkpoint.Manifest{ID: 9, Folder: folderOf(9), HashSeed: 77}
	_, parts := acknowledged(t, s.trigger(a, control.Barrier{ID: 9})[0])
	for i, n := range a.Tasks[0].Vertex.Nodes {
		m.Operators = append(m.Operators, checkpoint.Operator{ID: n.ID.String(), Name: n.Node.Name, Parallelism: 1, MaxParallelism: n.MaxParallelism, Parts: parts[i : i+1]})
	}
	s.stop(a)
	next, backend := newSnapshots(t), &counting{}
	k.found = nil
	next.opt.Backend, next.opt.Restore, next.opt.Memory = backend, &Restore{FS: s.fs, Manifest: m}, host.NewMemory(math.MaxInt64)
	k.add(next, 2, false)
	return next, k, backend
}

// fits tries the operators and fills their stores.
func (s *snapshots) preload(ctx context.Context, job *Job) (*Preloaded, error) {
	fits, err := Fit(ctx, job, s.opt)
	if err != nil {
		return nil, err
	}
	for _, f := range fits {
		if f.Err != nil {
			s.t.Fatal(f.Err)
		}
	}
	return Preload(ctx, job, s.opt, fits, s.opt.Restore.Manifest.Audit(s.opt.Restore.FS))
}

// Stores that were filled beforehand are those that the first attempt works with; later ones fill theirs again.
func TestFirstAttemptTakesTheStoresThatWereFilled(t *testing.T) {
	for _, disk := range []bool{false, true} { // those on disk are left to the subtasks
		synctest.Test(t, func(t *testing.T) {
			s, k, backend := restoring(t)
			backend.disk = disk
			job := planned(s)
			p, err := s.preload(t.Context(), job)
			if err != nil {
				t.Fatal(err)
			}
			filled := 1 // by trying
			if !disk {
				filled += 2
			}
			if backend.opened != filled || len(k.found) != 1 || k.found[0] != 0 || (s.opt.Memory.Used() == 0) != disk {
				t.Errorf("on disk %v: %d stores were opened, the operator has found %v", disk, backend.opened, k.found)
			}
			s.opt.Preloaded = p
			for number := range 2 {
				k.found = nil
				a, err := Deploy(t.Context(), job, number, s.opt, func(int, int, int, []byte) {}, func(e Ended) { s.reports <- e })
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				opened := filled
				if disk || number > 0 {
					opened += 2
				}
				slices.Sort(k.found)
				if len(k.found) != 2 || k.found[0] == 0 || k.found[0]+k.found[1] != 100 || backend.opened != opened {
					t.Errorf("on disk %v, attempt %d: found %v keys, %d stores were opened, want %d", disk, number, k.found, backend.opened, opened)
				}
				s.stop(a)
				filled = backend.opened
			}
			if err := p.Close(); err != nil || s.opt.Memory.Used() != 0 {
				t.Errorf("on disk %v: %v, %d bytes are held", disk, err, s.opt.Memory.Used())
			}
		})
	}
}

// What can't be filled ends the filling, which holds nothing then.
func TestFillingThatFailsHoldsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(s *snapshots, backend *counting, cancel func())
		want  string
	}{
		"a store can't be opened": {func(_ *snapshots, backend *counting, _ func()) { backend.fails = backend.opened + 2 }, "boom"},
		"the job is cancelled":    {func(_ *snapshots, _ *counting, cancel func()) { cancel() }, context.Canceled.Error()},
		"a file is gone": {func(s *snapshots, _ *counting, _ func()) {
			for _, o := range s.opt.Restore.Manifest.Operators {
				for _, p := range o.Parts {
					own, _ := p.Files(folderOf(9))
					for _, f := range own {
						if err := s.opt.Restore.FS.Remove(f); err != nil {
							s.t.Error(err)
						}
					}
				}
			}
		}, "fill the state of subtask "},
		"there are other key groups": {func(s *snapshots, _ *counting, _ func()) {
			s.opt.Restore.Manifest.Operators[1].MaxParallelism = 77
		}, "max parallelism of 77"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, _, backend := restoring(t)
			job := planned(s)
			fits, err := Fit(t.Context(), job, s.opt)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			audit := s.opt.Restore.Manifest.Audit(s.opt.Restore.FS)
			c.spoil(s, backend, cancel)
			p, err := Preload(ctx, job, s.opt, fits, audit)
			if err == nil || p != nil || !strings.Contains(err.Error(), c.want) || s.opt.Memory.Used() != 0 {
				t.Errorf("%s: %v, %v; %d bytes are held", name, p, err, s.opt.Memory.Used())
			}
		})
	}
}

// Subtasks that had finished before the snapshot, and operators that can't take their state, have nothing to fill.
func TestWhatDoesNotBeginIsNotFilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, backend := restoring(t)
		job := planned(s)
		fits, err := Fit(t.Context(), job, s.opt)
		if err != nil {
			t.Fatal(err)
		}
		m := s.opt.Restore.Manifest
		audit := m.Audit(s.opt.Restore.FS)
		opened := backend.opened
		spoiled := slices.Clone(fits)
		for i := range spoiled {
			spoiled[i].Err = errBoom
		}
		p, err := Preload(t.Context(), job, s.opt, spoiled, audit)
		if err = errors.Join(err, p.Close()); err != nil || backend.opened != opened {
			t.Errorf("what does not fit: %v, %d stores were opened", err, backend.opened-opened)
		}
		for i := range m.Operators {
			m.Operators[i].Parts = []*checkpoint.Part{{Finished: true}}
		}
		p, err = Preload(t.Context(), job, s.opt, fits, audit)
		if err = errors.Join(err, p.Close()); err != nil || backend.opened != opened {
			t.Errorf("what had finished: %v, %d stores were opened", err, backend.opened-opened)
		}
		if len(fits) == 0 {
			t.Error(fmt.Sprint("nothing was tried of ", m.Operators))
		}
	})
}
