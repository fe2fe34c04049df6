package checkpoint

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend"
)

// meter counts the bytes that are read of chunks.
type meter struct {
	vfs.FS
	read atomic.Int64
}

func (m *meter) Open(name string) (vfs.File, error) {
	f, err := m.FS.Open(name)
	if err != nil || !strings.HasSuffix(name, ".chunk") {
		return f, err
	}
	return metered{f, m}, nil
}

type metered struct {
	vfs.File
	m *meter
}

func (f metered) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(b, at)
	f.m.read.Add(int64(n))
	return n, err
}

// drain reads some tables of an operator for each of its new subtasks, by batches where there are any.
func drain(a *Audit, parallelism, groups int, some func(table string) bool) error {
	for subtask := range parallelism {
		r, err := a.Restore(op(1), subtask, parallelism, groups)
		if err != nil {
			return err
		}
		for _, name := range r.Tables() {
			if !some(name) {
				continue
			}
			if batches, ok := r.(statebackend.RestoredBatches).Batches(name); ok {
				for _, err := range batches {
					if err != nil {
						return err
					}
				}
				continue
			}
			t, _ := r.Table(name)
			for _, err := range t.Rows {
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// unread is what an audit still reads of files when some tables were read before: headers, digests, and the sections of others.
func unread(m *Manifest, some func(table string) bool) (n int64) {
	for _, p := range m.Operators[0].Parts {
		for i := range p.chunks {
			c := &p.chunks[i]
			if c.path == "" {
				continue
			}
			n += 2*chunkHeader + int64(digestBytes)
			for j := range c.sections {
				if s := &c.sections[j]; s.place == nobody || !some(p.Tables[s.place].Name) {
					n += s.bytes()
				}
			}
		}
	}
	return n
}

// What a restore has read is not read again by the check, at any parallelism and in any layer.
func TestAuditReadsWhatWasNotRead(t *testing.T) {
	for s := range uint64(4) {
		j := newLayeredJob(t, s)
		var m *Manifest
		for id := range int64(5) {
			j.change()
			m = j.checkpoint(id)
		}
		for _, parallelism := range []int{1, 2, 3, 8} {
			for _, tables := range []string{"", "values", "values lists", "values texts lists maps"} {
				some := func(table string) bool { return strings.Contains(tables, table) }
				a, rest := m.Audit(j.fs), &meter{FS: j.fs}
				if err := drain(a, parallelism, j.groups, some); err != nil {
					t.Fatal(err)
				}
				a.fs = rest
				if err := a.Verify(); err != nil {
					t.Fatal(err)
				}
				if got, want := rest.read.Load(), unread(m, some); got != want {
					t.Errorf("seed %d, parallelism %d, %q read before: %d bytes are read, want %d", s, parallelism, tables, got, want)
				}
			}
		}
	}
}

// Any changed byte is found by the restore or by the check of the rest, and its file named.
func TestAuditFindsAnyChangedByte(t *testing.T) {
	fs, j, m := small(t)
	for _, file := range m.Files() {
		good, err := vfs.ReadFile(fs, file)
		if err != nil {
			t.Fatal(err)
		}
		for at := range good {
			b := slices.Clone(good)
			b[at] ^= 1 << (at % 8)
			if err := vfs.WriteFile(fs, file, b); err != nil {
				t.Fatal(err)
			}
			a := m.Audit(fs)
			some := []string{"counts", "words"}[at%2]
			err := errors.Join(drain(a, 1+at%3, j.groups, func(table string) bool { return table == some }), a.Verify())
			damaged, ok := errors.AsType[*DamagedError](err)
			_, version := errors.AsType[*VersionError](err)
			if !version && (!ok || damaged.File != file) {
				t.Fatalf("%s, byte %d: %v", file, at, err)
			}
		}
		if err := vfs.WriteFile(fs, file, good); err != nil {
			t.Fatal(err)
		}
	}
}

// A block that is whole but not the one that was written is found by the digest, as it is by a check that reads everything.
func TestAuditFindsAnotherBlock(t *testing.T) {
	fs, _, m := small(t)
	a := m.Audit(fs)
	if err := drain(a, 1, 4, func(string) bool { return true }); err != nil {
		t.Fatal(err)
	}
	var c *chunk
	for seen := range a.seen {
		if c == nil || seen.path < c.path {
			c = seen
		}
	}
	for p, is := range a.seen[c] {
		is.headers = slices.Clone(is.headers)
		is.headers[0] ^= 1
		a.note(c, p, is)
		break
	}
	if err := a.Verify(); err == nil || !strings.Contains(err.Error(), "the digest of its blocks is") {
		t.Errorf("got %v", err)
	}
	for p, is := range a.seen[c] {
		is.rows++
		a.note(c, p, is)
		break
	}
	if err := a.Verify(); err == nil || !strings.Contains(err.Error(), "rows and should have") {
		t.Errorf("got %v", err)
	}
}

func TestAuditOfAnUnknownOperatorIsEmpty(t *testing.T) {
	fs, _, m := small(t)
	a := m.Audit(fs)
	if r, err := a.Restore(op(9), 0, 1, 4); r != nil || err != nil {
		t.Errorf("got %v, %v", r, err)
	}
	if _, err := a.Restore(op(1), 0, 1, 8); err == nil || !strings.Contains(fmt.Sprint(err), "max parallelism of 4") {
		t.Errorf("got %v", err)
	}
}
