package checkpoint

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

func TestRowsComeBackAtAnyParallelism(t *testing.T) {
	fs := vfs.NewMem()
	j := newJob(t, fs)
	s := openStorage(t, fs)
	for id, parallelism := range []int{1, 2, 3, 16} {
		j.parallelism = parallelism
		if _, err := j.checkpoint(s, int64(id+1)); err != nil {
			t.Fatal(err)
		}
		m, err := s.Latest()
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Verify(fs); err != nil {
			t.Error(err)
		}
		for _, now := range []int{1, 2, 3, 5, 16} {
			t.Run(fmt.Sprint(parallelism, " to ", now), func(t *testing.T) {
				got, err := restoredState(fs, m, now, j.groups)
				if want := j.wholeState(); err != nil || got != want {
					t.Errorf("%v\ngot:\n%.2000s\nwant:\n%.2000s", err, got, want)
				}
			})
		}
	}
}

func TestRestoreOfAnUnknownOperatorIsEmpty(t *testing.T) {
	fs := vfs.NewMem()
	m, err := newJob(t, fs).checkpoint(openStorage(t, fs), 1)
	if err != nil {
		t.Fatal(err)
	}
	if r, lists, err := m.Restore(fs, op(9), 0, 1, 128); r != nil || lists != nil || err != nil {
		t.Errorf("got %v, %v, %v", r, lists, err)
	}
	r, lists, err := m.Restore(fs, op(2), 0, 5, 500)
	if r == nil || len(r.Tables()) != 0 || lists != nil || err != nil {
		t.Errorf("an operator without state: %v, %v, %v", r, lists, err)
	}
	if _, ok := r.Table("counts"); ok {
		t.Error("it has a table")
	}
	if _, _, err := m.Read(fs, op(9)); err == nil || !strings.Contains(err.Error(), "has no operator") {
		t.Errorf("read: %v", err)
	}
}

func TestMaxParallelismOfKeyedStateIsFixed(t *testing.T) {
	fs := vfs.NewMem()
	j := newJob(t, fs)
	m, err := j.checkpoint(openStorage(t, fs), 1)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = m.Restore(fs, op(1), 0, 2, 32)
	for _, want := range []string{`operator "Counts" (UID "the-counts")`, "max parallelism of 16", "the program says 32", "set it to 16", m.Folder} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for _, c := range []struct{ subtask, parallelism int }{{0, 17}, {2, 2}, {-1, 2}, {0, 0}} {
		if _, _, err := m.Restore(fs, op(1), c.subtask, c.parallelism, 16); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
	// Lists belong to no key group: their max parallelism may change.
	if _, all, err := lists(t, fs, 0, [][]List{{{Name: "l", Items: items("i", 3)}}}).Restore(fs, op(1), 0, 1, 500); err != nil || len(all[0].Items) != 3 {
		t.Errorf("lists: %v, %v", all, err)
	}
}

func TestSubtasksMustAgreeOnTheirTables(t *testing.T) {
	fs, w := folder(t)
	a := info(t, "t", "value", "int64", "int64", "", "", nil)
	for _, b := range []statebackend.TableInfo{
		info(t, "t", "value", "int64", "int32", "", "", nil),
		info(t, "t", "value", "string", "int64", "", "", nil),
		info(t, "t", "map", "int64", "int64", "", "", nil),
		info(t, "t", "value", "int64", "int64", "bool", "", nil),
		info(t, "t", "value", "int64", "int64", "", "bool", nil),
		info(t, "t", "value", "int64", "int64", "", "", &statebackend.TTL{Millis: 1}),
	} {
		o := Operator{ID: op(1), Parallelism: 2, MaxParallelism: 2}
		for subtask, i := range []statebackend.TableInfo{a, b} {
			p, err := w.Write(t.Context(), op(1), subtask, subtask, subtask, &State{Tables: []statebackend.FrozenTable{table(i)}})
			if err != nil {
				t.Fatal(err)
			}
			o.Parts = append(o.Parts, p)
		}
		m := &Manifest{Folder: "/s", Operators: []Operator{o}}
		if _, _, err := m.Restore(fs, op(1), 0, 1, 2); err == nil || !strings.Contains(err.Error(), `its subtasks do not agree on what table "t" is`) {
			t.Errorf("%+v: %v", b, err)
		}
	}
}

func TestATableThatOneSubtaskOpenedIsRestored(t *testing.T) {
	fs, w := folder(t)
	i := info(t, "t", "value", "int64", "int64", "", "", nil)
	o := Operator{ID: op(1), Parallelism: 2, MaxParallelism: 2}
	for subtask, state := range []*State{{}, {Tables: []statebackend.FrozenTable{table(i, statebackend.Row{Group: 1, Key: le(1), Value: le(2)})}}} {
		p, err := w.Write(t.Context(), op(1), subtask, subtask, subtask, state)
		if err != nil {
			t.Fatal(err)
		}
		o.Parts = append(o.Parts, p)
	}
	m := &Manifest{Folder: "/s", Operators: []Operator{o}}
	for subtask, want := range []int{0, 1} {
		r, _, err := m.Restore(fs, op(1), subtask, 2, 2)
		if err != nil {
			t.Fatal(err)
		}
		back, ok := r.Table("t")
		n := 0
		for _, err := range back.Rows {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if !ok || n != want {
			t.Errorf("subtask %d: %v, %d rows", subtask, ok, n)
		}
	}
}

func TestOnlyOverlappingChunksAreRead(t *testing.T) {
	mem := vfs.NewMem()
	j := newJob(t, mem)
	j.parallelism = 4
	m, err := j.checkpoint(openStorage(t, mem), 1)
	if err != nil {
		t.Fatal(err)
	}
	// The second half of the key groups is lost.
	for _, p := range m.Operators[0].Parts[2:] {
		own, _ := p.Files(m.Folder)
		for _, f := range own {
			if err := mem.Remove(f); err != nil {
				t.Fatal(err)
			}
		}
	}
	r, err := m.restore(mem, &m.Operators[0], 0, 2, j.groups)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range r.Tables() {
		frozen, _ := r.Table(name)
		if _, err := dumpRows(frozen.Rows); err != nil {
			t.Error(err)
		}
	}
	r.groups.First, r.groups.Last = 7, 8
	frozen, _ := r.Table("counts")
	if _, err := dumpRows(frozen.Rows); err == nil || !strings.Contains(err.Error(), "it does not exist") {
		t.Errorf("lost chunks: %v", err)
	}
}

func TestReadingMayEndEarly(t *testing.T) {
	fs := vfs.NewMem()
	m, err := newJob(t, fs).checkpoint(openStorage(t, fs), 1)
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := m.Read(fs, op(1))
	if err != nil {
		t.Fatal(err)
	}
	frozen, _ := r.Table("counts")
	for stop := range 5 {
		n := 0
		for _, err := range frozen.Rows {
			if n++; err != nil || n > stop {
				break
			}
		}
		if n != stop+1 {
			t.Errorf("read %d rows, not %d", n, stop+1)
		}
	}
}

func TestUnmatchedStateIsNamed(t *testing.T) {
	fs := vfs.NewMem()
	m, err := newJob(t, fs).checkpoint(openStorage(t, fs), 3)
	if err != nil {
		t.Fatal(err)
	}
	if dropped, err := m.Match([]string{op(1), op(77)}, false); len(dropped) != 0 || err != nil {
		t.Errorf("all state is matched: %v, %v", dropped, err)
	}
	dropped, err := m.Match([]string{op(2)}, false)
	if len(dropped) != 1 || err == nil || !strings.Contains(err.Error(), `checkpoint 3 in /job/checkpoints/chk-3 has state that the program has no operator for: operator "Counts" (UID "the-counts")`) {
		t.Errorf("got %v, %v", dropped, err)
	}
	if dropped, err = m.Match(nil, true); len(dropped) != 1 || dropped[0].ID != op(1) || err != nil {
		t.Errorf("allowed: %v, %v", dropped, err)
	}
}

// How far event time had come is with operators that keep nothing as well, which may go.
func TestEventTimeIsNoStateOfAnOperator(t *testing.T) {
	part := func(lists ...string) []*Part {
		p := &Part{}
		for _, name := range lists {
			p.Lists = append(p.Lists, ListInfo{Name: name})
		}
		return []*Part{p}
	}
	m := &Manifest{Operators: []Operator{{ID: op(1), Parts: part("channels")}, {ID: op(2), Parts: part("channels", "in-flight")}, {ID: op(3), Parts: part("held")}}}
	dropped, err := m.Match(nil, false)
	if len(dropped) != 2 || dropped[0].ID != op(2) || dropped[1].ID != op(3) || err == nil {
		t.Errorf("got %v, %v", dropped, err)
	}
}

func TestSummariesCountWhatIsThere(t *testing.T) {
	fs := vfs.NewMem()
	j := newJob(t, fs)
	m, err := j.checkpoint(openStorage(t, fs), 1)
	if err != nil {
		t.Fatal(err)
	}
	o := m.Operator("the-counts")
	var text []string
	bytes := int64(0)
	for _, s := range o.Tables() {
		text = append(text, fmt.Sprint(s.Name, " ", s.Kind, " ", s.Key, " ", s.Rows))
		bytes += s.Bytes
	}
	for _, s := range o.Lists() {
		text = append(text, fmt.Sprint(s.Name, " ", s.Mode, " ", s.Items))
		bytes += s.Bytes
	}
	want := "counts value int64 200, words list string 300, splits split 7, all union 4, rules broadcast 8"
	if got := strings.Join(text, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	frames := int64(0)
	for _, p := range o.Parts {
		frames += int64(len(p.chunks)) * int64(chunkHeader+digestBytes)
	}
	if m.Bytes() != bytes+frames {
		t.Errorf("%d bytes, of which tables and lists have %d and frames %d", m.Bytes(), bytes, frames)
	}
}

func TestWidthOfKeysIsThatOfTheirType(t *testing.T) {
	type point struct{ X, Y int32 }
	for _, k := range []func() (*serde.Key, error){
		keyOf[bool], keyOf[int8], keyOf[int16], keyOf[uint32], keyOf[int], keyOf[float64], keyOf[complex128], keyOf[string],
		keyOf[time.Time], keyOf[point], keyOf[[3]point], keyOf[struct{}], keyOf[struct {
			P point
			S string
		}], keyOf[[2]string], keyOf[struct {
			A int8
			_ int64
			T time.Time
		}], keyOf[[0]int64], keyOf[netip.Addr],
	} {
		key, err := k()
		if err != nil {
			t.Fatal(err)
		}
		if got := width(key.Schema(), keyTime); got != int(key.Width) {
			t.Errorf("%s: %d bytes, want %d", key.Name, got, key.Width)
		}
	}
}

func keyOf[K any]() (*serde.Key, error) { return serde.KeyOf[K]() }
