package filesink_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/vfs"
)

// litter are files of earlier runs and of others: what ClearLeftovers removes, at two subtasks, and what it leaves alone.
func litter(t *testing.T, m vfs.FS) (gone [2][]string, stays []string) {
	t.Helper()
	gone = [2][]string{
		{"out/.part-0-4.inprogress.x", "out/a/b/.part-2-0.inprogress.y"},
		{"out/.part-1-0.inprogress.x", "out/2016-08-01--12/.part-3-90.inprogress.z"},
	}
	stays = []string{
		"out/part-0-0", "out/a/part-1-3", // visible
		"out/.part-0-1.txt.inprogress.x", "out/.part-0-1.gz.inprogress.x", "out/.other-0-1.inprogress.x", // other names
		"out/.part-0-99", "out/.part-x.inprogress.x", "out/_tmp/.part-0-1.inprogress.x", "out/.git/.part-0-1.inprogress.x",
	}
	for _, name := range slices.Concat(gone[0], gone[1], stays) {
		if err := m.MkdirAll(name[:strings.LastIndexByte(name, '/')]); err != nil {
			t.Fatal(err)
		}
		if err := vfs.WriteFile(m, name, []byte("old\n")); err != nil {
			t.Fatal(err)
		}
	}
	return gone, stays
}

// there checks that files exist, or don't.
func there(t *testing.T, m vfs.FS, want bool, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := m.Stat(name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLeftoversAreClearedAtAFreshStart(t *testing.T) {
	m := vfs.NewMem()
	gone, stays := litter(t, m)
	sink := lines().ClearLeftovers().On(m, ids())
	for i, names := range gone {
		there(t, m, true, names...)
		w, err := sink.Writer(&writerContext{filetest.WriterContext{Index: i, Number: 2}, clock.NewManual(0)})
		if err != nil {
			t.Fatal(err)
		}
		there(t, m, false, names...)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	there(t, m, true, stays...)
}

// A job that goes on from a snapshot, or whose sink does not say so, clears nothing of what it can't know.
func TestLeftoversStayWhereTheyMayBeOfUse(t *testing.T) {
	for name, c := range map[string]struct {
		sink *filesink.Sink[string]
		ctx  filetest.WriterContext
	}{
		"not asked for": {lines(), filetest.WriterContext{}},
		"restored":      {lines().ClearLeftovers(), filetest.WriterContext{RestoredJob: true}},
	} {
		t.Run(name, func(t *testing.T) {
			m := vfs.NewMem()
			gone, stays := litter(t, m)
			w, err := c.sink.On(m, ids()).Writer(&writerContext{c.ctx, clock.NewManual(0)})
			if err != nil {
				t.Fatal(err)
			}
			there(t, m, true, slices.Concat(gone[0], gone[1], stays)...)
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Writers that begin later, or anew, leave alone what others of their job have begun.
func TestLeftoversOfTheJobAtWorkAreNone(t *testing.T) {
	m := vfs.NewMem()
	sink := lines().ClearLeftovers().On(m, nil).PlacedBy(func(where string) (connector.Place, error) {
		return connector.Place{FS: m, Path: where}, nil
	})
	open := func(i, attempt int) connector.Writer[string] {
		w, err := sink.Writer(&writerContext{filetest.WriterContext{Index: i, Number: 2, AttemptNow: attempt}, clock.NewManual(0)})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	first := open(0, 0)
	if err := first.Write("a", connector.ElementContext{}); err != nil {
		t.Fatal(err)
	}
	_, _, before := contents(t, m, "out")
	if len(before) != 1 {
		t.Fatalf("hidden: %q", before)
	}
	again := open(0, 1)
	for _, w := range []connector.Writer[string]{open(1, 0), again} {
		if _, _, hidden := contents(t, m, "out"); !slices.Equal(hidden, before) {
			t.Errorf("hidden: %q", hidden)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestLeftoversThatStayAreCounted(t *testing.T) {
	m := vfs.NewMem()
	gone, _ := litter(t, m)
	ctx := &writerContext{filetest.WriterContext{}, clock.NewManual(0)}
	if _, err := lines().ClearLeftovers().On(stuck{m}, ids()).Writer(ctx); err != nil || ctx.Counts["leftoversKept"] != 4 {
		t.Errorf("%v, counted %v", err, ctx.Counts)
	}
	there(t, m, true, gone[0]...)
	if _, err := lines().ClearLeftovers().On(unlisted{m}, ids()).Writer(ctx); err == nil || !strings.Contains(err.Error(), "look for leftovers") {
		t.Errorf("got %v", err)
	}
	if err := lines().ClearLeftovers().KeepLeftovers().Check(); err == nil || !strings.Contains(err.Error(), "contradictory") {
		t.Errorf("got %v", err)
	}
}

// stuck is a file system that removes nothing.
type stuck struct{ vfs.FS }

func (stuck) Remove(string) error { return errCrash }

// unlisted is a file system whose folders can't be listed.
type unlisted struct{ vfs.FS }

func (unlisted) ReadDir(string) ([]fs.DirEntry, error) { return nil, errCrash }
