package pebble

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/flott-dev/flott/statebackend"
)

const (
	blockCache = 16 << 20
	memTable   = 8 << 20
	// indexBlock is so large that a file has one index: a read of a cold row finds it in the cache.
	indexBlock = 256 << 10
	// treeBytes is the memory of a tree, apart from our cache: its cache of blocks and two of its memory tables.
	treeBytes = blockCache + 2*memTable
	// batchBytes is about how much is written at once.
	batchBytes = 2 << 20
)

// tree is the Pebble store of a store and of the snapshots that were taken of it; the last of them to go removes it.
type tree struct {
	*pebble.DB
	folder string
	memory statebackend.Budget

	copies atomic.Int64 // bytes that snapshots have copied

	mu    sync.Mutex
	users int
}

// broken is the error of a write in the background.
func (t *tree) broken() error { return nil }

func openTree(folder string, o *statebackend.Options) (*tree, error) {
	t := &tree{memory: o.Memory, users: 1}
	if t.memory != nil {
		if err := t.memory.Reserve(treeBytes); err != nil {
			return nil, fmt.Errorf("%w: %d bytes for the disk store: give the process more memory: %w",
				statebackend.ErrOutOfMemory, treeBytes, err)
		}
	}
	err := t.open(folder)
	if err != nil {
		t.giveBack()
	}
	return t, err
}

func (t *tree) open(folder string) (err error) {
	if folder != "" {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return fmt.Errorf("make the folder of states: %w", err)
		}
	}
	if t.folder, err = os.MkdirTemp(folder, "flott-state-"); err != nil {
		return fmt.Errorf("make a folder for state: %w", err)
	}
	blocks := pebble.NewCache(blockCache)
	defer blocks.Unref()
	o := &pebble.Options{
		Cache: blocks, MemTableSize: memTable, MemTableStopWritesThreshold: 4, DisableWAL: true, MaxOpenFiles: 256,
		L0CompactionThreshold: 2,
		FormatMajorVersion:    pebble.FormatNewest, Logger: silent{},
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		o.Levels[i].IndexBlockSize = indexBlock
		if i < len(o.Levels)-1 {
			o.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
		}
	}
	if t.DB, err = pebble.Open(t.folder, o); err != nil {
		return errors.Join(fmt.Errorf("open a store in %s: %w", t.folder, err), os.RemoveAll(t.folder))
	}
	return nil
}

func (t *tree) giveBack() {
	if t.memory != nil {
		t.memory.Release(treeBytes)
	}
}

// retain makes the caller a user of the tree.
func (t *tree) retain() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.users++
}

// release ends the use of the tree. The last user closes and removes it.
func (t *tree) release() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users--; t.users > 0 {
		return nil
	}
	defer t.giveBack()
	return errors.Join(t.Close(), os.RemoveAll(t.folder))
}

// scan calls f for each row between two keys until it returns false.
func scan(r pebble.Reader, from, to []byte, f func(key, value []byte) (bool, error)) (err error) {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for valid := it.First(); valid; valid = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if more, err := f(it.Key(), value); !more || err != nil {
			return err
		}
	}
	return it.Error()
}

// silent is a logger for Pebble, whose messages are about its own housekeeping; its errors come back from calls.
type silent struct{}

// Infof implements pebble.Logger.
func (silent) Infof(string, ...any) {}

// Errorf implements pebble.Logger.
func (silent) Errorf(string, ...any) {}

// Fatalf implements pebble.Logger: Pebble can't go on.
func (silent) Fatalf(format string, args ...any) { panic("pebble: " + fmt.Sprintf(format, args...)) }
