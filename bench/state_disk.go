package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"

	pebbledb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/statebackend/pebble"
)

const (
	diskShare  = 10            // of the state, for memory
	diskRows   = 72            // percent of a subtask's memory, for rows: the rest is for blocks, a quarter as much, and for what is spare
	diskLeast  = 64 << 10      // bytes for rows, where there is little state: fewer would be a file and a sync every few elements
	diskWarmUp = 4             // times as long as what is counted
	zipfSteps  = 1 << 16       // into which all draws are parted
	zipfSpread = 2_654_435_761 // a prime: frequent keys lie anywhere among the others
)

// onDisk compares a job whose state lies on disk with the same job whose function keeps its accounts in Pebble by itself, in as
// much memory. Draws have a Zipf exponent. A quarter of the wanted state is enough: filling it takes long.
func onDisk(exponent float64) func(ctx context.Context, o stateOptions) (stateLine, error) {
	return func(ctx context.Context, o stateOptions) (l stateLine, err error) {
		o.keys = max(1000, o.keys/4)
		l.StateBytes = o.keys * accountBytes
		share, pick := int64(l.StateBytes/diskShare/stateWorkers), zipf(o.keys, exponent)
		ours := newStateJob("disk", 0, o.folder, o.keys, pick)
		ours.backend = pebble.Backend{Folder: o.folder, CacheBytes: max(diskLeast, (share-1<<20)*diskRows/100)}
		own, err := ours.onDisk(ctx, o, &l)
		if err != nil {
			return l, err
		}
		plain := newStateJob("plain", 0, o.folder, o.keys, pick)
		plain.own = func(*process.Runtime) *plainLedger { return newPlainLedger(o.folder, share) }
		bare, err := plain.onDisk(ctx, o, &l)
		if err != nil {
			return l, fmt.Errorf("a job with Pebble alone: %w", err)
		}
		_, err = l.floors(o, int64(l.StateBytes))
		l.Figures = []figure{
			{Name: "memory", Value: float64(share*stateWorkers) / (1 << 20), Unit: "MiB"},
			perSecond("elements", own.rate),
			perSecond("elements with Pebble alone", bare.rate),
			{Name: "elements / those with Pebble alone", Value: ratio(own.rate, bare.rate), Unit: "x", AtLeast: 5},
			{Name: "CPU of one with Pebble alone / of an element", Value: ratio(bare.cpu, own.cpu), Unit: "x"},
		}
		return l, err
	}
}

// onDisk runs the job at full speed until what is in memory has settled, and then looks at it.
func (j *stateJob) onDisk(ctx context.Context, o stateOptions, l *stateLine) (seen observed, err error) {
	settle()
	err = l.add(j.run(ctx, func(ctx context.Context) (err error) {
		if _, err = j.atPace(ctx, o, 0, diskWarmUp*watched, 0); err != nil {
			return err
		}
		seen, err = j.atPace(ctx, o, 0, watched, 0)
		return err
	}))
	return seen, err
}

// plainLedger is a ledger as somebody writes it who knows Pebble: it reads the account of an element, decodes, changes,
// encodes and writes it. All that the store takes is in its memory: Pebble takes memory tables out of what its cache of
// blocks has. As for the state backend, there is no log, no compression (notes have no order), and filters.
type plainLedger struct {
	process.NoTimers[uint64, touched]
	folder string
	blocks *pebbledb.Cache
	db     *pebbledb.DB
	failed error // of opening
	key    [8]byte
	value  [accountBytes - 8]byte
}

func newPlainLedger(in string, memory int64) *plainLedger {
	l := &plainLedger{blocks: pebbledb.NewCache(memory)}
	if l.folder, l.failed = os.MkdirTemp(in, "plain-"); l.failed != nil {
		return l
	}
	options := &pebbledb.Options{
		Cache: l.blocks, MemTableSize: uint64(max(memory/8, diskLeast)), DisableWAL: true, FormatMajorVersion: pebbledb.FormatNewest, Logger: quiet{},
	}
	for i := range options.Levels {
		options.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	l.db, l.failed = pebbledb.Open(l.folder, options)
	return l
}

// Close implements process.Closer.
func (l *plainLedger) Close() (err error) {
	if l.db != nil {
		err = l.db.Close()
	}
	l.blocks.Unref()
	return errors.Join(err, os.RemoveAll(l.folder))
}

func (l *plainLedger) ProcessElement(ctx *process.KeyedContext[uint64], t touch, out *process.Collector[touched]) error {
	if l.failed != nil {
		return l.failed
	}
	var a account
	binary.BigEndian.PutUint64(l.key[:], t.Key)
	v, closer, err := l.db.Get(l.key[:])
	if err == nil {
		a.decode(v)
		err = closer.Close()
	}
	if err != nil && !errors.Is(err, pebbledb.ErrNotFound) {
		return err
	}
	if !a.touch(t.Key) {
		return errLost(ctx.Key())
	}
	out.Collect(touched{t.Key, a.Count, t.At})
	a.encode(l.value[:])
	return l.db.Set(l.key[:], l.value[:], pebbledb.NoSync)
}

func (a *account) decode(b []byte) {
	a.Count = binary.LittleEndian.Uint64(b)
	for i := range a.Notes {
		a.Notes[i] = binary.LittleEndian.Uint64(b[8+8*i:])
	}
}

func (a *account) encode(b []byte) {
	binary.LittleEndian.PutUint64(b, a.Count)
	for i, n := range a.Notes {
		binary.LittleEndian.PutUint64(b[8+8*i:], n)
	}
}

// quiet is a logger of what nobody reads.
type quiet struct{}

func (quiet) Infof(string, ...any)      {}
func (quiet) Errorf(string, ...any)     {}
func (quiet) Fatalf(f string, x ...any) { panic(fmt.Sprintf(f, x...)) }

// zipf picks keys whose frequencies are Zipf's: 1/rank^exponent, which is not 1.
func zipf(keys int, exponent float64) func(uint64) uint64 {
	// weight is about the sum of the frequencies of all ranks below x, and place is its inverse.
	e := 1 - exponent
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
