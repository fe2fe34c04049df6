package checkpoint

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
)

// holds checks that a snapshot is whole and restores to the job's state.
func (j *job) holds(m *Manifest) error {
	if err := m.Verify(j.fs); err != nil {
		return err
	}
	got, err := restoredState(j.fs, m, 3, j.groups)
	if err == nil && got != j.wholeState() {
		err = fmt.Errorf("restored %.500s", got)
	}
	return err
}

func TestManifestComesBackAsItWas(t *testing.T) {
	fs := vfs.NewMem()
	j := newJob(t, fs)
	s := openStorage(t, fs)
	m, err := j.checkpoint(s, 7)
	if err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{"/job/checkpoints/chk-7", "/job/checkpoints/chk-7/", "/job/checkpoints/chk-7/_metadata"} {
		got, err := Load(fs, where)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := fmt.Sprintf("%+v", flat(m)), fmt.Sprintf("%+v", flat(got)); a != b {
			t.Errorf("loaded from %s:\ngot  %s\nwant %s", where, b, a)
		}
	}
	if _, err := Load(fs, "/job/checkpoints/chk-8"); !errors.Is(err, iofs.ErrNotExist) || !strings.Contains(err.Error(), "/job/checkpoints/chk-8: it has no _metadata") {
		t.Errorf("a folder without a manifest: %v", err)
	}
	if o := m.Operator("the-counts"); o == nil || o != m.Operator(op(1)) || !o.HasState() {
		t.Errorf("operator by UID: %+v", o)
	}
	if o := m.Operator(op(2)); o == nil || o.HasState() {
		t.Errorf("operator without state: %+v", o)
	}
	if m.Operator("") != nil || m.Operator("nobody") != nil {
		t.Error("found an operator that is not there")
	}
}

// flat is a manifest without pointers, for comparing by text.
func flat(m *Manifest) []any {
	all := []any{m.Folder, m.ID, m.Kind, m.JobID, m.JobName, m.Time, m.HashSeed}
	for _, o := range m.Operators {
		all = append(all, o.ID, o.UID, o.Name, o.Parallelism, o.MaxParallelism, o.Coordinator == nil, string(o.Coordinator))
		for _, p := range o.Parts {
			all = append(all, p.Subtask, p.Finished, p.FirstGroup, p.LastGroup, p.chunks)
			for i := range p.Tables {
				t := &p.Tables[i]
				all = append(all, t.Name, t.Kind, t.Key, t.Value, t.Namespace, t.MapKey)
				if t.TTL != nil {
					all = append(all, *t.TTL)
				}
			}
			for _, l := range p.Lists {
				all = append(all, l.Name, l.Mode, l.Schema, l.Items)
			}
		}
	}
	return all
}

func TestLatestIsTheLargestNumber(t *testing.T) {
	fs := vfs.NewMem()
	j := newJob(t, fs)
	s := openStorage(t, fs)
	if m, err := s.Latest(); m != nil || err != nil {
		t.Errorf("of none: %v, %v", m, err)
	}
	for _, id := range []int64{9, 2, 100, 11} {
		if _, err := j.checkpoint(s, id); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Begin(101); err != nil { // never completed
		t.Fatal(err)
	}
	for _, name := range []string{"chk-0200", "chk-x", "savepoint-1", "chk--3"} {
		if err := fs.MkdirAll(path.Join("/job/checkpoints", name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := vfs.WriteFile(fs, "/job/checkpoints/chk-300", nil); err != nil {
		t.Fatal(err)
	}
	found, err := s.List()
	var ids []int64
	for _, f := range found {
		ids = append(ids, f.Manifest.ID)
	}
	if !slices.Equal(ids, []int64{2, 9, 11, 100}) || err != nil {
		t.Errorf("listed %v, %v", ids, err)
	}
	m, err := s.Latest()
	if err != nil || m.ID != 100 || m.Folder != "/job/checkpoints/chk-100" {
		t.Errorf("latest is %+v, %v", m, err)
	}
	if err := s.Discard(m); err != nil {
		t.Fatal(err)
	}
	if m, err = s.Latest(); err != nil || m.ID != 11 {
		t.Errorf("latest is %+v, %v", m, err)
	}
}

func TestADamagedLatestCheckpointIsNotPassedOver(t *testing.T) {
	fs := vfs.NewMem()
	j := newJob(t, fs)
	s := openStorage(t, fs)
	for id := range int64(3) {
		if _, err := j.checkpoint(s, id+1); err != nil {
			t.Fatal(err)
		}
	}
	if err := fs.Truncate("/job/checkpoints/chk-3/_metadata", 100); err != nil {
		t.Fatal(err)
	}
	m, err := s.Latest()
	if d, ok := errors.AsType[*DamagedError](err); m != nil || !ok || d.File != "/job/checkpoints/chk-3/_metadata" {
		t.Errorf("got %v, %v", m, err)
	}
	s = openStorage(t, fs)
	found, err := s.List()
	if err != nil || len(found) != 3 || found[1].Err != nil || found[2].Err == nil || found[2].ID != 3 {
		t.Errorf("listed %+v, %v", found, err)
	}
	if err := s.Sweep(); err == nil {
		t.Error("swept beside a manifest that can't be read")
	}
	if err := j.holds(found[1].Manifest); err != nil {
		t.Error(err)
	}
	// A manifest in another checkpoint's folder is not taken for that one's.
	b, _ := vfs.ReadFile(fs, "/job/checkpoints/chk-2/_metadata")
	if err := vfs.WriteFile(fs, "/job/checkpoints/chk-3/_metadata", b); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Latest(); err == nil || !strings.Contains(err.Error(), "chk-3/_metadata is damaged: it is that of checkpoint 2") {
		t.Errorf("got %v", err)
	}
}

func TestSnapshotsAreNotOverwritten(t *testing.T) {
	fs := vfs.NewMem()
	j := newJob(t, fs)
	s := openStorage(t, fs)
	m, err := j.checkpoint(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin(1); !errors.Is(err, iofs.ErrExist) {
		t.Errorf("begun again: %v", err)
	}
	if _, err := s.Complete(m); !errors.Is(err, iofs.ErrExist) {
		t.Errorf("completed again: %v", err)
	}
	if err := j.holds(m); err != nil {
		t.Error(err)
	}
}

func TestSharedFilesGoWithTheLastThatNamesThem(t *testing.T) {
	fs := vfs.NewMem()
	j := newJob(t, fs)
	s := openStorage(t, fs)
	first, err := j.checkpoint(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	// Checkpoints 2 and 3 reuse the part of subtask 0 and write that of subtask 1.
	all := []*Manifest{first}
	for id := int64(2); id <= 3; id++ {
		m, err := j.reusing(s, id, all[len(all)-1])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	own, _ := first.Operators[0].Parts[0].Files(first.Folder)
	if len(own) < 2 {
		t.Fatalf("the shared part has files %q", own)
	}
	_, earlier := all[2].Operators[0].Parts[0].Files(all[2].Folder)
	if !slices.Equal(earlier, own) {
		t.Errorf("shared are %q, not %q", earlier, own)
	}
	for _, reopen := range []bool{true, false} {
		if reopen {
			s = openStorage(t, fs)
		}
		m := all[0]
		all = all[1:]
		if err := s.Discard(m); err != nil {
			t.Fatal(err)
		}
		if err := s.Discard(m); err != nil {
			t.Errorf("discarded again: %v", err)
		}
		for _, m := range all {
			if err := j.holds(m); err != nil {
				t.Errorf("checkpoint %d: %v", m.ID, err)
			}
		}
		if got := names(t, fs, "/job/checkpoints/chk-1"); len(got) != len(own) {
			t.Errorf("chk-1 has %q, should have %q", got, own)
		}
		if err := s.Sweep(); err != nil {
			t.Error(err)
		}
	}
	if err := j.holds(all[0]); err != nil {
		t.Errorf("after sweeping: %v", err)
	}
	if err := s.Discard(all[0]); err != nil {
		t.Fatal(err)
	}
	if left := names(t, fs, "/job/checkpoints"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// reusing takes a checkpoint that shares the part of subtask 0 with an earlier one.
func (j *job) reusing(s *Storage, id int64, before *Manifest) (*Manifest, error) {
	folder, err := s.Begin(id)
	if err != nil {
		return nil, err
	}
	m := &Manifest{ID: id}
	if err := j.write(&Writer{FS: j.fs, Folder: folder, ChunkBytes: 4 << 10, InlineBytes: 64}, m); err != nil {
		return nil, err
	}
	part := &m.Operators[0].Parts[0]
	own, _ := (*part).Files(folder)
	if err := s.Remove("", own); err != nil {
		return nil, err
	}
	if *part, err = before.Operators[0].Parts[0].Reuse(before.Folder, folder); err != nil {
		return nil, err
	}
	_, err = s.Complete(m)
	return m, err
}

func TestRemoveOfAGivenUpCheckpoint(t *testing.T) {
	fs := vfs.NewMem()
	j := newJob(t, fs)
	s := openStorage(t, fs)
	first, err := j.checkpoint(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := s.Begin(2)
	if err != nil {
		t.Fatal(err)
	}
	m := &Manifest{ID: 2}
	if err := j.write(&Writer{FS: fs, Folder: folder, InlineBytes: -1}, m); err != nil {
		t.Fatal(err)
	}
	// The task's handles name files of both checkpoints; those of the first are in use.
	if err := s.Remove(folder, append(m.Files(), first.Files()...)); err != nil {
		t.Fatal(err)
	}
	if left := names(t, fs, "/job/checkpoints"); !slices.Equal(left, []string{"chk-1"}) {
		t.Errorf("left: %q", left)
	}
	if err := j.holds(first); err != nil {
		t.Error(err)
	}
}

func TestSweepRemovesLitterOnly(t *testing.T) {
	fs := vfs.NewMem()
	j := newJob(t, fs)
	s := openStorage(t, fs)
	m, err := j.checkpoint(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := s.Begin(2)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.write(&Writer{FS: fs, Folder: folder, InlineBytes: -1}, &Manifest{ID: 2}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"chk-2/_metadata.new", "chk-1/" + op(1) + "-9-1.chunk", "chk-1/notes", "other"} {
		if err := vfs.WriteFile(fs, path.Join("/job/checkpoints", name), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := openStorage(t, fs).Sweep(); err != nil {
		t.Fatal(err)
	}
	if left := names(t, fs, "/job/checkpoints"); !slices.Equal(left, []string{"chk-1", "other"}) {
		t.Errorf("left: %q", left)
	}
	if left := names(t, fs, "/job/checkpoints/chk-1"); len(left) != len(m.Files())+2 {
		t.Errorf("left: %q", left)
	}
	if err := j.holds(m); err != nil {
		t.Error(err)
	}
}

func TestSavepointMayBeMoved(t *testing.T) {
	fs := vfs.NewMem()
	j := newJob(t, fs)
	s := openStorage(t, fs)
	if err := BeginSnapshot(fs, "/home/me/savepoints/sp-1"); err != nil {
		t.Fatal(err)
	}
	m := &Manifest{ID: 5, Kind: Savepoint}
	if err := j.write(&Writer{FS: fs, Folder: "/home/me/savepoints/sp-1", ChunkBytes: 1 << 10, InlineBytes: -1}, m); err != nil {
		t.Fatal(err)
	}
	if where, err := s.Complete(m); err != nil || where != "/home/me/savepoints/sp-1" {
		t.Fatal(where, err)
	}
	if len(m.Files()) == 0 {
		t.Fatal("there are no files to move")
	}
	if err := errors.Join(fs.MkdirAll("/else"), fs.Rename("/home/me/savepoints/sp-1", "/else/where")); err != nil {
		t.Fatal(err)
	}
	moved, err := Load(fs, "/else/where")
	if err != nil {
		t.Fatal(err)
	}
	if err := j.holds(moved); err != nil {
		t.Error(err)
	}
	if err := s.Discard(moved); err != nil {
		t.Error(err)
	}
	if left := names(t, fs, "/else"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestSavepointNamesNoFileElsewhere(t *testing.T) {
	fs := vfs.NewMem()
	j := newJob(t, fs)
	s := openStorage(t, fs)
	first, err := j.checkpoint(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := BeginSnapshot(fs, "/sp"); err != nil {
		t.Fatal(err)
	}
	part, err := first.Operators[0].Parts[0].Reuse(first.Folder, "/sp")
	if err != nil {
		t.Fatal(err)
	}
	m := &Manifest{Folder: "/sp", ID: 2, Kind: Savepoint, Operators: []Operator{{ID: op(1), Parallelism: 2, MaxParallelism: 16, Parts: []*Part{part}}}}
	if _, err := s.Complete(m); err == nil || !strings.Contains(err.Error(), "all files of a savepoint must lie in its folder") {
		t.Errorf("got %v", err)
	}
	if left := names(t, fs, "/sp"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestCompleteRefusesWhatIsNoSnapshot(t *testing.T) {
	part := func(subtask, first, last int) *Part {
		return &Part{Subtask: subtask, FirstGroup: first, LastGroup: last}
	}
	for _, c := range []struct {
		name string
		ops  []Operator
		want string
	}{
		{"twice", []Operator{{ID: op(1), Parallelism: 1, MaxParallelism: 1}, {ID: op(1), Parallelism: 1, MaxParallelism: 1}}, "is there twice"},
		{"no id", []Operator{{ID: "x", Parallelism: 1, MaxParallelism: 1}}, "is not 32 lower-case hex digits"},
		{"parallelism", []Operator{{ID: op(1), Parallelism: 2, MaxParallelism: 1}}, "parallelism 2 is above max parallelism 1"},
		{"order", []Operator{{ID: op(1), Parallelism: 2, MaxParallelism: 4, Parts: []*Part{part(1, 2, 3), part(0, 0, 1)}}}, "a part of subtask 0 after one of 1"},
		{"no such subtask", []Operator{{ID: op(1), Parallelism: 2, MaxParallelism: 4, Parts: []*Part{part(2, 2, 3)}}}, "of 2 subtasks"},
		{"groups", []Operator{{ID: op(1), Parallelism: 2, MaxParallelism: 4, Parts: []*Part{part(1, 1, 3)}}}, "key groups 1 ... 3, but the subtask has 2 ... 3 of 4"},
		{"finished", []Operator{{ID: op(1), Parallelism: 1, MaxParallelism: 1, Parts: []*Part{{Finished: true, Lists: []ListInfo{{Name: "l"}}}}}}, "a finished subtask has no state"},
	} {
		_, err := (&Manifest{Operators: c.ops}).Encode()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := (&Manifest{Kind: 2}).Encode(); err == nil {
		t.Error("an unknown kind was accepted")
	}
	finished := &Manifest{Operators: []Operator{{ID: op(1), Parallelism: 2, MaxParallelism: 4, Parts: []*Part{{Subtask: 1, Finished: true}}}}}
	b, err := finished.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if m, err := Decode("f", b); err != nil || !m.Operators[0].Parts[0].Finished || m.Operators[0].HasState() {
		t.Errorf("a finished subtask: %v, %v", m, err)
	}
}

func TestStorageWorksOnTheMachinesDisk(t *testing.T) {
	dir := filepath.ToSlash(t.TempDir())
	j := newJob(t, vfs.OS{})
	s, err := OpenStorage(vfs.OS{}, dir+"/a/b")
	if err != nil {
		t.Fatal(err)
	}
	m, err := j.checkpoint(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(nil, m.Folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.holds(loaded); err != nil {
		t.Error(err)
	}
	if r, _, err := loaded.Read(nil, "the-counts"); err != nil || !slices.Equal(r.Tables(), []string{"counts", "words"}) {
		t.Errorf("%v, %v", r, err)
	}
	if err := s.Discard(loaded); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir + "/a/b"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
