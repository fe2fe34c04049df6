package checkpoint

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"slices"
	"syscall"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
)

// errPower is what every call answers after the power has failed.
var errPower = errors.New("the power is gone")

// failing is a file system whose calls fail from the nth on (or only the nth), counted over all kinds of call that change
// something. A failing write writes half of its bytes first.
type failing struct {
	vfs.FS
	left int // calls until one fails
	once bool
	done int
}

func (f *failing) call() error {
	f.done++
	f.left--
	if f.left == 0 || f.left < 0 && !f.once {
		return errPower
	}
	return nil
}

func (f *failing) Create(name string, how vfs.Mode) (vfs.Writer, error) {
	if err := f.call(); err != nil {
		return nil, err
	}
	w, err := f.FS.Create(name, how)
	if err != nil {
		return nil, err
	}
	return &failingWriter{w, f}, nil
}

func (f *failing) Rename(from, to string) error {
	if err := f.call(); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

func (f *failing) Remove(name string) error {
	if err := f.call(); err != nil {
		return err
	}
	return f.FS.Remove(name)
}

func (f *failing) MkdirAll(name string) error {
	if err := f.call(); err != nil {
		return err
	}
	return f.FS.MkdirAll(name)
}

func (f *failing) SyncDir(name string) error {
	if err := f.call(); err != nil {
		return err
	}
	return f.FS.SyncDir(name)
}

type failingWriter struct {
	vfs.Writer
	f *failing
}

func (w *failingWriter) Write(b []byte) (int, error) {
	if err := w.f.call(); err != nil {
		n, _ := w.Writer.Write(b[:len(b)/2])
		return n, err
	}
	return w.Writer.Write(b)
}

func (w *failingWriter) Sync() error {
	if err := w.f.call(); err != nil {
		return err
	}
	return w.Writer.Sync()
}

func (w *failingWriter) Close() error {
	if err := w.f.call(); err != nil {
		_ = w.Writer.Close()
		return err
	}
	return w.Writer.Close()
}

// life is what a job does with its storage: checkpoint 1, then 2, which shares a part with 1, then 1 goes, then 3, then 2
// goes. It gives the snapshots that it was told exist and has not discarded, and those that may exist.
func (j *job) life() (sure, maybe []int64, err error) {
	s, err := OpenStorage(j.fs, "/job/checkpoints")
	if err != nil {
		return nil, nil, err
	}
	var before *Manifest
	for id := int64(1); id <= 3; id++ {
		var m *Manifest
		if id == 2 {
			m, err = j.reusing(s, id, before)
		} else {
			m, err = j.checkpoint(s, id)
		}
		if err != nil {
			return sure, append(maybe, id), err
		}
		sure = append(sure, id)
		if before != nil {
			sure, maybe = sure[1:], append(maybe, sure[0])
			if err := s.Discard(before); err != nil {
				return sure, maybe, err
			}
		}
		before = m
	}
	return sure, maybe, nil
}

// survives checks what is there after a crash: every snapshot is whole, and those that must be there are.
func (j *job) survives(t *testing.T, next int64, sure, maybe []int64) {
	t.Helper()
	s, err := OpenStorage(j.fs, "/job/checkpoints")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		found, err := s.List()
		if err != nil {
			t.Fatal(err)
		}
		var ids []int64
		for _, f := range found {
			if f.Err != nil {
				t.Fatalf("checkpoint %d: %v", f.ID, f.Err)
			}
			ids = append(ids, f.ID)
			if !slices.Contains(sure, f.ID) && !slices.Contains(maybe, f.ID) {
				t.Errorf("checkpoint %d exists", f.ID)
			}
			if err := j.holds(f.Manifest); err != nil {
				t.Errorf("checkpoint %d: %v", f.ID, err)
			}
		}
		for _, id := range sure {
			if !slices.Contains(ids, id) {
				t.Errorf("checkpoint %d is gone", id)
			}
		}
		if err := s.Sweep(); err != nil {
			t.Fatal(err)
		}
	}
	// The process, or the next one, goes on where this one ended.
	if _, err := j.checkpoint(s, next); err != nil {
		t.Errorf("the next checkpoint: %v", err)
	}
}

func TestACrashAtAnyMomentLeavesWholeSnapshots(t *testing.T) {
	calls := 1 << 30
	for at := 1; at <= calls; at++ {
		mem := vfs.NewMem()
		f := &failing{FS: mem, left: at}
		j := newJob(t, f)
		j.keys = 60
		sure, maybe, err := j.life()
		if err == nil {
			calls = f.done
			if !slices.Equal(sure, []int64{3}) || at < 50 {
				t.Fatalf("an undisturbed life of %d calls ends with %v", at, sure)
			}
		} else if !errors.Is(err, errPower) {
			t.Fatalf("call %d: %v", at, err)
		}
		mem.Crash()
		j.fs = mem
		t.Run(fmt.Sprint(at), func(t *testing.T) { j.survives(t, 4, sure, maybe) })
		if t.Failed() {
			return
		}
	}
}

// TestAFaultLeavesWholeSnapshots is the same without a crash: one call fails, the process lives on, gives the checkpoint up
// and takes another one.
func TestAFaultLeavesWholeSnapshots(t *testing.T) {
	for at := 1; ; at++ {
		mem := vfs.NewMem()
		f := &failing{FS: mem, left: at, once: true}
		j := newJob(t, f)
		j.keys = 60
		sure, maybe, err := j.life()
		if f.done < at {
			if err != nil || at < 50 {
				t.Errorf("%d calls: %v", f.done, err)
			}
			return
		}
		t.Run(fmt.Sprint(at), func(t *testing.T) { j.survives(t, 4, sure, maybe) })
		mem.Crash()
		j.fs = mem
		t.Run(fmt.Sprint(at, " and a crash"), func(t *testing.T) { j.survives(t, 5, append(sure, 4), maybe) })
		if t.Failed() {
			return
		}
	}
}

func TestInjectedFaultsAreReported(t *testing.T) {
	for _, op := range []vfs.Op{vfs.OpCreate, vfs.OpWrite, vfs.OpSync, vfs.OpClose, vfs.OpRename, vfs.OpSyncDir, vfs.OpMkdir, vfs.OpStat, vfs.OpOpen, vfs.OpRead, vfs.OpReadDir} {
		for nth := 1; ; nth++ {
			f := vfs.NewFaulty(vfs.NewMem())
			j := newJob(t, f)
			j.keys = 60
			f.Fail(op, nth, syscall.EIO)
			err := j.roundTrip()
			if err == nil && f.Calls(op) < nth {
				if nth == 1 {
					t.Errorf("%s is never called", op)
				}
				break
			}
			if !errors.Is(err, syscall.EIO) {
				t.Errorf("%s %d: %v", op, nth, err)
			}
			f.Heal(op)
			s := openStorage(t, f)
			if m, err := s.Latest(); err != nil {
				t.Errorf("%s %d: %v", op, nth, err)
			} else if m != nil {
				if err := j.holds(m); err != nil {
					t.Errorf("%s %d: %v", op, nth, err)
				}
			}
		}
	}
}

// roundTrip takes a checkpoint and restores it.
func (j *job) roundTrip() error {
	s, err := OpenStorage(j.fs, "/job/checkpoints")
	if err != nil {
		return err
	}
	if _, err := j.checkpoint(s, 1); err != nil {
		return err
	}
	m, err := s.Latest()
	if err != nil {
		return err
	}
	return j.holds(m)
}

func TestAFullDiskFailsTheCheckpointOnly(t *testing.T) {
	f := vfs.NewFaulty(vfs.NewMem())
	j := newJob(t, f)
	j.keys = 60
	s := openStorage(t, f)
	if _, err := j.checkpoint(s, 1); err != nil {
		t.Fatal(err)
	}
	for space := int64(0); ; space += 97 {
		f.Space(space)
		m, err := j.checkpoint(s, 2)
		f.Space(-1)
		if err == nil {
			if space < 1000 {
				t.Fatalf("%d bytes were enough", space)
			}
			if err := j.holds(m); err != nil {
				t.Error(err)
			}
			break
		}
		if !errors.Is(err, vfs.ErrNoSpace) {
			t.Fatalf("%d bytes: %v", space, err)
		}
		if _, err := f.Stat("/job/checkpoints/chk-2/_metadata"); !errors.Is(err, iofs.ErrNotExist) {
			t.Fatalf("%d bytes: there is a manifest: %v", space, err)
		}
		if m, err = s.Latest(); err != nil || m.ID != 1 {
			t.Fatalf("%d bytes: latest is %v, %v", space, m, err)
		}
	}
	if m, err := s.Latest(); err != nil || m.ID != 2 {
		t.Errorf("latest is %v, %v", m, err)
	}
}
