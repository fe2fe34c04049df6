package pebble

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

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
	// manifestBytes bounds the list of changes to the list of files, which is part of each snapshot.
	manifestBytes = 64 << 10
	// lastSpace is the last part of a tree that can be given out.
	lastSpace = 1<<16 - 2
)

// tree is the Pebble store of a store and of the snapshots that were taken of it; the last of them to go removes it.
type tree struct {
	*pebble.DB
	fs      *scratchFS
	options *pebble.Options
	id      string // unlike those of all other trees
	folder  string // that is removed in the end; the store is in db in it
	memory  statebackend.Budget
	names   map[string]string // of files that came with a snapshot: what they are called in it

	copies  atomic.Int64 // bytes that snapshots have copied
	numbers atomic.Int64 // of files that are not Pebble's

	mu    sync.Mutex
	users int
}

// newTree makes a folder for a tree, which is to be opened or released.
func newTree(b *Backend, o *statebackend.Options) (*tree, error) {
	t := &tree{memory: o.Memory, users: 1, names: map[string]string{}}
	var id [8]byte
	_, _ = rand.Read(id[:])
	t.id = hex.EncodeToString(id[:])
	disk := b.disk
	if disk == nil {
		disk = vfs.Default
	}
	t.fs = &scratchFS{FS: disk}
	if t.memory != nil {
		if err := t.memory.Reserve(treeBytes); err != nil {
			return nil, fmt.Errorf("%w: %d bytes for the disk store: give the process more memory: %w",
				statebackend.ErrOutOfMemory, treeBytes, err)
		}
	}
	if err := t.makeFolder(b.Folder); err != nil {
		t.giveBack()
		return nil, err
	}
	return t, nil
}

func (t *tree) makeFolder(in string) error {
	if in != "" {
		if err := t.fs.MkdirAll(in, 0o700); err != nil {
			return fmt.Errorf("make the folder of states: %w", err)
		}
	} else {
		in = os.TempDir()
	}
	t.folder = filepath.Join(in, "flott-state-"+t.id)
	if err := t.fs.MkdirAll(t.home(), 0o700); err != nil {
		return fmt.Errorf("make a folder for state: %w", err)
	}
	return nil
}

// home is the folder of Pebble's own.
func (t *tree) home() string { return filepath.Join(t.folder, "db") }

// number gives out a number for a file or folder.
func (t *tree) number() int64 { return t.numbers.Add(1) }

// open opens the store, which has what lies in home.
func (t *tree) open() (err error) {
	blocks := pebble.NewCache(blockCache)
	defer blocks.Unref()
	o := &pebble.Options{
		FS: t.fs, Cache: blocks, MemTableSize: memTable, MemTableStopWritesThreshold: 4, DisableWAL: true, MaxOpenFiles: 256,
		L0CompactionThreshold: 4, MaxManifestFileSize: manifestBytes,
		FormatMajorVersion: pebble.FormatNewest, Logger: silent{},
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		o.Levels[i].IndexBlockSize = indexBlock
		if i < len(o.Levels)-1 {
			o.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
		}
	}
	o.EnsureDefaults()
	t.options = o
	if t.DB, err = pebble.Open(t.home(), o); err != nil {
		return fmt.Errorf("open a store in %s: %w", t.folder, err)
	}
	return nil
}

func (t *tree) giveBack() {
	if t.memory != nil {
		t.memory.Release(treeBytes)
	}
}

// broken is the error of a write in the background, after which the tree is not whole.
func (t *tree) broken() error {
	if err := t.fs.broken(); err != nil {
		return fmt.Errorf("write to the disk store in %s: %w", t.folder, err)
	}
	return nil
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
	var err error
	if t.DB != nil {
		err = t.Close()
	}
	return errors.Join(err, t.fs.RemoveAll(t.folder))
}

// scanOf gives a way to call f for each row between two keys until it returns false.
func scanOf(r pebble.Reader) func(from, to []byte, f func(key, value []byte) (bool, error)) error {
	return func(from, to []byte, f func(key, value []byte) (bool, error)) error { return scan(r, from, to, f) }
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
