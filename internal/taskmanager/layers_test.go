package taskmanager

import (
	"encoding/binary"
	"testing"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// part writes a part whose table has so many rows, as changes upon another part if there is one.
func part(t *testing.T, rows int, on *layer) *checkpoint.Part {
	t.Helper()
	number := serde.Schema{Kind: serde.Int64}
	table := statebackend.FrozenTable{
		TableInfo: statebackend.TableInfo{Name: "numbers", Kind: "value", Key: &number, Value: &number},
		Rows: func(yield func(*statebackend.Row, error) bool) {
			for i := range rows {
				b := binary.LittleEndian.AppendUint64(nil, uint64(i))
				if !yield(&statebackend.Row{Key: b, Value: b}, nil) {
					return
				}
			}
		},
	}
	state := &checkpoint.State{}
	if on != nil {
		table.Changes, state.Earlier, state.EarlierFolder = true, on.parts[0], on.folder
	}
	state.Tables = []statebackend.FrozenTable{table}
	w := checkpoint.Writer{FS: vfs.NewMem(), Folder: "/folder"}
	p, err := w.Write(t.Context(), "00000000000000000000000000000001", 0, 0, 0, state)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// chain plays snapshots of a task.
type chain struct {
	*testing.T
	layers
}

// take freezes snapshot id and says whether it is changes.
func (c *chain) freeze(id int64, full bool) bool {
	f := c.layers.freeze(id, full)
	if !f.Anchor {
		c.Fatalf("snapshot %d is none that others can build upon", id)
	}
	return f.Changes
}

func (c *chain) write(id int64, size int) {
	c.Helper()
	n := c.layers.take(id)
	on, err := n.below(nil)
	if err != nil {
		c.Fatal(err)
	}
	c.layers.wrote(n, "/folder", []*checkpoint.Part{part(c.T, size, on)})
}

func TestCheckpointsHoldChangesUntilTheseOutweighTheWhole(t *testing.T) {
	c := &chain{T: t}
	if c.freeze(1, false) {
		t.Error("the first snapshot of a task has nothing to build upon")
	}
	c.write(1, 1000)
	for id := int64(2); id <= 7; id++ { // changes hold 17 bytes a row, the whole 16
		if !c.freeze(id, false) {
			t.Fatalf("snapshot %d was whole", id)
		}
		size := 180
		if id == 7 {
			size = 50
		}
		c.write(id, size)
	}
	if c.freeze(8, false) {
		t.Error("with changes of more than the whole, the next one is whole")
	}
	c.write(8, 1000)
	if c.freeze(9, true) {
		t.Error("a full checkpoint was asked for")
	}
}

func TestChangesEndWithSixtyFourLayers(t *testing.T) {
	c := &chain{T: t}
	for id := int64(1); id <= maxLayers+1; id++ {
		if got, want := c.freeze(id, false), id > 1 && id <= maxLayers; got != want {
			t.Fatalf("snapshot %d: changes %v, want %v", id, got, want)
		}
		size := 1
		if id == 1 {
			size = 1000
		}
		c.write(id, size)
	}
}

func TestChangesBuildUponWhatIsStillBeingWritten(t *testing.T) {
	c := &chain{T: t}
	c.freeze(1, false)
	if !c.freeze(2, false) {
		t.Fatal("the second snapshot was whole")
	}
	one, two := c.layers.take(1), c.layers.take(2)
	done := make(chan struct{})
	close(done)
	if _, err := two.below(done); err == nil {
		t.Error("a task that is over waits for a layer")
	}
	c.layers.wrote(one, "/folder", []*checkpoint.Part{part(t, 10, nil)})
	if on, err := two.below(nil); err != nil || on != one {
		t.Errorf("snapshot 2 builds upon %v, %v", on, err)
	}
}

func TestNothingBuildsUponASnapshotThatWasGivenUp(t *testing.T) {
	for name, giveUp := range map[string]func(c *chain){
		"it was not written": func(c *chain) { c.layers.wrote(c.layers.take(2), "", nil) },
		"the coordinator aborted it": func(c *chain) {
			c.write(2, 10)
			c.layers.aborted(2)
		},
		"it was aborted before it was written": func(c *chain) {
			c.layers.aborted(2)
			c.write(2, 10)
		},
		"what lies below it was aborted": func(c *chain) {
			c.write(2, 10)
			c.layers.aborted(1)
		},
	} {
		c := &chain{T: t}
		c.freeze(1, false)
		c.write(1, 1000)
		c.freeze(2, false)
		giveUp(c)
		if c.freeze(3, false) {
			t.Errorf("%s, but the next one builds upon it", name)
		}
		c.write(3, 1000)
		if !c.freeze(4, false) {
			t.Errorf("%s: the one after the next was whole", name)
		}
	}
}

func TestTheEndOfOtherSnapshotsDoesNotMatter(t *testing.T) {
	c := &chain{T: t}
	c.freeze(2, false)
	c.write(2, 1000)
	c.layers.aborted(1) // of a savepoint, or of an earlier chain
	if !c.freeze(3, false) {
		t.Error("an older snapshot that nothing lies upon was given up, and the next one was whole")
	}
}

func TestChangesUponALayerThatFailedFail(t *testing.T) {
	c := &chain{T: t}
	c.freeze(1, false)
	c.freeze(2, false)
	one, two := c.layers.take(1), c.layers.take(2)
	c.layers.wrote(one, "", nil)
	if _, err := two.below(nil); err == nil {
		t.Error("changes since a snapshot that does not exist were written")
	}
}

// fileStore is a frozen store of a backend with files.
type fileStore struct{ statebackend.Frozen }

func (fileStore) Tables() []statebackend.FrozenTable { return nil }

func (fileStore) Files() (*statebackend.FileSet, error) {
	return &statebackend.FileSet{Format: "test/1"}, nil
}

func TestFilesOfABackendAreForCheckpointsThatOthersBuildUpon(t *testing.T) {
	for _, base := range []bool{false, true} {
		s := &operator.Snapshot{Stores: []statebackend.Frozen{fileStore{}}}
		s.Freezing.Anchor = base
		state, err := stateOf(s)
		if err != nil || (len(state.Files) == 1) != base {
			t.Errorf("base %v: files %v, %v", base, state.Files, err)
		}
	}
}
