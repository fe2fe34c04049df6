package jobmanager

import (
	"errors"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/vfs"
)

// hanging is a storage one of whose calls takes long, once.
type hanging struct {
	vfs.FS
	call  string // "create" or "rename"
	file  string // a part of the name
	after int32  // so many such calls that are quick
	long  time.Duration
	calls atomic.Int32
}

func (h *hanging) step(call, name string) {
	if call == h.call && strings.Contains(name, h.file) && h.calls.Add(1) == h.after+1 {
		time.Sleep(h.long)
	}
}

func (h *hanging) Create(name string, how vfs.Mode) (vfs.Writer, error) {
	h.step("create", name)
	return h.FS.Create(name, how)
}

func (h *hanging) Rename(from, to string) error {
	h.step("rename", to)
	return h.FS.Rename(from, to)
}

// bulky is a source whose state is a file of its own.
type bulky struct{ *unit }

func (b *bulky) Snapshot(s *operator.Snapshot) error {
	s.Lists = append(s.Lists, checkpoint.List{Name: "bulk", Items: [][]byte{make([]byte, 100<<10)}})
	return nil
}

// failing is a program of a source with state that fails after a time, once.
func failing(t *testing.T, after time.Duration, opened func(rt *operator.Runtime)) *program {
	p := newProgram(t)
	n := p.source("failing", 1, hooks{poll: hang, open: func(rt *operator.Runtime) error {
		opened(rt)
		if rt.Attempt == 0 {
			rt.Timers.Schedule(time.Now().Add(after).UnixMilli(), func(int64) error { return errBoom })
		}
		return nil
	}})
	open := n.New
	n.New = func() operator.Operator { return &bulky{open().(*unit)} }
	return p
}

// A restart does not wait for a storage that hangs: what can be given up is, and never appears; what can't be is waited for,
// up to the checkpoint timeout.
func TestRestartDoesNotWaitForAStorageThatHangs(t *testing.T) {
	for _, c := range []struct {
		name       string
		call, file string
		long       time.Duration
		begins     time.Duration // when the second attempt begins, from the start; 0: never
		restored   int64
		completed  bool // the checkpoint that hung, in the end
	}{
		{"the manifest hangs and is given up", "create", checkpoint.ManifestName, 10 * time.Minute, 2500*time.Millisecond + storePatience, 1, false},
		{"the manifest comes in time", "create", checkpoint.ManifestName, 2 * time.Second, 4 * time.Second, 2, true},
		{"it is being named and comes before the timeout", "rename", checkpoint.ManifestName, 20 * time.Second, 22 * time.Second, 2, true},
		{"it is being named and nobody knows", "rename", checkpoint.ManifestName, 10 * time.Minute, 0, 0, true},
		{"a part hangs", "create", "-0-", 10 * time.Minute, 2500 * time.Millisecond, 1, false},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			start := time.Now()
			var begins []time.Duration
			var restored []int64
			p := failing(t, 2500*time.Millisecond, func(rt *operator.Runtime) {
				begins = append(begins, time.Since(start))
				if rt.Restored != nil {
					restored = append(restored, rt.Restored.Checkpoint)
				}
			})
			mem := vfs.NewMem()
			h := &hanging{FS: mem, call: c.call, file: c.file, after: 1, long: c.long}
			opt := everyTen(h)
			opt.Config.Interval, opt.Config.Timeout, opt.Config.TolerableFailures = time.Second, time.Minute, control.Unlimited
			released := false
			opt.Released = func() { released = true }
			j := p.keep(&control.FixedDelay{Attempts: 1, Delay: time.Millisecond}, opt)
			if c.begins == 0 {
				ends(t, c.name, j, Failed, errUnknown)
				if d := time.Since(start); d > 3*time.Minute || len(begins) != 1 || released {
					t.Errorf("ended after %v, %d attempts, released %v, %v", d, len(begins), released, j.Record().Failures)
				}
				time.Sleep(10 * time.Minute)
				return
			}
			time.Sleep(c.begins + time.Second)
			synctest.Wait()
			if len(begins) != 2 || begins[1] < c.begins || begins[1] > c.begins+10*time.Millisecond || len(restored) != 1 || restored[0] != c.restored {
				t.Errorf("began at %v, want %v; restored %v, want %d; %s, %v", begins, c.begins, restored, c.restored, j.Status(), j.Record().Failures)
			}
			time.Sleep(12 * time.Minute)
			_, err := mem.Stat(path.Join(opt.Dir, "chk-2", checkpoint.ManifestName))
			if n := j.Checkpoints().Counts.Completed; n < 10 || err == nil {
				t.Errorf("%d checkpoints; the manifest of the one that hung: %v", n, err)
			}
			j.Cancel()
			ends(t, c.name, j, Canceled, ErrCanceled)
			if !released {
				t.Error("the folder is not released")
			}
		})
	}
}

// A snapshot is either named or given up, whoever comes first.
func TestStoreIsNamedOrGivenUp(t *testing.T) {
	var s stores
	a, b := &storeUnderWay{id: 1}, &storeUnderWay{id: 2}
	s.begin("/a", a)
	s.begin("/b", b)
	if !s.name("/a") || s.giveUp(a) || !s.name("/other") {
		t.Error("what is being named was given up")
	}
	if !s.giveUp(b) || s.giveUp(b) || s.name("/b") {
		t.Error("what was given up got its name")
	}
	if u := s.underWay(); len(u) != 1 || u[0] != a {
		t.Errorf("under way: %v", u)
	}
	s.end("/a", b)
	s.end("/b", b)
	if u := s.underWay(); len(u) != 1 {
		t.Errorf("under way: %v", u)
	}
	f := fenced{vfs.NewMem(), &stores{}}
	c := &storeUnderWay{id: 3}
	f.stores.begin("/c", c)
	f.stores.giveUp(c)
	if err := f.Rename("/c/x", path.Join("/c", checkpoint.ManifestName)); !errors.Is(err, errGivenUp) {
		t.Errorf("renamed: %v", err)
	}
}

// appearing is a file system that says that files appear whole, and counts those that are made.
type appearing struct {
	vfs.FS
	made *int
}

func (appearing) WholeFiles(string) bool { return true }

func (a appearing) Create(name string, how vfs.Mode) (vfs.Writer, error) {
	*a.made++
	return a.FS.Create(name, how)
}

// Where files appear whole nothing of a manifest is sent before it is sure that it may get its name.
func TestManifestThatAppearsWholeIsRefusedOnceGivenUp(t *testing.T) {
	made := 0
	f := fenced{appearing{vfs.NewMem(), &made}, &stores{}}
	if err := f.MkdirAll("/a"); err != nil {
		t.Fatal(err)
	}
	for _, givenUp := range []bool{true, false} {
		u := &storeUnderWay{id: 1}
		f.stores.begin("/a", u)
		w, err := f.Create(path.Join("/a", checkpoint.ManifestName), vfs.Exclusive)
		if err == nil {
			_, err = w.Write([]byte("manifest"))
		}
		if err != nil {
			t.Fatal(err)
		}
		if givenUp {
			f.stores.giveUp(u)
		}
		err = w.Close()
		if givenUp && (!errors.Is(err, errGivenUp) || made != 0) || !givenUp && (err != nil || made != 1 || f.stores.giveUp(u)) {
			t.Errorf("given up %v: error %v, %d files made", givenUp, err, made)
		}
	}
}
