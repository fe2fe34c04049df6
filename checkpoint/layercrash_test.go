package checkpoint

import (
	"errors"
	"fmt"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend"
)

// layerChain is a job whose checkpoints build one upon the other: in checkpoint n, key k holds the last of 1 ... n that is k
// modulo 3, and the files of the backend are n and all before from n-1 on.
type layerChain struct {
	t      *testing.T
	counts statebackend.TableInfo
}

// take takes checkpoint id upon the one before.
func (c *layerChain) take(f vfs.FS, s *Storage, id int64, before *Manifest) (*Manifest, error) {
	folder, err := s.Begin(id)
	if err != nil {
		return nil, err
	}
	m := &Manifest{Folder: folder, ID: id, HashSeed: seed}
	for n := range 2 { // an operator with rows, and one with files
		state := &State{}
		if before != nil {
			state.Earlier, state.EarlierFolder = before.Operators[n].Parts[0], before.Folder
		}
		if n == 0 {
			var rows []statebackend.Row
			for k := range uint64(30) {
				if before == nil || int64(k%3) == id%3 {
					r := keyed(c.t, c.counts, 4, le(k))
					r.Value = le(uint64(id))
					rows = append(rows, r)
				}
			}
			t := table(c.counts, rows...)
			t.Changes = before != nil
			state.Tables = []statebackend.FrozenTable{t}
		} else {
			files := map[string][]byte{}
			for i := max(1, id-1); i <= id; i++ {
				files[fmt.Sprint(i, ".lines")] = fmt.Appendf(nil, "file %d\n", i)
			}
			state.Files = []*statebackend.FileSet{linesOf(files)}
		}
		p, err := (&Writer{FS: f, Folder: folder, InlineBytes: -1}).Write(c.t.Context(), op(n), 0, 0, 3, state)
		if err != nil {
			return nil, err
		}
		m.Operators = append(m.Operators, Operator{ID: op(n), Parallelism: 1, MaxParallelism: 4, Parts: []*Part{p}})
	}
	_, err = s.Complete(m)
	return m, err
}

// live takes checkpoints from one on, and discards those before the last one. It gives the ids that must be there after.
func (c *layerChain) live(f vfs.FS) (sure int64, err error) {
	s, err := OpenStorage(f, "/c")
	if err != nil {
		return 0, err
	}
	var before *Manifest
	for id := int64(1); id <= 4; id++ {
		m, err := c.take(f, s, id, before)
		if err != nil {
			return sure, err
		}
		sure = id
		if before != nil {
			if err := s.Discard(before); err != nil {
				return sure, err
			}
		}
		before = m
	}
	return sure, nil
}

// holds checks that a checkpoint has what was in it.
func (c *layerChain) holds(f vfs.FS, m *Manifest) error {
	if err := m.Verify(f); err != nil {
		return err
	}
	r, _, err := m.Read(f, op(0))
	if err != nil {
		return err
	}
	counts, _ := r.Table("counts")
	n := 0
	for row, err := range counts.Rows {
		if err != nil {
			return err
		}
		want := int64(1)
		for id := int64(2); id <= m.ID; id++ {
			if int64(row.Key[0]%3) == id%3 {
				want = id
			}
		}
		if n++; string(row.Value) != string(le(uint64(want))) {
			return fmt.Errorf("key %x has %x and should have %d", row.Key, row.Value, want)
		}
	}
	if n != 30 {
		return fmt.Errorf("%d rows", n)
	}
	return nil
}

// TestACrashAtAnyMomentLeavesLayersWhole crashes a job with layers and files at every call that changes something, and looks
// at what is there, before and after litter is swept.
func TestACrashAtAnyMomentLeavesLayersWhole(t *testing.T) {
	c := &layerChain{t: t, counts: info(t, "counts", "value", "int64", "int64", "", "", nil)}
	for nth := 1; ; nth++ {
		mem := vfs.NewMem()
		failing := &failing{FS: mem, left: nth}
		sure, err := c.live(failing)
		if err != nil && !errors.Is(err, errPower) {
			t.Fatal(err)
		}
		mem.Crash()
		s, oerr := OpenStorage(mem, "/c")
		if oerr != nil {
			t.Fatal(oerr)
		}
		for range 2 {
			found, lerr := s.List()
			if lerr != nil {
				t.Fatal(lerr)
			}
			there := sure == 0
			for _, m := range found {
				if m.Err != nil {
					t.Fatalf("call %d: checkpoint %d: %v", nth, m.ID, m.Err)
				}
				there = there || m.ID == sure
				if err := c.holds(mem, m.Manifest); err != nil {
					t.Fatalf("call %d: checkpoint %d: %v", nth, m.ID, err)
				}
			}
			if !there {
				t.Fatalf("call %d: checkpoint %d is lost", nth, sure)
			}
			if err := s.Sweep(); err != nil {
				t.Fatal(err)
			}
		}
		if err == nil {
			if nth < 50 {
				t.Errorf("the job makes %d calls only", nth)
			}
			return
		}
	}
}
