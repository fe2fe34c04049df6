package pebble

import (
	"context"
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
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/flott-dev/flott/statebackend"
)

const (
	defaultBlocks = 16 << 20
	leastBlocks   = 256 << 10
	// A memory table takes a quarter of what the cache of rows does, within these bounds. Pebble has two of them.
	leastMemTable = 1 << 20
	mostMemTable  = 8 << 20
	// firstTables is what memory tables take in an empty tree. They grow with what is written.
	firstTables = 512 << 10
	// leastTree is the memory of a tree that has been written little, apart from its cache of blocks.
	leastTree = 1 << 20
	// indexBlock is so large that a file has one index: a read of a cold row finds it in the cache.
	indexBlock = 256 << 10
	// A file takes an eighth of what the cache of rows does, within these bounds: its filter and its index, each of which is one
	// block, fit into the cache of blocks, and a large tree has few files.
	leastFile = 2 << 20
	mostFile  = 16 << 20
	// baseBytes is the size up to which a tree has one level below level 0, so that a read looks into few files.
	baseBytes = 256 << 20
	// mostLayers is how many layers level 0 may have before all is merged into the level below. A read asks a filter for each
	// of them, which is in memory; to merge is to write nearly all of the level below, as keys are scattered over it.
	mostLayers = 16
	// stopLayers is how many layers level 0 has when writes wait until it has less.
	stopLayers = 4 * mostLayers
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
	blocks  *BlockCache
	cached  *pebble.Cache     // of blocks
	charged int64             // drawn on the budget for memory tables
	filled  int64             // written, until memory tables have all that they may have
	table   int64             // the largest size of a memory table
	file    int64             // the size of files
	lent    []func()          // take back what was given to the cache of blocks
	paid    int64             // of the cache of blocks, by this tree
	it      *pebble.Iterator  // that reads rows; nil: it is to be made
	deep    bool              // it asks the filters of the lowest level
	reads   int               // that it will not be used for
	taken   uint64            // the number that Pebble gave the file that it took over last
	names   map[string]string // of files that came with a snapshot: what they are called in it

	copies  atomic.Int64 // bytes that snapshots have copied
	numbers atomic.Int64 // of files that are not Pebble's

	mu    sync.Mutex
	users int
}

// newTree makes a folder for a tree, which is to be opened or released.
func newTree(b *Backend, o *statebackend.Options) (*tree, error) {
	t := &tree{
		memory: o.Memory, users: 1, names: map[string]string{},
		table: min(max(b.CacheBytes/4, leastMemTable), mostMemTable), file: min(max(b.CacheBytes/8, leastFile), mostFile),
	}
	var id [8]byte
	_, _ = rand.Read(id[:])
	t.id = hex.EncodeToString(id[:])
	disk := b.disk
	if disk == nil {
		disk = vfs.Default
	}
	t.fs = &scratchFS{FS: disk}
	if err := t.charge(b); err != nil {
		return nil, err
	}
	if err := t.makeFolder(b.Folder); err != nil {
		t.giveBack()
		return nil, err
	}
	return t, nil
}

// charge draws the memory of an empty tree on the budget.
func (t *tree) charge(b *Backend) error {
	if t.blocks = b.Blocks; t.blocks == nil {
		t.blocks = NewBlockCache(min(defaultBlocks, b.CacheBytes/4))
	}
	cached, payer, err := t.blocks.open(t.memory)
	if err != nil {
		return err
	}
	t.cached = cached
	if payer {
		t.paid = t.blocks.size
	}
	if err := t.grow(leastTree); err != nil {
		t.blocks.close()
		return err
	}
	t.lend(firstTables)
	return nil
}

// extend draws n bytes more for memory tables.
func (t *tree) extend(n int64) error {
	if err := t.grow(n); err != nil {
		return err
	}
	t.lend(n)
	return nil
}

// lend makes the cache of blocks n bytes larger: Pebble takes what memory tables have from it, and would leave nothing.
func (t *tree) lend(n int64) { t.lent = append(t.lent, t.cached.Reserve(-int(n))) }

// most is the memory of a tree with two memory tables of their largest size.
func (t *tree) most() int64 { return 2*t.table + leastTree }

// grow draws n bytes more on the budget.
func (t *tree) grow(n int64) error {
	if t.memory != nil {
		if err := t.memory.Reserve(n); err != nil {
			return fmt.Errorf("%w: %d bytes more for the disk store: give the process more memory: %w", statebackend.ErrOutOfMemory, n, err)
		}
	}
	t.charged += n
	return nil
}

// fill notes that n bytes more were written, and gives what memory tables then take beyond what was drawn for them.
func (t *tree) fill(n int64) (need int64) {
	most := t.most()
	t.filled = min(t.filled+n, most)
	need = min(leastTree+2*t.filled, most) - t.charged
	return max(0, min((need+leastTree-1)/leastTree*leastTree, most-t.charged))
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
	o := &pebble.Options{
		FS: t.fs, Cache: t.cached, MemTableSize: uint64(t.table), MemTableStopWritesThreshold: 2, DisableWAL: true, MaxOpenFiles: 256,
		L0CompactionThreshold: 2 * mostLayers, L0StopWritesThreshold: stopLayers, // the first is compared with twice the layers
		MaxManifestFileSize: manifestBytes, LBaseMaxBytes: baseBytes, FormatMajorVersion: pebble.FormatNewest, Logger: silent{},
	}
	o.Local.ReadaheadConfig = objstorageprovider.NewReadaheadConfig()
	o.Local.ReadaheadConfig.Set(objstorageprovider.FadviseSequential, objstorageprovider.NoReadahead) // cold rows lie far apart
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		o.Levels[i].IndexBlockSize = indexBlock
		o.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
		o.TargetFileSizes[i] = t.file
	}
	// A file that was not written whole is read as one that is damaged. The read says so; else Pebble would end the process.
	o.EventListener = &pebble.EventListener{DataCorruption: func(pebble.DataCorruptionInfo) {}, TableIngested: t.took}
	o.Experimental.DisableIngestAsFlushable = func() bool { return true } // so that files have numbers at once
	o.EnsureDefaults()
	t.options = o
	if t.DB, err = pebble.Open(t.home(), o); err != nil {
		return fmt.Errorf("open a store in %s: %w", t.folder, err)
	}
	return nil
}

func (t *tree) giveBack() {
	for _, takeBack := range t.lent {
		takeBack()
	}
	t.blocks.close()
	if t.memory != nil {
		t.memory.Release(t.charged)
	}
}

// took notes the number of a file. Pebble calls it before Ingest returns.
func (t *tree) took(info pebble.TableIngestInfo) {
	for i := range info.Tables {
		t.taken = uint64(info.Tables[i].FileNum)
	}
}

// takeOver makes files that do not overlap parts of the tree, which moves them. It waits while level 0 has too many layers.
func (t *tree) takeOver(paths ...string) error {
	t.renew()
	if t.Metrics().Levels[0].Sublevels >= stopLayers {
		if _, err := t.AsyncFlush(); err != nil { // which waits, as a write would
			return err
		}
	}
	return t.Ingest(context.Background(), paths)
}

// mostReads is how often an iterator is used: while there is one, files that it may read stay, though merged.
const mostReads = 1 << 16

// reader gives an iterator that reads single rows of what was written until now, without those of layers if they are to be
// left out. It stays good until renew is called, which who writes does.
func (t *tree) reader(deep, hide bool) (_ *pebble.Iterator, err error) {
	if t.reads--; t.it != nil && t.reads > 0 && t.deep == deep {
		return t.it, nil
	}
	t.renew()
	o := &pebble.IterOptions{UseL6Filters: deep}
	if hide {
		o.PointKeyFilters = []pebble.BlockPropertyFilter{marker{t.id}}
	}
	if t.it, err = t.NewIter(o); err != nil {
		t.it = nil
		return nil, err
	}
	t.deep, t.reads = deep, mostReads
	return t.it, nil
}

// renew ends the use of the iterator. What closing it could say was said by Error.
func (t *tree) renew() {
	if t.it != nil {
		_ = t.it.Close()
		t.it = nil
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
