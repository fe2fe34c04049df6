package heap

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend"
)

// heldBatches gives the rows of tables of fixed width in batches of random sizes, with gaps between them.
type heldBatches struct {
	*held
	r      *rand.Rand
	most   int // rows of a batch
	asked  int
	number int64 // what is expected; 0: the truth
}

// Expect implements statebackend.RestoredBatches.
func (h *heldBatches) Expect(name string) int64 {
	if h.number != 0 {
		return h.number
	}
	return int64(len(h.tables[name].rows))
}

// Batches implements statebackend.RestoredBatches.
func (h *heldBatches) Batches(name string) (iter.Seq2[*statebackend.RowBatch, error], bool) {
	t := h.tables[name]
	return func(yield func(*statebackend.RowBatch, error) bool) {
		h.asked++
		for at := 0; at < len(t.rows); {
			n := 1
			for most := 1 + h.r.IntN(h.most); n < most && at+n < len(t.rows) && t.rows[at+n].Group == t.rows[at].Group; {
				n++
			}
			if !yield(h.batch(t, t.rows[at:at+n]), nil) {
				return
			}
			at += n
		}
	}, true
}

func (h *heldBatches) batch(t *heldTable, rows []statebackend.Row) *statebackend.RowBatch {
	gap := h.r.IntN(3)
	b := &statebackend.RowBatch{Group: rows[0].Group, N: len(rows)}
	k, v := len(rows[0].Key), len(rows[0].Value)
	var all []byte
	for i := range rows {
		all = append(all, rows[i].Key...)
		if t.TTL != nil {
			all = binary.LittleEndian.AppendUint64(all, uint64(rows[i].At))
		}
		all = append(append(all, rows[i].Value...), make([]byte, gap)...)
	}
	stride := len(all) / len(rows)
	b.Keys = statebackend.ByteColumn{B: all, Stride: stride, Width: k}
	if t.TTL != nil {
		b.Times = statebackend.ByteColumn{B: all[k:], Stride: stride, Width: stampBytes}
	}
	b.Values = statebackend.ByteColumn{B: all[stride-gap-v:], Stride: stride, Width: v}
	return b
}

type padded struct {
	A int8
	B int64
	C bool
}

// TestBatchesAreRestoredAsRows restores random tables by rows and by batches, with the number of rows known and not, and with
// another one.
func TestBatchesAreRestoredAsRows(t *testing.T) {
	t.Run("word and word", func(t *testing.T) { batchesAsRows(t, (*rand.Rand).Int64, (*rand.Rand).Int64) })
	t.Run("byte and byte", func(t *testing.T) {
		batchesAsRows(t, func(r *rand.Rand) int8 { return int8(r.Int()) }, func(r *rand.Rand) int8 { return int8(r.Int()) })
	})
	t.Run("few and account", func(t *testing.T) {
		batchesAsRows(t, func(r *rand.Rand) uint32 { return r.Uint32N(300) }, func(r *rand.Rand) account { return account{r.Int64(), 2, 3, 11: r.Int64()} })
	})
	t.Run("pair and padded", func(t *testing.T) {
		batchesAsRows(t, func(r *rand.Rand) pair { return pair{r.Int64(), r.Int64()} }, func(r *rand.Rand) padded { return padded{int8(r.Int()), r.Int64(), r.IntN(2) > 0} })
	})
	t.Run("word and nothing", func(t *testing.T) {
		batchesAsRows(t, (*rand.Rand).Int64, func(*rand.Rand) [3]byte { return [3]byte{} })
	})
}

func batchesAsRows[K comparable, V any](t *testing.T, key func(*rand.Rand) K, value func(*rand.Rand) V) {
	for seed, n := range []int{0, 1, 40, 700, 3_000, 30_000} {
		for _, life := range []*statebackend.TTL{nil, ttl(50)} {
			r := newRand(uint64(seed))
			spec := statebackend.TableSpec{Name: "v", Value: handle[V](t), TTL: life}
			k := filled(t, r, spec, n, key, value)
			snap := freeze(t, k.store)
			k.checkClosed()
			now := k.now + r.Int64N(60)
			clock := func(o *statebackend.Options) { o.Now = func() int64 { return now } }
			want := opened[K](t, snap, spec, clock)
			for _, number := range []int64{0, 1, int64(n) * 3} {
				h := &heldBatches{held: snap, r: r, most: 1 + r.IntN(2000), number: number}
				got := opened[K](t, h, spec, clock)
				sameRows(t, freeze(t, got.store).tables["v"], freeze(t, want.store).tables["v"])
				if a, b := got.store.tables[0].(*valueTable), want.store.tables[0].(*valueTable); a.Len() != b.Len() || number != int64(n)*3 && a.MemoryBytes() > b.MemoryBytes() || h.asked != 1 {
					t.Errorf("%d rows of %d, %d bytes, by rows %d of %d bytes; the batches were read %d times", a.Len(), n, a.MemoryBytes(), b.Len(), b.MemoryBytes(), h.asked)
				}
				got.checkClosed()
			}
			want.checkClosed()
		}
	}
}

// filled is a store with a table of n random rows, written at different times.
func filled[K comparable, V any](t *testing.T, r *rand.Rand, spec statebackend.TableSpec, n int, key func(*rand.Rand) K, value func(*rand.Rand) V) *kit[K] {
	k := newKit[K](t)
	table, err := k.store.Table(spec)
	ok(t, err)
	for n > 0 {
		keys := make([]K, min(n, block))
		for i := range keys {
			keys[i] = key(r)
		}
		k.now += r.Int64N(2)
		k.run(keys...)
		for i := range keys {
			v := value(r)
			ok(t, table.Save(i, unsafe.Pointer(&v)))
		}
		n -= len(keys)
	}
	return k
}

// opened is a store restored from a snapshot, with its table open.
func opened[K comparable](t *testing.T, from statebackend.Restored, spec statebackend.TableSpec, change func(*statebackend.Options)) *kit[K] {
	t.Helper()
	k := restoredKit[K](t, from, change)
	_, err := k.store.Table(spec)
	ok(t, err)
	return k
}

// What is said twice, as only a snapshot that was made by hand may have it, holds as it was said last.
func TestTheLastRowOfAKeyHolds(t *testing.T) {
	k := newKit[int64](t)
	spec := statebackend.TableSpec{Name: "v", Value: handle[int64](t)}
	table, err := k.store.Table(spec)
	ok(t, err)
	for key := range int64(200) {
		k.run(key)
		ok(t, table.Save(0, unsafe.Pointer(&key)))
	}
	snap := freeze(t, k.store)
	k.checkClosed()
	h := snap.tables["v"]
	var rows []statebackend.Row
	for _, r := range h.rows {
		first := r
		first.Value = make([]byte, 8)
		for range 40 { // batches that are taken in at once
			rows = append(rows, first)
		}
		rows = append(rows, r)
	}
	want := &heldTable{h.TableInfo, h.rows}
	h.rows = rows
	b := &heldBatches{held: &held{names: snap.names, tables: map[string]*heldTable{"v": h}}, r: newRand(1), most: 100}
	got := opened[int64](t, b, spec, func(*statebackend.Options) {})
	sameRows(t, freeze(t, got.store).tables["v"], want)
	got.checkClosed()
}

func TestBatchesOfAnotherSubtaskOrWidthAreRefused(t *testing.T) {
	k := filled(t, newRand(1), statebackend.TableSpec{Name: "v", Value: handle[int64](t)}, 5000, (*rand.Rand).Int64, (*rand.Rand).Int64)
	snap := freeze(t, k.store)
	k.checkClosed()
	for name, change := range map[string]func(*statebackend.Options, []statebackend.Row){
		"the subtask has groups 3 to 5 of 128": func(o *statebackend.Options, _ []statebackend.Row) { o.FirstGroup, o.LastGroup = 3, 5 },
		"a key of 5 bytes": func(_ *statebackend.Options, rows []statebackend.Row) {
			for i := range rows {
				rows[i].Key = rows[i].Key[:5]
			}
		},
		"1 too many": func(_ *statebackend.Options, rows []statebackend.Row) {
			for i := range rows {
				rows[i].Value = append(rows[i].Value[:8:8], 0)
			}
		},
	} {
		for _, most := range []int{1, 1000} {
			rows := append([]statebackend.Row(nil), snap.tables["v"].rows...)
			h := &heldBatches{r: newRand(1), most: most, held: &held{names: snap.names, tables: map[string]*heldTable{"v": {snap.tables["v"].TableInfo, rows}}}}
			got := restoredKit[int64](t, h, func(o *statebackend.Options) { change(o, rows) })
			_, err := got.store.Table(statebackend.TableSpec{Name: "v", Value: handle[int64](t)})
			if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), `restore state "v"`) {
				t.Errorf("batches of %d: got %v, want %q", most, err, name)
			}
			got.checkClosed()
		}
	}
}

// TestExpectedPagesAreThoseOfSplits compares the pages that are made at once with those that come to be one by one.
func TestExpectedPagesAreThoseOfSplits(t *testing.T) {
	for _, n := range []int{0, 1, 500, 1023, 1100, 3000, 30_000, 60_000, 100_000, 200_000, 310_000} {
		grown, made := newAccounts(t, 0), newAccounts(t, 0)
		made.table.(*valueTable).expect(int64(n))
		for _, a := range []*accounts{grown, made} {
			keys := make([]int64, block)
			for from := 0; from < n; from += block {
				for j := range keys {
					keys[j] = int64(min(from+j, n-1))
				}
				a.update(keys)
			}
		}
		g, m := grown.table.(*valueTable).ix.(*rowIndex), made.table.(*valueTable).ix.(*rowIndex)
		if len(m.pages) != len(g.pages) || m.held() != g.held() {
			t.Errorf("%d rows: %d pages, splits make %d", n, len(m.pages), len(g.pages))
		}
		grown.checkClosed()
		made.checkClosed()
	}
}

// Without memory for all pages at once a table grows as ever, and says as ever what is missing.
func TestExpectationsTakeNoMemoryThatIsNotThere(t *testing.T) {
	k := filled(t, newRand(1), statebackend.TableSpec{Name: "v", Value: handle[int64](t)}, 5000, (*rand.Rand).Int64, (*rand.Rand).Int64)
	snap := freeze(t, k.store)
	k.checkClosed()
	h := &heldBatches{held: snap, r: newRand(1), most: 1000, number: 1 << 40}
	limited := &budget{limit: 1 << 20}
	got := opened[int64](t, h, statebackend.TableSpec{Name: "v", Value: handle[int64](t)}, func(o *statebackend.Options) { o.Memory = limited })
	if n := got.store.tables[0].(*valueTable).Len(); n != 5000 {
		t.Errorf("%d rows", n)
	}
	ok(t, got.store.Close())
	if limited.held != 0 {
		t.Errorf("%d bytes are held", limited.held)
	}
}

// TestSnapshotsOnDiskComeBack writes snapshots of tables of all kinds and restores them at other parallelisms, by batches and
// by rows.
func TestSnapshotsOnDiskComeBack(t *testing.T) {
	r := newRand(5)
	fs := vfs.NewMem()
	ok(t, fs.MkdirAll("/s"))
	k := newKit[int64](t)
	specs := []statebackend.TableSpec{
		{Name: "values", Value: handle[int64](t)},
		{Name: "accounts", Value: handle[account](t), TTL: ttl(1000)},
		{Name: "texts", Value: handle[textValue](t)},
		{Name: "encoded", Value: handle[[]int64](t)},
	}
	n := 5_000
	for at := 0; at < n; at += block {
		keys := make([]int64, min(block, n-at))
		for i := range keys {
			keys[i] = r.Int64N(int64(n))
		}
		k.now++
		k.run(keys...)
		for _, spec := range specs {
			table, err := k.store.Table(spec)
			ok(t, err)
			for i := range keys {
				ok(t, table.Save(i, drawn(spec, r)))
			}
		}
	}
	m := written(t, k.store, fs, "/s")
	want := freeze(t, k.store)
	for _, parallelism := range []int{1, 3, 2} {
		for _, how := range []string{"rows", "batches"} {
			got := &held{tables: map[string]*heldTable{}}
			for subtask := range parallelism {
				restored, _, err := m.Restore(fs, m.Operators[0].ID, subtask, parallelism, 128)
				ok(t, err)
				if how == "rows" {
					restored = byRows{restored}
				}
				part := restoredKit[int64](t, restored, func(o *statebackend.Options) {
					o.FirstGroup, o.LastGroup = (subtask*128+parallelism-1)/parallelism, ((subtask+1)*128-1)/parallelism
					o.Now = func() int64 { return k.now }
				})
				for _, spec := range specs {
					_, err := part.store.Table(spec)
					ok(t, err)
				}
				for name, table := range freeze(t, part.store).tables {
					if got.tables[name] == nil {
						got.tables[name] = &heldTable{TableInfo: table.TableInfo}
					}
					got.tables[name].rows = append(got.tables[name].rows, table.rows...)
				}
				part.checkClosed()
			}
			for name, table := range want.tables {
				if got.tables[name] == nil || len(table.rows) == 0 {
					t.Fatalf("table %s: %d rows at first, then %v", name, len(table.rows), got.tables[name])
				}
				sameRows(t, got.tables[name], table)
			}
		}
	}
	k.checkClosed()
}

// drawn is a random value of a table.
func drawn(spec statebackend.TableSpec, r *rand.Rand) unsafe.Pointer {
	switch spec.Name {
	case "values":
		v := r.Int64()
		return unsafe.Pointer(&v)
	case "accounts":
		v := account{r.Int64(), r.Int64()}
		return unsafe.Pointer(&v)
	case "texts":
		v := textValue{N: r.Int64(), S: fmt.Sprint(r.IntN(100)), Flag: true}
		return unsafe.Pointer(&v)
	}
	v := make([]int64, r.IntN(5))
	for i := range v {
		v[i] = r.Int64()
	}
	return unsafe.Pointer(&v)
}

// byRows hides that a snapshot gives batches.
type byRows struct{ statebackend.Restored }

// written takes a snapshot of a store of one subtask.
func written(t testing.TB, s *store, fs vfs.FS, folder string) *checkpoint.Manifest {
	t.Helper()
	f, err := s.Freeze(statebackend.Freezing{})
	ok(t, err)
	defer f.Release()
	id := fmt.Sprintf("%032x", 1)
	p, err := (&checkpoint.Writer{FS: fs, Folder: folder}).Write(t.Context(), id, 0, 0, s.LastGroup, &checkpoint.State{Tables: f.Tables()})
	ok(t, err)
	return &checkpoint.Manifest{
		Folder: folder, HashSeed: testSeed,
		Operators: []checkpoint.Operator{{ID: id, Parallelism: 1, MaxParallelism: s.MaxParallelism, Parts: []*checkpoint.Part{p}}},
	}
}
