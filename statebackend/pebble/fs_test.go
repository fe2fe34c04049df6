package pebble

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/flott-dev/flott/statebackend"
)

// TestFilesPassThroughBuffers writes a file in pieces and reads it in pieces, from front to back and not.
func TestFilesPassThroughBuffers(t *testing.T) {
	fs := &scratchFS{FS: vfs.NewMem()}
	r := rand.New(rand.NewPCG(1, 2))
	want := make([]byte, 5*bufferBytes+123)
	for i := range want {
		want[i] = byte(r.Uint32())
	}
	f, err := fs.Create("a", vfs.WriteCategoryUnspecified)
	fatal(t, err)
	for rest := want; len(rest) > 0; {
		n := min(len(rest), r.IntN(2*bufferBytes))
		_, err := f.Write(rest[:n])
		fatal(t, err)
		rest = rest[n:]
		if r.IntN(3) == 0 {
			fatal(t, f.Sync())
			if info, err := fs.Stat("a"); err != nil || info.Size() != int64(len(want)-len(rest)) {
				t.Fatalf("a synced file has %v bytes, want %d; %v", info.Size(), len(want)-len(rest), err)
			}
		}
	}
	fatal(t, f.Close())
	for _, opts := range [][]vfs.OpenOption{nil, {vfs.SequentialReadsOption}} {
		f, err := fs.Open("a", opts...)
		fatal(t, err)
		for at := 0; at < len(want); {
			p := make([]byte, min(len(want)-at, 1+r.IntN(bufferBytes)))
			back := r.IntN(1 + min(at, 100))
			if n, err := f.ReadAt(p, int64(at-back)); n != len(p) || !bytes.Equal(p, want[at-back:at-back+n]) {
				t.Fatalf("%d bytes at %d: got %d, or others; %v", len(p), at-back, n, err)
			}
			at += len(p)
		}
		if n, err := f.ReadAt(make([]byte, 100), int64(len(want))-10); n != 10 || err != io.EOF {
			t.Errorf("over the end: got %d bytes and %v, want 10 and EOF", n, err)
		}
		fatal(t, f.Close())
	}
	if len(fs.spare) != 1 {
		t.Errorf("%d buffers are left, want the one that all shared", len(fs.spare))
	}
}

// TestMemoryTablesLeaveBlocksTheirMemory writes and reads a tree that is much larger than its memory tables, and these than
// its cache of blocks.
func TestMemoryTablesLeaveBlocksTheirMemory(t *testing.T) {
	c := openCounts(t, Backend{Folder: t.TempDir(), CacheBytes: leastCache, Blocks: NewBlockCache(1 << 20)}, statebackend.Options{})
	defer func() { fatal(t, c.store.Close()) }()
	for range 2 {
		for from := int64(0); from < 60_000; from += 1000 {
			c.add(1, span(from, from+1000)...)
		}
	}
	if c.store.tree.charged != c.store.tree.most() {
		t.Fatalf("the tree was charged %d bytes, want all it may have", c.store.tree.charged)
	}
	if n := c.store.tree.Metrics().BlockCache.Size; n < 768<<10 || n > 2<<20 {
		t.Errorf("the cache of blocks holds %d bytes, want about 1 MiB", n)
	}
}
