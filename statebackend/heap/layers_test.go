package heap

import (
	"bytes"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend"
)

// valued drives a table of values by runs, as states do, with a model beside it.
type valued[K comparable, V comparable] struct {
	*kit[K]
	r     *rand.Rand
	table statebackend.Table
	draw  func(*rand.Rand) K
	value func(*rand.Rand) V
	model map[K]V
	slots []unsafe.Pointer
	fresh []bool
}

func newValued[K, V comparable](t *testing.T, r *rand.Rand, draw func(*rand.Rand) K, value func(*rand.Rand) V) *valued[K, V] {
	d := &valued[K, V]{kit: newKit[K](t), r: r, draw: draw, value: value, model: map[K]V{}}
	var err error
	d.table, err = d.store.Table(statebackend.TableSpec{Name: "v", Value: handle[V](t)})
	ok(t, err)
	d.slots, d.fresh = make([]unsafe.Pointer, 2*block), make([]bool, 2*block)
	return d
}

// step does a run: all slots at once, or something with each key, in a random way.
func (d *valued[K, V]) step() {
	keys := make([]K, 1+d.r.IntN(len(d.slots)))
	for i := range keys {
		keys[i] = d.draw(d.r)
	}
	d.run(keys...)
	how := d.r.IntN(8)
	if how < 3 {
		ok(d.t, d.table.Slots(0, len(keys), d.slots, d.fresh))
	}
	for i, key := range keys {
		v := d.value(d.r)
		switch {
		case how < 3:
			*(*V)(d.slots[i]) = v
		case how == 3 && d.r.IntN(4) > 0:
			ok(d.t, d.table.Delete(i))
			delete(d.model, key)
			continue
		case how == 4:
			p := (*V)(d.table.Find(i))
			if want, has := d.model[key]; has != (p != nil) || has && want != *p {
				d.t.Fatalf("key %v holds %v, want %v", key, p, want)
			}
			continue
		default:
			ok(d.t, d.table.Save(i, unsafe.Pointer(&v)))
		}
		d.model[key] = v
	}
}

// rowsOfModel are the model as texts of rows.
func (d *valued[K, V]) rowsOfModel() map[string]string {
	out := map[string]string{}
	for key, v := range d.model {
		d.run(key)
		b, err := d.table.Spec().Value.Append(nil, unsafe.Pointer(&v))
		ok(d.t, err)
		out[string(d.canon.Bytes(0))] = string(b)
	}
	return out
}

// linkOf is a snapshot that is being read while the table is changed.
type linkOf struct {
	frozen  statebackend.Frozen
	how     statebackend.Freezing
	base    map[string]string // what the changes are applied to
	want    map[string]string
	next    func() (*statebackend.Row, error, bool)
	stop    func()
	changes bool
}

// freezeIn freezes and begins to read, by rows or by batches.
func (d *valued[K, V]) freezeIn(how statebackend.Freezing, base map[string]string) *linkOf {
	f, err := d.store.Freeze(how)
	ok(d.t, err)
	table := f.Tables()[0]
	l := &linkOf{frozen: f, how: how, base: base, want: d.rowsOfModel(), changes: table.Changes}
	if table.Changes && !how.Changes {
		d.t.Fatal("changes that nobody asked for")
	}
	rows := table.Rows
	if d.r.IntN(2) == 0 {
		rows = rowsOf(table)
	}
	l.next, l.stop = iter.Pull2(rows)
	return l
}

// read reads some rows and says whether that was all.
func (l *linkOf) read(t testing.TB, n int, to map[string]string) (all bool) {
	for range n {
		r, err, more := l.next()
		if !more {
			return true
		}
		ok(t, err)
		if r.Deleted {
			delete(to, string(r.Key))
		} else {
			to[string(r.Key)] = string(r.Value)
		}
	}
	return false
}

// TestRunsUnderChainsOfSnapshots changes tables by runs while snapshots of all kinds are open and being read: each is what the
// table held at its moment, whatever lies below it.
func TestRunsUnderChainsOfSnapshots(t *testing.T) {
	hot := func(n int) func(*rand.Rand) int64 {
		return func(r *rand.Rand) int64 {
			if r.IntN(20) == 0 {
				return r.Int64N(int64(n))
			}
			return r.Int64N(int64(n/50)) * 50
		}
	}
	word := func(r *rand.Rand) int64 { return r.Int64() }
	wide := func(r *rand.Rand) account { return account{r.Int64(), 2, 3, 11: r.Int64()} }
	t.Run("words", func(t *testing.T) { testRuns(t, 1, hot(9000), word) })
	t.Run("rows", func(t *testing.T) { testRuns(t, 2, hot(6000), wide) })
	t.Run("texts", func(t *testing.T) {
		of := hot(3000)
		testRuns(t, 3, func(r *rand.Rand) string { return fmt.Sprint("key ", of(r)) }, wide)
	})
}

func testRuns[K, V comparable](t *testing.T, seed uint64, draw func(*rand.Rand) K, value func(*rand.Rand) V) {
	t.Parallel()
	newValued(t, newRand(seed), draw, value).runChains(func() {})
}

// runChains changes the table by runs while chains of snapshots of it are read, and calls check now and then.
func (d *valued[K, V]) runChains(check func()) {
	for range 40 {
		d.step()
	}
	var base map[string]string
	open, sum := []*linkOf{}, map[*linkOf]map[string]string{}
	chains := 0
	for range 150 {
		d.step()
		check()
		claimsHold(d.t, d.store)
		if len(open) < 3 && d.r.IntN(2) == 0 {
			how := statebackend.Freezing{Anchor: d.r.IntN(4) > 0, Changes: base != nil && d.r.IntN(6) > 0}
			l := d.freezeIn(how, base)
			sum[l] = map[string]string{}
			if l.changes {
				chains++
				for key, v := range base {
					sum[l][key] = v
				}
			}
			if how.Anchor {
				base = l.want
			}
			open = append(open, l)
		}
		for i := len(open) - 1; i >= 0; i-- {
			if d.r.IntN(3) > 0 {
				continue // the first row that is read copies much of a table
			}
			if l := open[i]; l.read(d.t, d.r.IntN(2000), sum[l]) {
				sameMaps(d.t, sum[l], l.want)
				l.stop()
				if d.r.IntN(3) > 0 { // others are read to the end for some time
					l.frozen.Release()
					open = slices.Delete(open, i, i+1)
				}
			}
		}
	}
	for _, l := range open {
		l.stop()
		l.frozen.Release()
	}
	if d.run(d.draw(d.r)); chains < 20 {
		d.t.Errorf("only %d snapshots of changes", chains)
	}
	d.checkClosed()
}

func sameMaps(t testing.TB, got, want map[string]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
	for key, v := range want {
		if got[key] != v {
			t.Fatalf("key %x holds %x, want %x", key, got[key], v)
		}
	}
}

// TestChangesInBatchesAreThoseOfRows reads the same changes in both ways, and writes both: they are the same rows in the same order,
// and the same bytes on disk. A restore of the last of a chain holds what the table held.
func TestChangesInBatchesAreThoseOfRows(t *testing.T) {
	few := func(r *rand.Rand) int64 { return r.Int64N(2000) }
	t.Run("word and word", func(t *testing.T) { batchesOfChanges(t, few, func(r *rand.Rand) int64 { return r.Int64() }) })
	t.Run("word and account", func(t *testing.T) {
		batchesOfChanges(t, few, func(r *rand.Rand) account { return account{r.Int64(), 7: r.Int64()} })
	})
	t.Run("pair and byte", func(t *testing.T) {
		batchesOfChanges(t, func(r *rand.Rand) pair { return pair{r.Int64N(900), 4} }, func(r *rand.Rand) int8 { return int8(r.Int()) })
	})
	t.Run("few and odd", func(t *testing.T) {
		batchesOfChanges(t, func(r *rand.Rand) uint32 { return r.Uint32N(900) }, func(r *rand.Rand) [3]byte { return [3]byte{byte(r.Int()), 1, 2} })
	})
}

func batchesOfChanges[K, V comparable](t *testing.T, draw func(*rand.Rand) K, value func(*rand.Rand) V) {
	d := newValued(t, newRand(5), draw, value)
	for range 20 {
		d.step()
	}
	f, err := d.store.Freeze(statebackend.Freezing{Anchor: true})
	ok(t, err)
	whole := readAll(t, f)
	disk := [2]*layersOnDisk{{t: t, fs: vfs.NewMem()}, {t: t, fs: vfs.NewMem()}}
	for _, l := range disk {
		first, _ := whole.Table("v")
		l.write(first)
	}
	for range 12 {
		for range d.r.IntN(3) {
			d.step()
		}
		if d.r.IntN(4) == 0 {
			d.removeMost()
		}
		byRows, err := d.store.Freeze(statebackend.Freezing{Changes: true})
		ok(t, err)
		byBatches, err := d.store.Freeze(statebackend.Freezing{Changes: true, Anchor: true})
		ok(t, err)
		rows, batches := byRows.Tables()[0], byBatches.Tables()[0]
		if rows.Batches == nil || batches.Batches == nil || rows.Changes != batches.Changes {
			t.Fatal("changes of plain values do not come in batches, or once they do and once not")
		}
		rows.Batches = nil
		disk[0].write(rows)
		disk[1].write(batches)
		byRows.Release()
		byBatches.Release()
		want, got := disk[0].bytes(), disk[1].bytes()
		if !bytes.Equal(got, want) {
			t.Fatalf("%d bytes by batches, other %d by rows", len(got), len(want))
		}
		restored := restoredKit[K](t, disk[1].restore())
		_, err = restored.store.Table(*d.table.Spec())
		ok(t, err)
		held := map[string]string{}
		for _, r := range freeze(t, restored.store).tables["v"].rows {
			held[string(r.Key)] = string(r.Value)
		}
		sameMaps(t, held, d.rowsOfModel())
		restored.checkClosed()
	}
	d.run(d.draw(d.r))
	d.checkClosed()
}

// removeMost removes most of what there is.
func (d *valued[K, V]) removeMost() {
	for range 20 {
		keys := make([]K, block)
		for i := range keys {
			keys[i] = d.draw(d.r)
		}
		d.run(keys...)
		for i, key := range keys {
			ok(d.t, d.table.Delete(i))
			delete(d.model, key)
		}
	}
}

// layersOnDisk is a chain of snapshots of one table in a folder.
type layersOnDisk struct {
	t    testing.TB
	fs   vfs.FS
	last *checkpoint.Part
}

const layersFolder, layersOperator = "/s", "00000000000000000000000000000001"

// write writes a table, upon what was written before if it is of changes.
func (l *layersOnDisk) write(table statebackend.FrozenTable) {
	l.t.Helper()
	ok(l.t, l.fs.MkdirAll(layersFolder))
	w := checkpoint.Writer{FS: l.fs, Folder: layersFolder, InlineBytes: -1}
	state := &checkpoint.State{Tables: []statebackend.FrozenTable{table}, Earlier: l.last, EarlierFolder: layersFolder}
	var err error
	l.last, err = w.Write(l.t.Context(), layersOperator, 0, 0, 127, state)
	ok(l.t, err)
}

// bytes are those of all files of the last snapshot.
func (l *layersOnDisk) bytes() (all []byte) {
	own, _ := l.last.Files(layersFolder)
	for _, name := range own {
		b, err := vfs.ReadFile(l.fs, name)
		ok(l.t, err)
		all = append(all, b...)
	}
	return all
}

// restore is what a store begins with.
func (l *layersOnDisk) restore() statebackend.Restored {
	m := &checkpoint.Manifest{Folder: layersFolder, HashSeed: testSeed, Operators: []checkpoint.Operator{
		{ID: layersOperator, Parallelism: 1, MaxParallelism: 128, Parts: []*checkpoint.Part{l.last}},
	}}
	r, _, err := m.Restore(l.fs, layersOperator, 0, 1, 128)
	ok(l.t, err)
	return r
}
