package checkpoint

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend"
)

// columns say how a batch of keys of 8 bytes, times and values of 4 lies in memory.
type columns struct{ stride, time, value int }

// Batches of rows leave the bytes that the rows themselves leave, however they lie in memory.
func TestBatchesAreWrittenAsRows(t *testing.T) {
	plain := info(t, "t", "value", "int64", "int32", "", "", nil)
	stamped := plain
	stamped.TTL = &statebackend.TTL{Millis: 5}
	for name, c := range map[string]columns{
		"close": {12, 0, 8}, "with gaps": {24, 8, 16}, "with gaps behind": {16, 4, 8}, "values first": {24, 8, -4}, "close, with times": {20, 8, 16},
	} {
		for _, i := range []statebackend.TableInfo{plain, stamped} {
			for _, changes := range []bool{false, true} {
				rows, batches := randomBatches(c, i.TTL != nil, changes)
				byRows, byBatches := table(i, rows...), statebackend.FrozenTable{TableInfo: i, Batches: func(yield func(*statebackend.RowBatch, error) bool) {
					for b := range batches {
						if !yield(&batches[b], nil) {
							return
						}
					}
				}}
				byRows.Changes, byBatches.Changes = changes, changes
				if a, b := bytesOf(t, byRows), bytesOf(t, byBatches); !bytes.Equal(a, b) || len(a) < 1000 {
					t.Errorf("%s, stamped %t, changes %t: %d bytes by rows, %d others by batches", name, i.TTL != nil, changes, len(a), len(b))
				}
			}
		}
	}
}

// randomBatches makes up rows, and the batches that hold the same.
func randomBatches(c columns, stamped, changes bool) (rows []statebackend.Row, batches []statebackend.RowBatch) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for group := range 16 {
		for range rnd.IntN(4) {
			n := 1 + rnd.IntN(12_000)
			memory := make([]byte, n*c.stride+8)
			for i := range memory {
				memory[i] = byte(rnd.Uint32())
			}
			at := max(0, -c.value) // of the first key
			b := statebackend.RowBatch{Group: group, N: n, Keys: column(memory[at:], c.stride, 8), Deleted: changes && rnd.IntN(3) == 0}
			if !b.Deleted {
				b.Values = column(memory[at+c.value:], c.stride, 4)
			}
			if stamped && !b.Deleted {
				b.Times = column(memory[at+c.time:], c.stride, 8)
			}
			for i := range n {
				r := statebackend.Row{Group: group, Key: b.Keys.At(i), Deleted: b.Deleted}
				if !b.Deleted {
					r.Value = b.Values.At(i)
				}
				if stamped && !b.Deleted {
					r.At = int64(binary.LittleEndian.Uint64(b.Times.At(i)))
				}
				rows = append(rows, r)
			}
			batches = append(batches, b)
		}
	}
	return rows, batches
}

func TestBatchesThatDoNotFitAreRefused(t *testing.T) {
	plain := info(t, "t", "value", "int64", "int32", "", "", nil)
	for what, b := range map[string]statebackend.RowBatch{
		"a key of 4 bytes": {Group: 1, N: 1, Keys: column(make([]byte, 4), 4, 4), Values: column(make([]byte, 4), 4, 4)},
		"a value of 8":     {Group: 1, N: 1, Keys: column(make([]byte, 8), 8, 8), Values: column(make([]byte, 8), 8, 8)},
		"no times":         {Group: 1, N: 1, Keys: column(make([]byte, 8), 8, 8), Values: column(make([]byte, 4), 4, 4), Times: column(make([]byte, 8), 8, 8)},
		"deleted rows":     {Group: 1, N: 1, Keys: column(make([]byte, 8), 8, 8), Deleted: true},
		"key group 16":     {Group: 16, N: 1, Keys: column(make([]byte, 8), 8, 8), Values: column(make([]byte, 4), 4, 4)},
	} {
		_, w := folder(t)
		bad := statebackend.FrozenTable{TableInfo: plain, Batches: func(yield func(*statebackend.RowBatch, error) bool) { yield(&b, nil) }}
		if _, err := w.Write(t.Context(), op(1), 0, 0, 15, &State{Tables: []statebackend.FrozenTable{bad}}); err == nil {
			t.Errorf("%s was written", what)
		}
	}
}

// bytesOf are the bytes of all files of a part with a table. Changes lie on an empty one.
func bytesOf(t *testing.T, table statebackend.FrozenTable) (all []byte) {
	t.Helper()
	fs, w := folder(t)
	w.InlineBytes = -1
	state := &State{Tables: []statebackend.FrozenTable{table}}
	if table.Changes {
		var err error
		empty := statebackend.FrozenTable{TableInfo: table.TableInfo}
		if state.Earlier, err = w.Write(t.Context(), op(1), 0, 0, 15, &State{Tables: []statebackend.FrozenTable{empty}}); err != nil {
			t.Fatal(err)
		}
		state.EarlierFolder = "/s"
	}
	p, err := w.Write(t.Context(), op(1), 0, 0, 15, state)
	if err != nil {
		t.Fatal(err)
	}
	own, _ := p.Files("/s")
	for _, name := range own {
		b, err := vfs.ReadFile(fs, name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	return all
}
