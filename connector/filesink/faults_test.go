package filesink_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/vfs"
)

// Removing what is no longer needed is part of a commit: what fails may be tried again where that can help.
func TestRemovalsOfACommitMayBeTriedAgain(t *testing.T) {
	for err, again := range map[error]bool{syscall.EIO: true, fs.ErrPermission: false} {
		m := vfs.NewMem()
		disk := vfs.NewFaulty(m)
		h := byHand(t, disk, lines())
		gone := []filesink.Committable{{Temp: ".part-0-7.inprogress.id9"}}
		put(t, m, "out/.part-0-7.inprogress.id9", "merged elsewhere\n")
		disk.Fail(vfs.OpRemove, 1, err)
		if got := h.commit(gone); !errors.Is(got, err) || errors.Is(got, connector.ErrRetry) != again {
			t.Errorf("%v: %v", err, got)
		}
		h.ok(h.commit(gone))
		h.ok(h.commit(gone))
		nothingHidden(t, m)
		h.ok(h.w.Close())
	}
}

// A disk that takes less than it was given, and tells of no error, is one that fails.
func TestWritesThatAreCutShortFailTheTask(t *testing.T) {
	for name, sink := range map[string]*filesink.Sink[string]{
		"plain": lines(), "compressed": lines().Compress(filesink.Gzip), "whole files": bulk(),
	} {
		disk := vfs.NewFaulty(vfs.NewMem())
		h := byHand(t, disk, sink)
		h.write(0, "a", "b")
		disk.ShortWrite(1)
		if err := h.w.Flush(true); !errors.Is(err, io.ErrShortWrite) || !strings.Contains(err.Error(), "write out/.part-0-0") {
			t.Errorf("%s: %v", name, err)
		}
		if err := h.w.Flush(true); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("%s: after an error all is well: %v", name, err)
		}
		h.ok(h.w.Close())
	}
}

// A task that is cancelled does not merge on.
func TestMergingEndsWithTheTask(t *testing.T) {
	h := byHand(t, vfs.NewMem(), rolled().CompactAfter(2))
	h.feed("a")
	h.write(0, "b")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h.ctx.Ctx = ctx
	if err := h.w.Flush(false); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "merge files") {
		t.Errorf("got %v", err)
	}
	h.ok(h.w.Close())
}

// A file that was held back, and of which a later commit was broken off between copying and removing, is visible: its hidden name
// goes.
func TestHeldBackFileThatWasCopiedIsVisible(t *testing.T) {
	m := vfs.NewMem()
	described := filesink.New("store://out", file.TextEncoding[string]("\n")).NoBuckets().RollOnCheckpoint().CompactAfter(9)
	h := &hand[string]{t: t, fs: m, sink: stored(described, ids())(m), ctx: &writerContext{clock: clock.NewManual(0)}}
	w, err := h.sink.Writer(h.ctx)
	h.ok(err)
	h.w = w
	state := h.feed("a", "b")
	_, _, hidden := contents(t, m, "out")
	if len(hidden) != 2 {
		t.Fatalf("held back: %q", hidden)
	}
	data, err := vfs.ReadFile(m, hidden[0])
	h.ok(err)
	put(t, m, "out/part-0-0", string(data))
	again := h.restore(0, 1, own(state))
	again.end()
	nothingHidden(t, m)
	lines, _, _ := contents(t, m, "out")
	if len(lines) != 2 || again.ctx.Counts["partFilesVisibleBefore"] != 1 {
		t.Errorf("visible are %q; counts %v", lines, again.ctx.Counts)
	}
}

// A sink whose folder can not be looked at, made or kept fails before anything is written.
func TestSinkThatIsNotThereCannotBeWritten(t *testing.T) {
	disk := vfs.NewFaulty(vfs.NewMem())
	disk.FailFrom(vfs.OpStat, 1, syscall.EIO)
	if _, err := lines().On(disk, ids()).Writer(&filetest.WriterContext{}); !errors.Is(err, syscall.EIO) {
		t.Errorf("the folder can't be looked at: %v", err)
	}
	disk.Heal(vfs.OpStat)
	disk.FailFrom(vfs.OpMkdir, 1, syscall.EIO)
	if _, err := lines().On(disk, ids()).Writer(&filetest.WriterContext{}); !errors.Is(err, syscall.EIO) {
		t.Errorf("the folder can't be made: %v", err)
	}
	disk.Heal(vfs.OpMkdir)
	disk.FailFrom(vfs.OpSyncDir, 1, syscall.EIO)
	if _, err := lines().On(disk, ids()).Writer(&filetest.WriterContext{}); !errors.Is(err, syscall.EIO) {
		t.Errorf("the folder's name can't be made to survive: %v", err)
	}
}

// Sizes that no file has are no sizes, and a version to come is not guessed at.
func TestCommittablesOfNoFileAreRefused(t *testing.T) {
	of := func(version byte, size uint64) []byte { return binary.AppendUvarint([]byte{version, 0, 0, 0}, size) }
	var c filesink.Committable
	if err := c.UnmarshalBinary(of(1, 1<<63-1)); err != nil || c.Size != 1<<63-1 {
		t.Errorf("the largest size: %d, %v", c.Size, err)
	}
	for want, b := range map[string][]byte{
		"9223372036854775808 is too large": of(1, 1<<63),
		"version 2 is not known":           of(2, 5),
		"version 0 is not known":           of(0, 5),
		"1 bytes are left":                 append(of(1, 5), 0),
		"end too early":                    of(1, 5)[:4],
	} {
		if err := c.UnmarshalBinary(b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", b, err, want)
		}
	}
}
