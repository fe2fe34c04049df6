package main

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// fixture writes the same snapshots, byte for byte, into the working directory each time.
type fixture struct {
	t    *testing.T
	fs   vfs.FS
	seed uint64
	tidy bool // for pages that people read: without what is there to be difficult
}

const groups = 4

func (f *fixture) schema(text string) *serde.Schema {
	f.t.Helper()
	if text == "" {
		return nil
	}
	s, err := serde.ParseSchema(text)
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// row makes a row of a key in its group.
func (f *fixture) row(key string, rest statebackend.Row) statebackend.Row {
	f.t.Helper()
	k, err := serde.KeyOf[string]()
	if err != nil {
		f.t.Fatal(err)
	}
	rest.Key, rest.Hash = []byte(key), k.HashOne([]byte(key), f.seed)
	rest.Group = keygroup.Of(uint32(rest.Hash), groups)
	return rest
}

// table keeps the rows whose groups are a subtask's.
func (f *fixture) table(i statebackend.TableInfo, of keygroup.Range, rows ...statebackend.Row) statebackend.FrozenTable {
	slices.SortStableFunc(rows, func(a, b statebackend.Row) int { return a.Group - b.Group })
	rows = slices.DeleteFunc(rows, func(r statebackend.Row) bool { return !of.Contains(r.Group) })
	var all iter.Seq2[*statebackend.Row, error] = func(yield func(*statebackend.Row, error) bool) {
		for i := range rows {
			if !yield(&rows[i], nil) {
				return
			}
		}
	}
	return statebackend.FrozenTable{TableInfo: i, Rows: all}
}

func le(n int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }

func text(s string) []byte { return append(binary.AppendUvarint(nil, uint64(len(s))), s...) }

// channelItem is an item of the list "channels".
func channelItem(input, subtask, parallelism, peer, peers int, watermark int64, flags byte) []byte {
	var b []byte
	for _, n := range []int{input, subtask, parallelism, peer, peers} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return append(append(b, le(watermark)...), flags)
}

// alarm is the state of a keyed operator with every kind of state.
func (f *fixture) alarm(subtask, parallelism int) *checkpoint.State {
	of, err := keygroup.RangeOfSubtask(groups, parallelism, subtask)
	if err != nil {
		f.t.Fatal(err)
	}
	key := f.schema("string")
	minute := append(le(0), le(60_000)...)
	s := &checkpoint.State{Tables: []statebackend.FrozenTable{
		f.table(statebackend.TableInfo{Name: "sum", Kind: "value", Key: key, Value: f.schema("int64"), TTL: &statebackend.TTL{Millis: 3_600_000}}, of,
			f.row("ada", statebackend.Row{At: 1000, Value: le(7)}),
			f.row("bob", statebackend.Row{At: 2500, Value: le(-3)}),
			f.row(f.name("comma, \"quote\""), statebackend.Row{At: 86_400_000, Value: le(1 << 60)})),
		f.table(statebackend.TableInfo{
			Name: "seen", Kind: "list", Key: key, Namespace: f.schema("struct{Start int64;End int64}"),
			Value: f.schema("struct{Name string;At int64}"),
		}, of,
			f.row("ada", statebackend.Row{Namespace: minute, Value: append(text("x"), le(5)...)}),
			f.row("ada", statebackend.Row{Namespace: minute, Value: append(text(f.name("y\nz")), le(6)...)})),
		f.table(statebackend.TableInfo{Name: "prices", Kind: "map", Key: key, MapKey: f.schema("string"), Value: f.schema("float64")}, of,
			f.row("bob", statebackend.Row{MapKey: []byte("eggs"), Value: le(int64(math.Float64bits(1.5)))})),
		f.table(statebackend.TableInfo{Name: "timers/event", Kind: "timers", Key: key, MapKey: f.schema("int64")}, of,
			f.row("ada", statebackend.Row{MapKey: le(59_999)})),
	}}
	s.Lists = []checkpoint.List{
		{Name: channelList, Mode: checkpoint.Union, Items: [][]byte{
			channelItem(0, subtask, parallelism, 0, 2, 1_700_000_000_123, 0),
			channelItem(0, subtask, parallelism, 1, 2, math.MinInt64, channelIdle|channelBehind),
			channelItem(1, subtask, parallelism, 0, 1, math.MaxInt64, 0),
		}},
		{Name: "rules", Mode: checkpoint.Broadcast, Schema: f.schema("[2]int16"), Items: [][]byte{{1, 0, 2, 0}}},
		{Name: "opaque", Items: [][]byte{{byte(subtask), 0xff}}},
	}
	if f.tidy {
		s.Lists = s.Lists[:2]
	}
	return s
}

// name is a difficult name, or a simple one.
func (f *fixture) name(difficult string) string {
	if f.tidy {
		return "eve"
	}
	return difficult
}

// files is the state of a source with splits, numbers that of one that counts.
func (f *fixture) files(subtask, _ int) *checkpoint.State {
	return &checkpoint.State{Lists: []checkpoint.List{{
		Name: splitList, Schema: f.schema("struct{Path string;Offset int64}"),
		Items: [][]byte{append(text(fmt.Sprintf("in/%d.csv", subtask)), le(4096)...)},
	}}}
}

func (f *fixture) numbers(subtask, parallelism int) *checkpoint.State {
	item := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(subtask)), uint64(parallelism))
	if subtask == 0 {
		item = binary.AppendVarint(binary.AppendVarint(item, 42), 1000)
		item = binary.AppendVarint(binary.AppendVarint(item, -5), -1)
	}
	return &checkpoint.State{Lists: []checkpoint.List{{Name: positionList, Mode: checkpoint.Union, Items: [][]byte{item}}}}
}

// take takes a snapshot of the job.
func (f *fixture) take(kind checkpoint.Kind, id int64, folder string, inline int) {
	f.t.Helper()
	s, err := checkpoint.OpenStorage(f.fs, path.Dir(folder))
	if err == nil && kind == checkpoint.Checkpoint {
		folder, err = s.Begin(id)
	} else if err == nil {
		err = checkpoint.BeginSnapshot(f.fs, folder)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	m := &checkpoint.Manifest{
		Folder: folder, ID: id, Kind: kind, JobID: "00112233445566778899aabbccddeeff", JobName: "alarms",
		Time: 1_800_000_000_000 + 1000*id, HashSeed: f.seed,
	}
	w := &checkpoint.Writer{FS: f.fs, Folder: folder, InlineBytes: inline}
	for i, o := range f.operators() {
		m.Operators = append(m.Operators, f.write(w, i+1, o))
	}
	if _, err := s.Complete(m); err != nil {
		f.t.Fatal(err)
	}
}

// written is an operator of the job.
type written struct {
	name, uid   string
	parallelism int
	state       func(subtask, parallelism int) *checkpoint.State
	enumerator  []byte
}

func (f *fixture) operators() []written {
	all := []written{
		{"Source: files", "files", 2, f.files, []byte("enumerator")},
		{"Source: numbers", "numbers", 2, f.numbers, nil},
		{"alarm", "alarm-uid", 2, f.alarm, nil},
		{"Filter", "", 2, nil, nil},
		{"Filter", "second", 2, nil, nil},
		{"Sink: \x1b[31mred", "", 1, nil, nil},
	}
	if f.tidy {
		return []written{all[0], all[2]}
	}
	return all
}

// write writes the parts of operator number n.
func (f *fixture) write(w *checkpoint.Writer, n int, o written) checkpoint.Operator {
	f.t.Helper()
	op := checkpoint.Operator{
		ID: fmt.Sprintf("%032x", n), Name: o.name, UID: o.uid, Parallelism: o.parallelism, MaxParallelism: groups, Coordinator: o.enumerator,
	}
	for subtask := range o.parallelism {
		first, last := keygroup.RangeOf(groups, o.parallelism, subtask)
		if o.state == nil {
			op.Parts = append(op.Parts, &checkpoint.Part{Subtask: subtask, Finished: subtask == 1, FirstGroup: first, LastGroup: last})
			continue
		}
		p, err := w.Write(f.t.Context(), op.ID, subtask, first, last, o.state(subtask, o.parallelism))
		if err != nil {
			f.t.Fatal(err)
		}
		op.Parts = append(op.Parts, p)
	}
	return op
}

// takeAll makes what the scripts look at, in the working directory.
func takeAll(t *testing.T, tidy bool) {
	t.Helper()
	f := &fixture{t: t, fs: vfs.OS{}, seed: 77, tidy: tidy}
	f.take(checkpoint.Savepoint, 7, "savepoints/savepoint-001122-7", -1)
	f.take(checkpoint.Savepoint, 9, "savepoints/savepoint-001122-9", 0)
	f.take(checkpoint.Checkpoint, 3, "checkpoints/job/chk-3", -1)
	f.take(checkpoint.Checkpoint, 12, "checkpoints/job/chk-12", 0)
	if err := f.fs.MkdirAll("empty/chk-1"); err != nil {
		t.Fatal(err)
	}
}

// many takes a savepoint with more rows than the output's buffer holds.
func many(t *testing.T) (folder string) {
	t.Helper()
	f := &fixture{t: t, fs: vfs.OS{}, seed: 77}
	folder = path.Join(filepath.ToSlash(t.TempDir()), "savepoint-many-1")
	if err := checkpoint.BeginSnapshot(f.fs, folder); err != nil {
		t.Fatal(err)
	}
	var rows []statebackend.Row
	for i := range 20_000 {
		rows = append(rows, f.row(fmt.Sprintf("key %d", i), statebackend.Row{Value: le(int64(i))}))
	}
	all, err := keygroup.RangeOfSubtask(groups, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	info := statebackend.TableInfo{Name: "n", Kind: "value", Key: f.schema("string"), Value: f.schema("int64")}
	w := &checkpoint.Writer{FS: f.fs, Folder: folder}
	o := checkpoint.Operator{ID: fmt.Sprintf("%032x", 1), UID: "many", Name: "Many", Parallelism: 1, MaxParallelism: groups}
	p, err := w.Write(t.Context(), o.ID, 0, 0, groups-1, &checkpoint.State{Tables: []statebackend.FrozenTable{f.table(info, all, rows...)}})
	if err != nil {
		t.Fatal(err)
	}
	o.Parts = []*checkpoint.Part{p}
	s, err := checkpoint.OpenStorage(f.fs, path.Dir(folder))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Complete(&checkpoint.Manifest{
		Folder: folder, ID: 1, Kind: checkpoint.Savepoint, JobID: "job", JobName: "many", HashSeed: f.seed, Operators: []checkpoint.Operator{o},
	})
	if err != nil {
		t.Fatal(err)
	}
	return folder
}
