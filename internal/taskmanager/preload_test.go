package taskmanager

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/statebackend/heap"
)

// held is a preloaded store with a value that lives for 10 ms.
func held(t *testing.T, memory *host.Memory, now int64) (p *Preloaded, opt statebackend.Options, spec statebackend.TableSpec) {
	t.Helper()
	key, err := serde.KeyOf[int64]()
	if err != nil {
		t.Fatal(err)
	}
	value, err := serde.Of[int64]()
	if err != nil {
		t.Fatal(err)
	}
	opt = statebackend.Options{Key: key, Seed: 7, MaxParallelism: 1, Operator: "op", Memory: memory}
	spec = statebackend.TableSpec{Name: "v", Value: value, TTL: &statebackend.TTL{Millis: 10}}
	s, o := newPreloaded(opt, func() int64 { return now })
	if s.Store, err = (heap.Backend{}).Open(o); err != nil {
		t.Fatal(err)
	}
	if err := openTable(s.Store, &spec); err != nil {
		t.Fatal(err)
	}
	table, err := s.Table(spec)
	if err != nil {
		t.Fatal(err)
	}
	run(key, s.Store)
	x := int64(5)
	if err := table.Save(0, unsafe.Pointer(&x)); err != nil {
		t.Fatal(err)
	}
	return &Preloaded{stores: map[storeID]*preloaded{{"id", 0}: s}}, opt, spec
}

// run begins a run of one key.
func run(key *serde.Key, s statebackend.Store) {
	k := []int64{3}
	canon := serde.Canon{Width: 8, P: unsafe.Pointer(&k[0]), Stride: 8, N: 1}
	hashes := make([]uint64, 1)
	key.Hash(&canon, 7, hashes)
	s.BeginRun(&canon, hashes)
}

func TestPreloadedStoreRunsOnTheClockOfWhoTookIt(t *testing.T) {
	memory := host.NewMemory(math.MaxInt64)
	p, opt, spec := held(t, memory, 100)
	now := int64(105)
	opt.Now = func() int64 { return now }
	s := p.take(storeID{"id", 0}, &opt)
	if s == nil || p.take(storeID{"id", 0}, &opt) != nil {
		t.Fatalf("took %v, and again", s)
	}
	table, err := s.Table(spec)
	if err != nil {
		t.Fatal(err)
	}
	run(opt.Key, s)
	if v := table.Find(0); v == nil || *(*int64)(v) != 5 {
		t.Error("the value is not there")
	}
	now = 111
	run(opt.Key, s)
	if table.Has(0) {
		t.Error("the value has not expired by the clock of the task")
	}
	if err := errors.Join(p.Close(), s.Close()); err != nil || memory.Used() != 0 {
		t.Errorf("%v, %d bytes are held", err, memory.Used())
	}
}

func TestPreloadedStoreIsForItsOperatorOnly(t *testing.T) {
	memory := host.NewMemory(math.MaxInt64)
	p, opt, _ := held(t, memory, 100)
	key, err := serde.KeyOf[string]()
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(o *statebackend.Options, id *storeID){
		"another key":      func(o *statebackend.Options, _ *storeID) { o.Key = key },
		"another seed":     func(o *statebackend.Options, _ *storeID) { o.Seed++ },
		"another operator": func(_ *statebackend.Options, id *storeID) { id.operator = "other" },
		"another subtask":  func(_ *statebackend.Options, id *storeID) { id.subtask++ },
	} {
		o, id := opt, storeID{"id", 0}
		change(&o, &id)
		if s := p.take(id, &o); s != nil {
			t.Errorf("%s took the store", what)
		}
	}
	if memory.Used() == 0 {
		t.Error("the store holds nothing")
	}
	if err := errors.Join(p.Close(), p.Close()); err != nil || memory.Used() != 0 {
		t.Errorf("%v, %d bytes are held", err, memory.Used())
	}
	var none *Preloaded
	if none.take(storeID{}, &opt) != nil || none.Close() != nil {
		t.Error("nothing preloaded is not nothing")
	}
}

func TestLaterAttemptsDropWhatTheFirstHasNotTaken(t *testing.T) {
	memory := host.NewMemory(math.MaxInt64)
	p, opt, _ := held(t, memory, 100)
	p.drop(storeID{"id", 1})
	if memory.Used() == 0 {
		t.Error("the store of another subtask is closed")
	}
	p.drop(storeID{"id", 0})
	p.drop(storeID{"id", 0})
	if s := p.take(storeID{"id", 0}, &opt); s != nil || memory.Used() != 0 {
		t.Errorf("took %v, %d bytes are held", s, memory.Used())
	}
	(*Preloaded)(nil).drop(storeID{})
}

func TestFillingEndsWithTheFirstFailure(t *testing.T) {
	boom := errors.New("boom")
	var done atomic.Int64
	var all []func() error
	for i := range 1000 {
		all = append(all, func() error {
			done.Add(1)
			if i == 3 {
				return boom
			}
			return nil
		})
	}
	if err := together(t.Context(), all[:3]); err != nil || done.Load() != 3 {
		t.Errorf("got %v after %d", err, done.Load())
	}
	if err := together(t.Context(), all); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	done.Store(0)
	if err := together(ctx, all); !errors.Is(err, context.Canceled) || done.Load() != 0 {
		t.Errorf("got %v after %d", err, done.Load())
	}
}
