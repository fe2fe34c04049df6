package checkpoint

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend"
)

// Batches of rows leave the bytes that the rows themselves leave.
func TestBatchesAreWrittenAsRows(t *testing.T) {
	plain := info(t, "t", "value", "int64", "int32", "", "", nil)
	stamped := plain
	stamped.TTL = &statebackend.TTL{Millis: 5}
	for name, i := range map[string]statebackend.TableInfo{"plain": plain, "with times": stamped} {
		t.Run(name, func(t *testing.T) {
			var rows []statebackend.Row
			var batches []statebackend.RowBatch
			rnd := rand.New(rand.NewPCG(1, 2))
			for group := range 16 {
				for range rnd.IntN(4) {
					n := 1 + rnd.IntN(12_000)
					b := statebackend.RowBatch{Group: group, N: n, Keys: column(nil, 24, 8), Values: column(nil, 24, 4)}
					for range n {
						row := binary.LittleEndian.AppendUint64(nil, rnd.Uint64())
						at := rnd.Uint64()
						row = binary.LittleEndian.AppendUint64(row, at)
						row = binary.LittleEndian.AppendUint64(row, rnd.Uint64())
						b.Keys.B = append(b.Keys.B, row...)
						r := statebackend.Row{Group: group, Key: row[:8], Value: row[16:20]}
						if i.TTL != nil {
							r.At = int64(at)
						}
						rows = append(rows, r)
					}
					all := b.Keys.B
					b.Values.B = all[16:]
					if i.TTL != nil {
						b.Times = column(all[8:], 24, 8)
					}
					batches = append(batches, b)
				}
			}
			byRows, byBatches := table(i, rows...), statebackend.FrozenTable{TableInfo: i, Batches: func(yield func(*statebackend.RowBatch, error) bool) {
				for b := range batches {
					if !yield(&batches[b], nil) {
						return
					}
				}
			}}
			if a, b := bytesOf(t, byRows), bytesOf(t, byBatches); !bytes.Equal(a, b) || len(a) < 1000 {
				t.Errorf("%d bytes by rows, %d others by batches", len(a), len(b))
			}
		})
	}
	for what, b := range map[string]statebackend.RowBatch{
		"a key of 4 bytes": {Group: 1, N: 1, Keys: column(make([]byte, 4), 4, 4), Values: column(make([]byte, 4), 4, 4)},
		"a value of 8":     {Group: 1, N: 1, Keys: column(make([]byte, 8), 8, 8), Values: column(make([]byte, 8), 8, 8)},
		"no times":         {Group: 1, N: 1, Keys: column(make([]byte, 8), 8, 8), Values: column(make([]byte, 4), 4, 4), Times: column(make([]byte, 8), 8, 8)},
		"key group 16":     {Group: 16, N: 1, Keys: column(make([]byte, 8), 8, 8), Values: column(make([]byte, 4), 4, 4)},
	} {
		_, w := folder(t)
		bad := statebackend.FrozenTable{TableInfo: plain, Batches: func(yield func(*statebackend.RowBatch, error) bool) { yield(&b, nil) }}
		if _, err := w.Write(t.Context(), op(1), 0, 0, 15, &State{Tables: []statebackend.FrozenTable{bad}}); err == nil {
			t.Errorf("%s was written", what)
		}
	}
}

// bytesOf are the bytes of all files of a part with a table.
func bytesOf(t *testing.T, table statebackend.FrozenTable) (all []byte) {
	t.Helper()
	fs, w := folder(t)
	w.InlineBytes = -1
	p, err := w.Write(t.Context(), op(1), 0, 0, 15, &State{Tables: []statebackend.FrozenTable{table}})
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
