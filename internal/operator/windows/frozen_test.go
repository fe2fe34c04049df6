package windows

import (
	"errors"
	"fmt"
	"runtime/debug"
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

// frozenOf is an empty snapshot with accumulators of type A, by text.
func frozenOf[A any](t *testing.T, memory *host.Memory) *Frozen {
	t.Helper()
	acc, err := serde.Of[A]()
	if err != nil {
		t.Fatal(err)
	}
	key, err := serde.KeyOf[string]()
	if err != nil {
		t.Fatal(err)
	}
	p := Program[A, string, window.Time, A, A, A]{Aggregate: last[A]{}, Emit: func(x *A, _ *window.Info[string, window.Time], r A) { *x = r }}
	return &Frozen{K: p.Incremental(acc), Key: key, Seed: 5, Groups: 16, Memory: memory}
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

// check compares the rows of a snapshot: keys, labels and values, in groups that rise.
func check[A any](t *testing.T, f *Frozen, want ...string) {
	t.Helper()
	var got []string
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
			got = append(got, fmt.Sprint(table.Name, " ", string(row.Key), " ", string(row.MapKey), " ", acc))
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestFrozenIsThatOfItsMoment: what is changed afterwards, behind pointers too, is not in it.
func TestFrozenIsThatOfItsMoment(t *testing.T) {
	memory := host.NewMemory(1 << 20)
	t.Run("in place", func(t *testing.T) {
		frozenKind(t, memory, func() []int64 { return []int64{10, 11, 12, 13} }, func(x *int64) { *x = 0 })
	})
	t.Run("text", func(t *testing.T) {
		frozenKind(t, memory, func() []string { return []string{"10", "11", "12", "13"} }, func(x *string) { *x = "" })
	})
	t.Run("encoded", func(t *testing.T) {
		frozenKind(t, memory, func() [][]int64 { return [][]int64{{10}, {11}, {12}, {13}} }, func(x *[]int64) { (*x)[0] = 0 })
	})
	if memory.Used() != 0 {
		t.Errorf("%d bytes are still held", memory.Used())
	}
}

func frozenKind[A any](t *testing.T, memory *host.Memory, values func() []A, spoil func(*A)) {
	f := frozenOf[A](t, memory)
	f.Spare = &Spare{}
	for range 3 { // with memory that is new, and that of the one before
		frozenOnce(t, f, memory, values(), spoil)
		f = &Frozen{K: f.K, Key: f.Key, Seed: f.Seed, Groups: f.Groups, Memory: memory, Spare: f.Spare}
	}
}

func frozenOnce[A any](t *testing.T, f *Frozen, memory *host.Memory, values []A, spoil func(*A)) {
	t.Helper()
	keys := []string{"a", "b", "c", "d"}
	one, two := f.Table(statebackend.TableInfo{Name: "one"}), f.Table(statebackend.TableInfo{Name: "two"})
	f.Table(statebackend.TableInfo{Name: "empty"})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(f.CopyKeys(unsafe.Pointer(&keys[0]), len(keys)))
	accs := f.K.Accs.New(64)
	f.K.Accs.Move(accs, unsafe.Pointer(&values[0]), len(values))
	must(f.AddDense(one, accs, []uint64{0b1011}, label("d")))
	must(f.AddListed(one, accs, []uint32{2, 0}, []uint32{3, 2}, label("l")))
	must(f.AddListed(two, accs, []uint32{1}, []uint32{0}, label("x")))
	if memory.Used() == 0 {
		t.Error("the copies are not accounted for")
	}
	keys[0] = "changed"
	for i := range values {
		spoil((*A)(f.K.Accs.At(accs, i)))
	}
	text := func(s string) string {
		if _, ok := any(values).([][]int64); ok {
			i := strings.LastIndex(s, " ")
			return s[:i+1] + "[" + s[i+1:] + "]"
		}
		return s
	}
	check[A](t, f, text("one a d0 10"), text("one a l1 12"), text("one b d1 11"), text("one c l0 13"), text("one d d2 13"), text("two b x0 10"))
	f.Release()
}

// Without a collection of garbage in between, arrays of about the same size are used again, each once.
func TestCopiesUseTheMemoryOfTheSnapshotBefore(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	f, spare := frozenOf[int64](t, nil), &Spare{}
	arrays := func(of *Memory, sizes ...int) (all []unsafe.Pointer) {
		g := &Frozen{K: f.K, Spare: spare}
		for _, n := range sizes {
			all = append(all, g.array(of, n))
		}
		g.Release()
		return all
	}
	first := arrays(&f.K.Accs, 1000, 3000)
	if got := arrays(&f.K.Accs, 2900, 1000); got[0] != first[1] || got[1] != first[0] {
		t.Error("arrays were made anew")
	}
	if got := arrays(&f.K.Accs, 1000, 1000); got[0] != first[0] || got[1] == first[0] || got[1] == first[1] {
		t.Error("an array was used twice, or one that is much too large")
	}
	if got := arrays(&f.K.Keys, 1000); got[0] == first[0] {
		t.Error("keys lie in memory of accumulators")
	}
	spare.take()
	if len(spare.take().arrays) != 0 {
		t.Error("arrays were there twice")
	}
}

func TestFrozenKeepsToTheBudget(t *testing.T) {
	f := frozenOf[int64](t, host.NewMemory(100))
	table := f.Table(statebackend.TableInfo{Name: "one"})
	keys := make([]string, 64)
	if err := f.CopyKeys(unsafe.Pointer(&keys[0]), 64); !errors.Is(err, statebackend.ErrOutOfMemory) {
		t.Errorf("error %v", err)
	}
	if err := f.AddDense(table, f.K.Accs.New(64), []uint64{1}, label("d")); !errors.Is(err, statebackend.ErrOutOfMemory) {
		t.Errorf("error %v", err)
	}
	f.Release()
	if got := f.Memory.Used(); got != 0 {
		t.Errorf("%d bytes are still held", got)
	}
}
