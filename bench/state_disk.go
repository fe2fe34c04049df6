package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"sync"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"github.com/flott-dev/flott/statebackend/pebble"
)

const (
	diskShare    = 10            // of the state, for memory
	diskWrites   = 8 << 20       // bytes of a memory table, of either side, beside that
	diskWarmUp   = 4             // times as long as what is counted
	zipfExponent = 0.99          // of frequencies: YCSB's
	zipfSteps    = 1 << 16       // into which all draws are parted
	zipfSpread   = 2_654_435_761 // a prime: frequent keys lie anywhere among the others
)

// onDisk compares a job whose state lies on disk with loops, one for each worker, that read, change and write the same accounts
// in Pebble itself. A quarter of the wanted state is enough: filling it takes long.
func onDisk(ctx context.Context, o stateOptions) (l stateLine, err error) {
	o.keys = max(1000, o.keys/4)
	l.StateBytes = o.keys * accountBytes
	memory, pick := int64(l.StateBytes/diskShare), zipf(o.keys)
	settle()
	j := newStateJob("disk", 0, o.folder, o.keys, pick)
	j.backend = pebble.Backend{Folder: o.folder, CacheBytes: memory * 3 / 4 / stateWorkers, Blocks: pebble.NewBlockCache(memory / 4)}
	var ours observed
	err = l.add(j.run(ctx, func(ctx context.Context) (err error) {
		if _, err = j.atPace(ctx, o, 0, diskWarmUp*watched, 0); err != nil {
			return err
		}
		ours, err = j.atPace(ctx, o, 0, watched, 0)
		return err
	}))
	if err != nil {
		return l, err
	}
	settle()
	rate, cpu, err := bareDisk(ctx, o, memory/stateWorkers, pick)
	if err != nil {
		return l, fmt.Errorf("loop over Pebble alone: %w", err)
	}
	_, err = l.floors(o, int64(l.StateBytes))
	l.Figures = []figure{
		{Name: "memory for caches", Value: float64(memory) / (1 << 20), Unit: "MiB"},
		perSecond("elements", ours.rate),
		perSecond("updates of Pebble alone", rate),
		{Name: "elements / updates of Pebble alone", Value: ratio(ours.rate, rate), Unit: "x", AtLeast: 5},
		{Name: "CPU of Pebble alone / of an element", Value: ratio(cpu, ours.cpu), Unit: "x"},
	}
	return l, err
}

// bareDisk gives the updates per second of all workers' loops, and the CPU seconds of each.
func bareDisk(ctx context.Context, o stateOptions, memory int64, pick func(uint64) uint64) (rate, cpu float64, err error) {
	var all []*bareStore
	defer func() {
		for _, s := range all {
			err = errors.Join(err, s.close())
		}
	}()
	for i := range stateWorkers {
		s, err := openBare(filepath.Join(o.folder, fmt.Sprint("bare-", i)), memory)
		if err != nil {
			return 0, 0, err
		}
		all = append(all, s)
	}
	each := func(f func(worker uint64, s *bareStore) error) error {
		errs := make([]error, len(all))
		var wg sync.WaitGroup
		for i, s := range all {
			wg.Go(func() { errs[i] = f(uint64(i), s) })
		}
		wg.Wait()
		return errors.Join(errs...)
	}
	err = each(func(worker uint64, s *bareStore) error { // load
		for k := worker; k < uint64(o.keys) && ctx.Err() == nil; k += stateWorkers {
			if err := s.update(k + 1); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	done := make([]uint64, len(all))
	var start time.Time
	var used float64
	for _, d := range []time.Duration{diskWarmUp * watched, watched} {
		if err != nil {
			return 0, 0, err
		}
		start, used = time.Now(), cpuSeconds()
		err = each(func(worker uint64, s *bareStore) (err error) {
			done[worker], err = s.updates(ctx, o.span(d), worker, pick)
			return err
		})
	}
	var n float64
	for _, m := range done {
		n += float64(m)
	}
	return n / time.Since(start).Seconds(), ratio(cpuSeconds()-used, n), err
}

// bareStore is a Pebble store with the settings of the state backend's own.
type bareStore struct {
	db     *pebbledb.DB
	blocks *pebbledb.Cache
	next   uint64
	key    [8]byte
}

func openBare(folder string, memory int64) (*bareStore, error) {
	s := &bareStore{blocks: pebbledb.NewCache(memory)}
	options := &pebbledb.Options{
		Cache: s.blocks, MemTableSize: diskWrites, MemTableStopWritesThreshold: 4, DisableWAL: true,
		FormatMajorVersion: pebbledb.FormatNewest, Logger: quiet{},
	}
	for i := range options.Levels {
		options.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	var err error
	if s.db, err = pebbledb.Open(folder, options); err != nil {
		s.blocks.Unref()
	}
	return s, err
}

func (s *bareStore) close() error {
	defer s.blocks.Unref()
	return s.db.Close()
}

// updates updates keys that pick chooses for a worker, for a time.
func (s *bareStore) updates(ctx context.Context, d time.Duration, worker uint64, pick func(uint64) uint64) (n uint64, err error) {
	for start := time.Now(); n%256 != 0 || time.Since(start) < d; n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return n, ctx.Err()
		}
		if err := s.update(pick(s.next*stateWorkers+worker) + 1); err != nil {
			return n, err
		}
		s.next++
	}
	return n, nil
}

// update does to the account of a key what a ledger does.
func (s *bareStore) update(k uint64) error {
	var b [accountBytes - 8]byte
	binary.BigEndian.PutUint64(s.key[:], scramble(k))
	v, closer, err := s.db.Get(s.key[:])
	switch {
	case err == nil:
		copy(b[:], v)
		if err := closer.Close(); err != nil {
			return err
		}
	case !errors.Is(err, pebbledb.ErrNotFound):
		return err
	}
	count := binary.LittleEndian.Uint64(b[:])
	slots := uint64(len(b)/8 - 1)
	if count > 0 && binary.LittleEndian.Uint64(b[8+count%slots*8:]) != note(k, count) {
		return fmt.Errorf("look into the account of key %d: it does not hold what was written", k)
	}
	count++
	binary.LittleEndian.PutUint64(b[:], count)
	binary.LittleEndian.PutUint64(b[8+count%slots*8:], note(k, count))
	return s.db.Set(s.key[:], b[:], pebbledb.NoSync)
}

// quiet is a logger of what nobody reads.
type quiet struct{}

func (quiet) Infof(string, ...any)      {}
func (quiet) Errorf(string, ...any)     {}
func (quiet) Fatalf(f string, x ...any) { panic(fmt.Sprintf(f, x...)) }

// zipf picks keys whose frequencies are Zipf's.
func zipf(keys int) func(uint64) uint64 {
	// weight is about the sum of the frequencies of all ranks below x, and place is its inverse.
	const e = 1 - zipfExponent
	weight := func(x float64) float64 { return (math.Pow(x+1, e) - 1) / e }
	place := func(w float64) float64 { return math.Pow(w*e+1, 1/e) - 1 }
	all := weight(float64(keys))
	var steps [zipfSteps + 1]float64
	for i := range steps {
		steps[i] = place(all * float64(i) / zipfSteps)
	}
	return func(u uint64) uint64 {
		x := scramble(u)
		at, part := x%zipfSteps, float64(x/zipfSteps>>16)/(1<<32)
		rank := min(uint64(steps[at]+(steps[at+1]-steps[at])*part), uint64(keys)-1)
		return rank * zipfSpread % uint64(keys)
	}
}
