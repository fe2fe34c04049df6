package storagetest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

const (
	operator = "0123456789abcdef0123456789abcdef"
	groups   = 16
	subtasks = 2
	keys     = 50_000
	seed     = 42
)

// rows are those of the keys, in the order of their groups: each key with itself plus add as value.
func rows(add uint64) []statebackend.Row {
	identity := &serde.Key{Width: 8}
	all := make([]statebackend.Row, keys)
	for k := range all {
		key := binary.LittleEndian.AppendUint64(nil, uint64(k))
		h := identity.HashOne(key, seed)
		all[k] = statebackend.Row{
			Group: keygroup.Of(uint32(h), groups), Key: key, Hash: h, Value: binary.LittleEndian.AppendUint64(nil, uint64(k)+add),
		}
	}
	slices.SortStableFunc(all, func(a, b statebackend.Row) int { return a.Group - b.Group })
	return all
}

// state is what a subtask has.
func (p *place) state(subtask int, add uint64) *checkpoint.State {
	number, err := serde.ParseSchema("int64")
	p.ok(err)
	first, last := keygroup.RangeOf(groups, subtasks, subtask)
	info := statebackend.TableInfo{Name: "counts", Kind: "value", Key: number, Value: number}
	return &checkpoint.State{
		Tables: []statebackend.FrozenTable{{TableInfo: info, Rows: func(yield func(*statebackend.Row, error) bool) {
			for _, r := range rows(add) {
				if r.Group >= first && r.Group <= last && !yield(&r, nil) {
					return
				}
			}
		}}},
		Lists: []checkpoint.List{{Name: "splits", Items: [][]byte{fmt.Append(nil, "split ", subtask)}}},
	}
}

// parts writes what the subtasks have into a begun folder.
func (p *place) parts(f checkpoint.FS, folder string, add uint64) []*checkpoint.Part {
	p.Helper()
	return p.partsOf("", f, folder, add)
}

// partsOf writes them for the process with that token.
func (p *place) partsOf(token string, f checkpoint.FS, folder string, add uint64) []*checkpoint.Part {
	p.Helper()
	w := &checkpoint.Writer{FS: f, Folder: folder, Token: token, ChunkBytes: 256 << 10, InlineBytes: -1}
	var all []*checkpoint.Part
	for subtask := range subtasks {
		first, last := keygroup.RangeOf(groups, subtasks, subtask)
		part, err := w.Write(p.Context(), operator, subtask, first, last, p.state(subtask, add))
		p.ok(err)
		all = append(all, part)
	}
	return all
}

func manifest(id int64, kind checkpoint.Kind, folder string, parts []*checkpoint.Part) *checkpoint.Manifest {
	return &checkpoint.Manifest{
		ID: id, Kind: kind, Folder: folder, JobID: "job", JobName: "Job", HashSeed: seed,
		Operators: []checkpoint.Operator{{
			ID: operator, UID: "counts", Name: "Counts", Parallelism: subtasks, MaxParallelism: groups, Parts: parts,
		}},
	}
}

func (p *place) storage(f checkpoint.FS) *checkpoint.Storage {
	p.Helper()
	s, err := checkpoint.OpenStorage(f, p.at("job/checkpoints"))
	p.ok(err)
	return s
}

// take takes a checkpoint.
func (p *place) take(s *checkpoint.Storage, id int64) *checkpoint.Manifest {
	p.Helper()
	folder, err := s.Begin(id)
	p.ok(err)
	m := manifest(id, checkpoint.Checkpoint, folder, p.parts(p.fs, folder, uint64(id)))
	_, err = s.Complete(m)
	p.ok(err)
	return m
}

// restores checks that a snapshot is whole and has the values wanted, at another parallelism.
func (p *place) restores(f checkpoint.FS, m *checkpoint.Manifest, add uint64) {
	p.Helper()
	p.ok(m.Verify(f))
	n := 0
	for subtask := range 3 {
		restored, lists, err := m.Restore(f, operator, subtask, 3, groups)
		p.ok(err)
		n += p.count(restored, add)
		for _, l := range lists {
			if l.Name != "splits" {
				p.Errorf("list %q", l.Name)
			}
		}
	}
	if n != keys {
		p.Errorf("%d keys came back, want %d", n, keys)
	}
}

// count checks the rows of a restored table and counts them.
func (p *place) count(restored statebackend.Restored, add uint64) int {
	p.Helper()
	table, ok := restored.Table("counts")
	if !ok {
		p.Fatal("the table did not come back")
	}
	n := 0
	for row, err := range table.Rows {
		p.ok(err)
		k, v := binary.LittleEndian.Uint64(row.Key), binary.LittleEndian.Uint64(row.Value)
		if v != k+add {
			p.Fatalf("key %d came back with %d", k, v)
		}
		n++
	}
	return n
}

func snapshotComesBackInAnotherProcess(p *place) {
	s := p.storage(p.fs)
	if m, err := s.Latest(); m != nil || err != nil {
		p.Fatalf("latest of none: %v, %v", m, err)
	}
	for _, id := range []int64{1, 2, 10} {
		p.take(s, id)
	}
	m, err := p.storage(p.again).Latest()
	p.ok(err)
	if m == nil || m.ID != 10 {
		p.Fatalf("latest is %+v", m)
	}
	p.restores(p.again, m, 10)
	for _, id := range []int64{1, 2} {
		m, err := checkpoint.Load(p.again, s.Folder(id))
		p.ok(err)
		p.ok(m.Probe(p.again))
		p.ok(s.Discard(m))
	}
	found, err := p.storage(p.again).List()
	p.ok(err)
	if len(found) != 1 || found[0].ID != 10 {
		p.Errorf("left are %v", found)
	}
	if got := p.list(p.at("job/checkpoints")); !slices.Equal(got, []string{"chk-10/"}) {
		p.Errorf("folders left: %v", got)
	}
}

func checkpointsShareFilesUntilTheLastIsGone(p *place) {
	s := p.storage(p.fs)
	first := p.take(s, 1)
	folder, err := s.Begin(2)
	p.ok(err)
	var parts []*checkpoint.Part
	for _, part := range first.Operators[0].Parts {
		again, err := part.Reuse(first.Folder, folder)
		p.ok(err)
		parts = append(parts, again)
	}
	second := manifest(2, checkpoint.Checkpoint, folder, parts)
	_, err = s.Complete(second)
	p.ok(err)
	p.ok(s.Discard(first))
	m, err := p.storage(p.again).Latest()
	p.ok(err)
	if m.ID != 2 {
		p.Fatalf("latest is %d", m.ID)
	}
	p.restores(p.again, m, 1)
	p.ok(s.Discard(second))
	if left := p.list(p.at("job/checkpoints")); len(left) != 0 {
		p.Errorf("left are %v", left)
	}
}

func litterOfAKilledProcessIsSwept(p *place) {
	s := p.storage(p.fs)
	kept := p.take(s, 1)
	folder, err := s.Begin(2)
	p.ok(err)
	p.parts(p.fs, folder, 2) // never completed
	p.make(path.Join(folder, "_metadata.new"), "half a manifest")
	// The files of an upload that was never finished must not be seen, or be swept as well.
	unfinished, err := p.fs.Create(path.Join(folder, operator+"-9-9.chunk"), vfs.Exclusive)
	p.ok(err)
	_, err = unfinished.Write(pattern(1 << 20))
	p.ok(err)

	next := p.storage(p.again)
	m, err := next.Latest()
	p.ok(err)
	if m.ID != 1 {
		p.Fatalf("latest is %d", m.ID)
	}
	p.ok(next.Sweep())
	if entries, err := p.again.ReadDir(folder); err == nil {
		for _, e := range entries {
			if name := e.Name(); strings.HasSuffix(name, ".chunk") || strings.HasPrefix(name, "_metadata") {
				p.Errorf("%s is left", name)
			}
		}
	}
	p.restores(p.again, kept, 1)
	p.take(next, 2)
	_ = unfinished.Close()
}

func completeSnapshotIsNotBegunAgain(p *place) {
	s := p.storage(p.fs)
	m := p.take(s, 3)
	if _, err := p.storage(p.again).Begin(3); !errors.Is(err, fs.ErrExist) {
		p.Errorf("begun again: %v", err)
	}
	if _, err := s.Complete(m); !errors.Is(err, fs.ErrExist) {
		p.Errorf("completed again: %v", err)
	}
	p.restores(p.again, m, 3)
}

func savepointLiesWhereItWasAskedTo(p *place) {
	folder := p.at("save points/savepoint-1")
	p.ok(checkpoint.BeginSnapshot(p.fs, folder))
	m := manifest(7, checkpoint.Savepoint, folder, p.parts(p.fs, folder, 7))
	s := p.storage(p.fs)
	_, err := s.Complete(m)
	p.ok(err)
	for _, where := range []string{folder, folder + "/_metadata"} {
		got, err := checkpoint.Load(p.again, where)
		p.ok(err)
		if got.Kind != checkpoint.Savepoint || got.ID != 7 {
			p.Errorf("loaded %v %d", got.Kind, got.ID)
		}
		p.restores(p.again, got, 7)
	}
	if m, err := s.Latest(); m != nil || err != nil {
		p.Errorf("latest checkpoint: %v, %v", m, err)
	}
	p.ok(s.Discard(m))
	_, err = p.again.Stat(folder)
	p.is("the folder of a discarded savepoint", err, fs.ErrNotExist)
}

// processThatStoodStillHarmsNoSuccessor has a checkpoint completed by the successor of a process that has written its parts.
// Where files appear whole the race for the manifest itself is decided, too.
func processThatStoodStillHarmsNoSuccessor(p *place) {
	frozen := p.storage(p.fs)
	folder, err := frozen.Begin(1)
	p.ok(err)
	late := manifest(1, checkpoint.Checkpoint, folder, p.partsOf("frozen", p.fs, folder, 1))

	next := p.storage(p.again)
	p.ok(next.Sweep())
	_, err = next.Begin(1)
	p.ok(err)
	m := manifest(1, checkpoint.Checkpoint, folder, p.partsOf("next", p.again, folder, 2))
	if w, ok := p.fs.(checkpoint.WholeFS); ok && w.WholeFiles(folder) {
		name := path.Join(folder, checkpoint.ManifestName)
		slow, err := p.fs.Create(name, vfs.Exclusive) // nobody has completed it so far
		p.ok(err)
		_, err = slow.Write([]byte("late"))
		p.ok(err)
		_, err = next.Complete(m)
		p.ok(err)
		p.is("close of the late manifest", slow.Close(), fs.ErrExist)
	} else {
		_, err = next.Complete(m)
		p.ok(err)
	}

	if _, err := frozen.Complete(late); !errors.Is(err, fs.ErrExist) {
		p.Errorf("completed by two: %v", err)
	}
	p.ok(frozen.Remove(folder, late.Files()))
	got, err := checkpoint.Load(p.again, folder)
	p.ok(err)
	p.restores(p.again, got, 2)
}
