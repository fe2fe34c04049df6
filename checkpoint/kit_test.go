package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// seed is the hash seed of the tests' jobs.
const seed = 77

// op is the id of operator n.
func op(n int) string { return fmt.Sprintf("%032x", n) }

func schema(t testing.TB, text string) *serde.Schema {
	t.Helper()
	if text == "" {
		return nil
	}
	s, err := serde.ParseSchema(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// info declares a table by the texts of its schemas.
func info(t testing.TB, name, kind, key, value, mapKey, namespace string, ttl *statebackend.TTL) statebackend.TableInfo {
	t.Helper()
	return statebackend.TableInfo{
		Name: name, Kind: kind, Key: schema(t, key), Value: schema(t, value), MapKey: schema(t, mapKey),
		Namespace: schema(t, namespace), TTL: ttl,
	}
}

// table freezes rows: sorted by group, the order of rows of one group kept.
func table(i statebackend.TableInfo, rows ...statebackend.Row) statebackend.FrozenTable {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b statebackend.Row) int { return a.Group - b.Group })
	return statebackend.FrozenTable{TableInfo: i, Rows: each(rows)}
}

func each(rows []statebackend.Row) iter.Seq2[*statebackend.Row, error] {
	return func(yield func(*statebackend.Row, error) bool) {
		for i := range rows {
			if !yield(&rows[i], nil) {
				return
			}
		}
	}
}

// keyed makes a row of a key, with its hash and its group of so many.
func keyed(t testing.TB, i statebackend.TableInfo, groups int, key []byte) statebackend.Row {
	t.Helper()
	l, err := layoutOf(&i)
	if err != nil {
		t.Fatal(err)
	}
	h := (&serde.Key{Width: uintptr(l.key.width)}).HashOne(key, seed)
	return statebackend.Row{Group: keygroup.Of(uint32(h), groups), Key: key, Hash: h}
}

func le(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }

// counts is a table of n keys, each with its number times ten as value.
func counts(t testing.TB, n, groups int, in func(group int) bool) statebackend.FrozenTable {
	i := info(t, "counts", "value", "int64", "int64", "", "", nil)
	var rows []statebackend.Row
	for k := range n {
		r := keyed(t, i, groups, le(uint64(k)))
		r.Value = le(uint64(10 * k))
		if in(r.Group) {
			rows = append(rows, r)
		}
	}
	return table(i, rows...)
}

// words is a table of lists of the letters of n words.
func words(t testing.TB, n, groups int, in func(group int) bool) statebackend.FrozenTable {
	i := info(t, "words", "list", "string", "string", "", "struct{Start int64;End int64}", &statebackend.TTL{Millis: 5, OnRead: true})
	var rows []statebackend.Row
	for k := range n {
		word := strings.Repeat(string(rune('a'+k%26)), k%300)
		r := keyed(t, i, groups, []byte(word))
		r.Namespace = append(le(uint64(k)), le(uint64(k+1))...)
		for e := range k % 4 {
			r.At, r.Value = int64(1000*k+e), []byte(strings.Repeat("v", 100*e))
			if in(r.Group) {
				rows = append(rows, r)
			}
		}
	}
	return table(i, rows...)
}

func items(prefix string, n int) [][]byte {
	var out [][]byte
	for i := range n {
		out = append(out, fmt.Appendf(nil, "%s%d", prefix, i))
	}
	return out
}

// job is a small job's state in a memory file system.
type job struct {
	t           testing.TB
	fs          vfs.FS
	parallelism int
	groups      int
	keys        int
}

// state is what operator 1 of a subtask has.
func (j *job) state(subtask int) *State {
	r, err := keygroup.RangeOfSubtask(j.groups, j.parallelism, subtask)
	if err != nil {
		j.t.Fatal(err)
	}
	return &State{
		Tables: []statebackend.FrozenTable{counts(j.t, j.keys, j.groups, r.Contains), words(j.t, j.keys, j.groups, r.Contains)},
		Lists: []List{
			{Name: "splits", Items: items(fmt.Sprintf("s%d.", subtask), 3+subtask), Schema: schema(j.t, "string")},
			{Name: "all", Mode: Union, Items: items(fmt.Sprintf("u%d.", subtask), 2)},
			{Name: "rules", Mode: Broadcast, Items: items("b", 4)},
		},
	}
}

// write takes a whole snapshot into a begun folder.
func (j *job) write(w *Writer, m *Manifest) error {
	o := Operator{
		ID: op(1), UID: "the-counts", Name: "Counts", Parallelism: j.parallelism, MaxParallelism: j.groups, Coordinator: []byte("c"),
	}
	for subtask := range j.parallelism {
		first, last := keygroup.RangeOf(j.groups, j.parallelism, subtask)
		p, err := w.Write(j.t.Context(), op(1), subtask, first, last, j.state(subtask))
		if err != nil {
			return err
		}
		if p, err = DecodePart(p.Encode()); err != nil {
			return err
		}
		o.Parts = append(o.Parts, p)
	}
	m.Folder = w.Folder
	m.JobID, m.JobName, m.Time, m.HashSeed = "job-1", "Counting", 12345, seed
	m.Operators = []Operator{o, {ID: op(2), Name: "Map", Parallelism: 1, MaxParallelism: 128}}
	return nil
}

// checkpoint takes checkpoint id.
func (j *job) checkpoint(s *Storage, id int64) (*Manifest, error) {
	folder, err := s.Begin(id)
	if err != nil {
		return nil, err
	}
	m := &Manifest{ID: id}
	if err := j.write(&Writer{FS: j.fs, Folder: folder, ChunkBytes: 4 << 10, InlineBytes: 64}, m); err != nil {
		return nil, err
	}
	_, err = s.Complete(m)
	return m, err
}

func newJob(t testing.TB, fs vfs.FS) *job {
	return &job{t: t, fs: fs, parallelism: 2, groups: 16, keys: 200}
}

func openStorage(t testing.TB, fs vfs.FS) *Storage {
	t.Helper()
	s, err := OpenStorage(fs, "/job/checkpoints")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// dumpRows writes rows as text, one a line.
func dumpRows(rows iter.Seq2[*statebackend.Row, error]) (string, error) {
	var b bytes.Buffer
	for r, err := range rows {
		if err != nil {
			return b.String(), err
		}
		fmt.Fprintf(&b, "%d %x %x %x(%v) %x(%v) %d %x\n", r.Group, r.Hash, r.Key, r.Namespace, r.Namespace == nil, r.MapKey, r.MapKey == nil, r.At, r.Value)
	}
	return b.String(), nil
}

// wholeState is what operator 1 holds over all subtasks, as text.
func (j *job) wholeState() string {
	one := *j
	one.parallelism = 1
	var b strings.Builder
	for _, t := range one.state(0).Tables {
		s, _ := dumpRows(t.Rows)
		fmt.Fprintf(&b, "%s\n%s", t.Name, s)
	}
	return b.String()
}

// restoredState reads what subtasks of a new parallelism get, as the text of wholeState.
func restoredState(f vfs.FS, m *Manifest, parallelism, groups int) (string, error) {
	texts := map[string]string{}
	var names []string
	for subtask := range parallelism {
		r, _, err := m.Restore(f, op(1), subtask, parallelism, groups)
		if err != nil {
			return "", err
		}
		names = r.Tables()
		for _, name := range names {
			t, _ := r.Table(name)
			s, err := dumpRows(t.Rows)
			if err != nil {
				return "", err
			}
			texts[name] += s
		}
	}
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "%s\n%s", name, texts[name])
	}
	return b.String(), nil
}
