package windows

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/window"
)

// kernelsOf are kernels with accumulators of type A.
func kernelsOf[A any](t testing.TB) *Incremental {
	t.Helper()
	acc, err := serde.Of[A]()
	if err != nil {
		t.Fatal(err)
	}
	p := Program[A, string, window.Time, A, A, A]{Aggregate: last[A]{}, Emit: func(x *A, _ *window.Info[string, window.Time], r A) { *x = r }}
	return p.Incremental(acc)
}

// frozenOf is an empty snapshot, by text.
func frozenOf(t testing.TB, k *Incremental, memory *host.Memory) *Frozen {
	t.Helper()
	key, err := serde.KeyOf[string]()
	if err != nil {
		t.Fatal(err)
	}
	return NewFrozen(k, key, 5, 16, memory)
}

// last is an aggregate that keeps the last element.
type last[A any] struct{}

func (last[A]) Create() (acc A)     { return acc }
func (last[A]) Add(acc *A, x A)     { *acc = x }
func (last[A]) Merge(acc, other *A) { *acc = *other }
func (last[A]) Result(acc *A) A     { return *acc }

var _ agg.Aggregate[int, int, int] = last[int]{}

func label(text string) func(int, *statebackend.Row) []byte {
	return func(j int, row *statebackend.Row) []byte {
		row.MapKey = fmt.Append(nil, text, j)
		return []byte("<")
	}
}

// rows are those of a snapshot as texts, in groups that rise: table, key, label and value.
func rows[A any](t testing.TB, f *Frozen) (all []string) {
	t.Helper()
	for _, table := range f.Tables() {
		group := 0
		for row, err := range table.Rows {
			if err != nil {
				t.Fatal(err)
			}
			if g := keygroup.Of(uint32(f.Key.HashOne(row.Key, 5)), 16); row.Group != g || g < group || uint64(row.Hash) != f.Key.HashOne(row.Key, 5) {
				t.Fatalf("a row of key %s is in group %d after %d", row.Key, row.Group, group)
			}
			group = row.Group
			var acc A
			if _, err := f.K.Acc.Read(row.Value[1:], unsafe.Pointer(&acc)); err != nil || row.Value[0] != '<' {
				t.Fatalf("value %q: %v", row.Value, err)
			}
			all = append(all, fmt.Sprint(table.Name, " ", string(row.Key), " ", string(row.MapKey), " ", acc))
		}
	}
	slices.Sort(all)
	return all
}

// TestFrozenIsThatOfItsMoment: what is changed afterwards, behind pointers too, is not in it.
func TestFrozenIsThatOfItsMoment(t *testing.T) {
	t.Run("in place", func(t *testing.T) {
		frozenOnce(t, []int64{10, 11, 12, 13}, func(x *int64) { *x = 0 }, "%d")
	})
	t.Run("text", func(t *testing.T) {
		frozenOnce(t, []string{"10", "11", "12", "13"}, func(x *string) { *x = "" }, "%d")
	})
	t.Run("encoded", func(t *testing.T) {
		frozenOnce(t, [][]int64{{10}, {11}, {12}, {13}}, func(x *[]int64) { (*x)[0] = 0 }, "[%d]")
	})
}

func frozenOnce[A any](t *testing.T, values []A, spoil func(*A), form string) {
	memory := host.NewMemory(1 << 20)
	keys := []string{"a", "b", "c", "d"}
	f := frozenOf(t, kernelsOf[A](t), memory)
	one, two := f.Table(statebackend.TableInfo{Name: "one"}), f.Table(statebackend.TableInfo{Name: "two"})
	f.Table(statebackend.TableInfo{Name: "empty"})
	f.SetKeys(unsafe.Pointer(&keys[0]), len(keys))
	var shadows Shadows
	share := func(p *Part) *Part {
		p.Shadow = f.Shadow(&shadows, len(values), p.Holds, f.Accumulators(unsafe.Pointer(&values[0])))
		return p
	}
	f.Add(one, share(&Part{Label: label("d"), Bits: []uint64{0b1011}}))
	f.Add(one, share(&Part{Label: label("l"), IDs: []uint32{NoKey, 2, NoKey, 0}}))
	f.Add(two, &Part{Label: label("x"), IDs: []uint32{1}, Places: []uint32{2}, Accs: unsafe.Pointer(&slices.Clone(values)[0])})
	if err := shadows.Keep(0, 1, 2, 3); err != nil {
		t.Fatal(err)
	}
	if memory.Used() == 0 {
		t.Error("the copies are not accounted for")
	}
	// what nobody has a shadow of stays, and is read last
	for i := range values {
		if i != 2 {
			spoil(&values[i])
		}
	}
	var want []string
	for _, row := range []struct {
		text  string
		value int
	}{{"one a d0", 10}, {"one a l3", 13}, {"one b d1", 11}, {"one c l1", 11}, {"one d d3", 13}, {"two b x0", 12}} {
		want = append(want, row.text+" "+fmt.Sprintf(form, row.value))
	}
	if got := rows[A](t, f); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	f.Release()
	if memory.Used() != 0 {
		t.Errorf("%d bytes are still held", memory.Used())
	}
	if shadows.Open() || shadows != nil {
		t.Error("a snapshot that was released is still open")
	}
}

// world is arrays of a driver that go on being written while snapshots are read.
type world[A any] struct {
	t       *testing.T
	r       *rand.Rand
	memory  *host.Memory
	k       *Incremental
	value   func(*rand.Rand) A
	keys    []string
	values  []A
	bits    []uint64
	shadows Shadows
	open    []taken
}

// taken is a snapshot that was taken, and what is in it.
type taken struct {
	f    *Frozen
	want []string
	done chan []string // it is being read; nil: it is not
}

func (w *world[A]) take() {
	f := frozenOf(w.t, w.k, w.memory)
	table := f.Table(statebackend.TableInfo{Name: "t"})
	f.ShareKeys(&w.shadows, unsafe.Pointer(&w.keys[0]), len(w.keys))
	p := &Part{Label: label("d"), Bits: slices.Clone(w.bits)}
	p.Shadow = f.Shadow(&w.shadows, len(w.values), p.Holds, f.Accumulators(unsafe.Pointer(&w.values[0])))
	f.Add(table, p)
	s := taken{f: f}
	for i, v := range w.values {
		if p.Holds(uint32(i)) {
			s.want = append(s.want, fmt.Sprint("t ", w.keys[i], " d", i, " ", v))
		}
	}
	slices.Sort(s.want)
	w.open = append(w.open, s)
}

// end reads or begins to read, or cancels, one of the snapshots.
func (w *world[A]) end() {
	i := w.r.IntN(len(w.open))
	s := &w.open[i]
	switch what := w.r.IntN(4); {
	case s.done != nil:
		w.check(s)
	case what == 0:
		s.f.Release()
	case what == 1:
		got := rows[A](w.t, s.f)
		s.f.Release()
		w.compare(got, s.want)
	default:
		s.done = make(chan []string)
		go func(f *Frozen, done chan []string) {
			defer close(done)
			all := rows[A](w.t, f)
			f.Release()
			done <- all
		}(s.f, s.done)
		return
	}
	w.open = slices.Delete(w.open, i, i+1)
}

func (w *world[A]) check(s *taken) { w.compare(<-s.done, s.want) }

func (w *world[A]) compare(got, want []string) {
	w.t.Helper()
	if !slices.Equal(got, want) {
		w.t.Fatalf("%d rows, want %d:\n%.2000q\n%.2000q", len(got), len(want), got, want)
	}
}

// change writes some values, or moves all to another array.
func (w *world[A]) change() {
	if w.r.IntN(20) == 0 {
		if w.k.Acc.Layout == serde.Encoded {
			must(w.t, w.shadows.KeepAll())
		}
		bytes := int64(len(w.values)) * int64(w.k.Accs.Size)
		must(w.t, w.memory.Reserve(bytes)) // what it takes when it is lent
		if !w.shadows.Lend(w.memory, bytes) {
			w.memory.Release(bytes)
		}
		w.values = slices.Clone(w.values)
	}
	at := make([]uint32, 1+w.r.IntN(50))
	for i := range at {
		at[i] = uint32(w.r.IntN(len(w.values)))
	}
	must(w.t, w.shadows.Keep(at...))
	for _, i := range at {
		if w.bits[i>>6]>>(i&63)&1 == 0 || w.r.IntN(3) == 0 {
			w.values[i] = w.value(w.r)
		} else if p, ok := any(&w.values[i]).(*[]int64); ok {
			(*p)[0]++ // behind the pointer
		}
		w.bits[i>>6] |= 1 << (i & 63)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func changing[A any](t *testing.T, value func(*rand.Rand) A) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := []int{1, 70, 600, 5000}[r.IntN(4)]
		w := &world[A]{
			t: t, r: r, memory: host.NewMemory(1 << 30), k: kernelsOf[A](t), value: value, keys: make([]string, n), values: make([]A, n), bits: make([]uint64, (n+63)/64),
		}
		for i := range w.keys {
			w.keys[i] = fmt.Sprint("key ", i)
		}
		for range 200 {
			switch what := r.IntN(12); {
			case what == 0 && len(w.open) < 3:
				w.take()
			case what == 1 && len(w.open) > 0:
				w.end()
			default:
				w.change()
			}
		}
		for i := range w.open {
			if s := &w.open[i]; s.done != nil {
				w.check(s)
			} else {
				s.f.Release()
			}
		}
		if w.memory.Used() != 0 {
			t.Fatalf("seed %d: %d bytes are held although no snapshot is open", seed, w.memory.Used())
		}
	}
}

// TestSnapshotsStayAsTheyWere while arrays are written, grow and are read by others.
func TestSnapshotsStayAsTheyWere(t *testing.T) {
	t.Run("in place", func(t *testing.T) { changing(t, (*rand.Rand).Int64) })
	t.Run("wide", func(t *testing.T) {
		changing(t, func(r *rand.Rand) [5]int64 { return [5]int64{r.Int64(), 1, 2, 3, r.Int64()} })
	})
	t.Run("text", func(t *testing.T) { changing(t, func(r *rand.Rand) string { return strings.Repeat("x", r.IntN(9)) }) })
	t.Run("encoded", func(t *testing.T) {
		changing(t, func(r *rand.Rand) []int64 { return []int64{r.Int64N(1000), r.Int64N(1000)} })
	})
}

// Memory that several snapshots need goes back with the last of them, whichever that is.
func TestLoansEndWithTheLastSnapshot(t *testing.T) {
	memory, values := host.NewMemory(1<<20), make([]int64, 10)
	k := kernelsOf[int64](t)
	for last := range 2 {
		var shadows Shadows
		var all [2]*Frozen
		for i := range all {
			all[i] = frozenOf(t, k, memory)
			all[i].Shadow(&shadows, len(values), nil, all[i].Accumulators(unsafe.Pointer(&values[0])))
		}
		must(t, memory.Reserve(80))
		if !shadows.Lend(memory, 80) || shadows != nil {
			t.Fatal("nobody takes the array")
		}
		all[1-last].Release()
		if memory.Used() != 80 {
			t.Errorf("%d bytes are held for a snapshot that is open", memory.Used())
		}
		all[last].Release()
		if memory.Used() != 0 {
			t.Errorf("%d bytes are held", memory.Used())
		}
	}
}

// Snapshots may end, on the goroutines of their writers, while values are kept for all that are open: those behind them must not
// be passed over.
func TestValuesAreKeptThoughOtherSnapshotsEndMeanwhile(t *testing.T) {
	k, values := kernelsOf[[]int64](t), make([][]int64, 4)
	var shadows Shadows
	var all [3]*Frozen
	for i := range all {
		all[i] = frozenOf(t, k, host.NewMemory(0))
		present := func(uint32) bool {
			if i == 0 {
				all[1].Release()
				all[0].Release()
			}
			return true
		}
		all[i].Shadow(&shadows, len(values), present, all[i].Accumulators(unsafe.Pointer(&values[0])))
	}
	must(t, shadows.Keep(2))
	if body := all[2].shadows[0].body.Load(); body.settled[0]&1 == 0 {
		t.Error("nothing was kept for the last snapshot")
	}
	if len(shadows) != 1 {
		t.Errorf("%d snapshots are open, want 1", len(shadows))
	}
	all[2].Release()
}

func TestCopiesKeepToTheBudget(t *testing.T) {
	f := frozenOf(t, kernelsOf[int64](t), host.NewMemory(100))
	values := make([]int64, 64)
	var shadows Shadows
	f.Shadow(&shadows, 64, nil, f.Accumulators(unsafe.Pointer(&values[0])))
	if err := shadows.Keep(3); !errors.Is(err, statebackend.ErrOutOfMemory) || !strings.Contains(err.Error(), "raise the parallelism") {
		t.Errorf("error %v", err)
	}
	if err := shadows.KeepAll(); !errors.Is(err, statebackend.ErrOutOfMemory) {
		t.Errorf("error %v", err)
	}
	if err := shadows.Draw(101); !errors.Is(err, statebackend.ErrOutOfMemory) {
		t.Errorf("error %v", err)
	}
	f.Release()
	if err := shadows.Keep(3); err != nil || f.account.memory.Used() != 0 {
		t.Errorf("error %v after the release, %d bytes are still held", err, f.account.memory.Used())
	}
	for _, err := range f.rows(&frozenTable{}) {
		if !errors.Is(err, errReleased) {
			t.Errorf("a row of a snapshot that was released, error %v", err)
		}
	}
}
