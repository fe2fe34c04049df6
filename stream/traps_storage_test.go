package stream_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/env"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/stream"
)

// stored is a job whose checkpoints lie on a disk that breaks, and whose files lie on another one.
type stored struct {
	*testing.T
	mem, out *vfs.Mem
	disk     *vfs.Faulty
	read     atomic.Int64
	at       map[int64]func() // what happens when so many elements have been read
}

func newStored(t *testing.T) *stored {
	mem := vfs.NewMem()
	s := &stored{T: t, mem: mem, out: vfs.NewMem(), at: map[int64]func(){}}
	s.disk = vfs.NewFaulty(mem).Only(func(name string) bool { return strings.HasPrefix(name, "/checkpoints/") })
	return s
}

const storedLimit = 120

// run runs the job to its end, however it ends.
func (s *stored) run(opts ...stream.CheckpointOption) (stream.CheckpointHistory, error) {
	s.Helper()
	opts = append(opts, stream.TolerableCheckpointFailureNumber(100))
	e := stream.NewEnv(func(set *env.Settings) {
		set.Checkpoints.FS, set.Checkpoints.InlineBytes, set.Checkpoints.History = s.disk, -1, 100
	}).SetParallelism(2).SetCheckpointStorage("/checkpoints").SetRestartStrategy(stream.FixedDelayRestart(2, time.Millisecond)).
		EnableCheckpointing(10*time.Millisecond, opts...)
	strictJob(e, s.out, storedLimit, func() {
		if f := s.at[s.read.Add(1)]; f != nil {
			f()
		}
	})
	job, err := e.ExecuteAsync(s.Context(), "stored")
	if err != nil {
		s.Fatal(err)
	}
	_, err = job.Wait()
	return job.Checkpoints(), err
}

// left are the files of checkpoints that are still there.
func (s *stored) left() (names []string) {
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := s.mem.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.Fatal(err)
		}
		for _, e := range entries {
			if name := path.Join(dir, e.Name()); e.IsDir() {
				walk(name)
			} else {
				names = append(names, name)
			}
		}
	}
	walk("/checkpoints")
	return names
}

// crash fails the job, once.
func crashOnce() { panic("a bad element") }

// storageFault is something that happens to a disk, and what the history says of it.
type storageFault struct {
	name   string
	breaks func(d *vfs.Faulty) (heal func())
	says   string // "": nothing, the checkpoint is complete
	until  int64  // it is well again when so many elements have been read
}

func storageFaults() []storageFault {
	var all []storageFault
	for _, op := range []vfs.Op{vfs.OpMkdir, vfs.OpCreate, vfs.OpWrite, vfs.OpSync, vfs.OpClose, vfs.OpSyncDir, vfs.OpRename} {
		for _, nth := range []int{1, 2, 4} {
			all = append(all, storageFault{fmt.Sprint(op, " ", nth), func(d *vfs.Faulty) func() {
				d.Fail(op, nth, syscall.EIO)
				return func() {}
			}, syscall.EIO.Error(), 90})
		}
		all = append(all, storageFault{fmt.Sprint(op, " for a while"), func(d *vfs.Faulty) func() {
			d.FailFrom(op, 1, syscall.EIO)
			return func() { d.Heal(op) }
		}, syscall.EIO.Error(), 90})
	}
	for nth := range 4 {
		all = append(all, storageFault{fmt.Sprint("short write ", nth+1), func(d *vfs.Faulty) func() {
			d.ShortWrite(nth + 1)
			return func() {}
		}, "short write", 90})
	}
	for _, space := range []int64{0, 1, 300, 1000} {
		all = append(all, storageFault{fmt.Sprint("no space after ", space), func(d *vfs.Faulty) func() {
			d.Space(space)
			return func() { d.Space(-1) }
		}, vfs.ErrNoSpace.Error(), 90})
	}
	// A manifest that hangs between having its name and not may exist: the checkpoint is complete when the disk says so, and
	// nothing can be restored before.
	for op, says := range map[vfs.Op]string{vfs.OpCreate: "expired", vfs.OpWrite: "expired", vfs.OpSync: "expired", vfs.OpRename: ""} {
		all = append(all, storageFault{fmt.Sprint(op, " hangs"), func(d *vfs.Faulty) func() { return d.Hang(op, 1) }, says, 58})
	}
	return all
}

// Storage that breaks in any way in the middle of a checkpoint, a full disk too, costs that checkpoint: the history says why, its
// files go, the one before restores, and when the storage is well again there are checkpoints again.
func TestB027StorageThatBreaksCostsACheckpoint(t *testing.T) {
	want := strictOracle(t, storedLimit)
	for _, f := range storageFaults() {
		for _, incremental := range []bool{false, true} {
			t.Run(fmt.Sprint(f.name, ", incremental ", incremental), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newStored(t)
					heal := func() {}
					s.at[30] = func() { heal = f.breaks(s.disk) }
					s.at[60] = crashOnce
					s.at[f.until] = func() { heal() }
					defer func() { heal() }()
					history, err := s.run(stream.IncrementalCheckpoints(incremental), stream.CheckpointTimeout(12*time.Millisecond))
					if err != nil {
						t.Fatal(err)
					}
					checkVisible(t, s.out, want)
					failed := slices.IndexFunc(history.History, func(c stream.CheckpointStatistics) bool {
						return f.says != "" && c.Status == stream.CheckpointFailed && strings.Contains(c.Failure+c.Reason.String(), f.says)
					})
					goneOn := history.LatestCompleted != nil && (failed < 0 || history.LatestCompleted.ID > history.History[failed].ID)
					if c := history.Counts; c.Restored != 1 || failed < 0 && f.says != "" || !goneOn {
						t.Errorf("%+v, failures %q", c, failures(history))
					}
					if left := s.left(); len(left) > 0 {
						t.Errorf("files are left: %q", left)
					}
				})
			})
		}
	}
}

// failures are why checkpoints have failed.
func failures(h stream.CheckpointHistory) (texts []string) {
	for _, c := range h.History {
		if c.Status == stream.CheckpointFailed {
			texts = append(texts, fmt.Sprint(c.ID, " ", c.Reason, ": ", c.Failure))
		}
	}
	return texts
}

func checkVisible(t *testing.T, disk vfs.FS, want map[string][]string) {
	t.Helper()
	for name, lines := range want {
		if got := visibleOn(t, disk, "/out/"+name); !slices.Equal(got, lines) {
			t.Errorf("%s: %d lines, want %d, or others:\n%s", name, len(got), len(lines), difference(got, lines))
		}
	}
}

// A disk that says that all is well and has changed, cut or lost a file is found out by the restore, which names the file.
// Nothing else is restored in its place: sinks have committed with it.
func TestFilesThatTheDiskHasSpoiledAreNotRestored(t *testing.T) {
	want := strictOracle(t, storedLimit)
	for name, spoil := range map[string]func(d *vfs.Faulty){
		"changed": func(d *vfs.Faulty) { d.Corrupt(1) },
		"lost":    func(d *vfs.Faulty) { d.Lose(1) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStored(t)
				s.disk.Only(func(name string) bool { return strings.HasSuffix(name, ".chunk") })
				s.at[30] = func() { spoil(s.disk) }
				s.at[37] = crashOnce // the checkpoint at 30 ms is complete, that at 40 ms is not
				history, err := s.run()
				var damaged *checkpoint.DamagedError
				if !errors.As(err, &damaged) || !strings.HasSuffix(damaged.File, ".chunk") || !strings.Contains(err.Error(), damaged.File) {
					t.Errorf("got %v\n%q", err, failures(history))
				}
				for name, lines := range want {
					if extra := tooMany(visibleOn(t, s.out, "/out/"+name), lines); extra != "" {
						t.Errorf("%s has too many lines %q", name, extra)
					}
				}
			})
		})
	}
}

// saveStrict stops the program with a savepoint and gives its folder, or, to be started from as well, that of a checkpoint that
// was retained.
func saveStrict(t *testing.T, mem, out vfs.FS, retained bool) string {
	t.Helper()
	e := stream.NewEnv(func(s *env.Settings) { s.Checkpoints.FS, s.Checkpoints.InlineBytes = mem, -1 }).SetParallelism(2).
		SetCheckpointStorage("/checkpoints").
		EnableCheckpointing(10*time.Millisecond, stream.IncrementalCheckpoints(true), stream.ExternalizedCheckpoints(stream.RetainOnCancellation))
	strictJob(e, out, storedLimit, func() {})
	job, err := e.ExecuteAsync(t.Context(), "strict")
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(55 * time.Millisecond)
	if retained {
		at := job.Checkpoints().LatestCompleted.Location
		job.Cancel()
		<-job.Done()
		return at
	}
	at, err := job.StopWithSavepoint(t.Context(), "/savepoints", false)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// A savepoint or checkpoint with a byte changed, a file cut, too long, lost or of another one is refused before anything of
// the program runs, by an error that names the file.
func TestDamagedSnapshotsAreRefusedBeforeAnythingRuns(t *testing.T) {
	damages := map[string]func(rng *rand.Rand, b []byte) []byte{
		"changed": func(rng *rand.Rand, b []byte) []byte {
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			return b
		},
		"cut":   func(rng *rand.Rand, b []byte) []byte { return b[:rng.IntN(len(b))] },
		"long":  func(_ *rand.Rand, b []byte) []byte { return append(b, 0) },
		"lost":  func(*rand.Rand, []byte) []byte { return nil },
		"empty": func(*rand.Rand, []byte) []byte { return []byte{} },
	}
	for _, retained := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			mem := vfs.NewMem()
			at := saveStrict(t, mem, vfs.NewMem(), retained)
			m, err := checkpoint.Load(mem, at)
			if err != nil || len(m.Files()) < 8 {
				t.Fatal(m.Files(), err)
			}
			rng := rand.New(rand.NewPCG(uint64(setting(t, "FLOTT_SEED", 1)), 2))
			for _, name := range append(m.Files(), path.Join(at, checkpoint.ManifestName)) {
				whole, err := vfs.ReadFile(mem, name)
				if err != nil {
					t.Fatal(err)
				}
				for what, damage := range damages {
					put(t, mem, name, damage(rng, slices.Clone(whole)))
					refused(t, mem, at, fmt.Sprintf("%s is %s", name, what), path.Base(name))
				}
				put(t, mem, name, whole)
			}
		})
	}
}

// put makes a file have these bytes; nil: it does not exist.
func put(t *testing.T, disk vfs.FS, name string, b []byte) {
	t.Helper()
	err := vfs.WriteFile(disk, name, b)
	if b == nil {
		err = disk.Remove(name)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// refused starts the program from a snapshot of which a file is damaged.
func refused(t *testing.T, disk vfs.FS, at, how, file string) {
	t.Helper()
	out, read := vfs.NewMem(), 0
	e := stream.NewEnv(stream.WithSavepoint(at), func(s *env.Settings) { s.Checkpoints.FS = disk }).SetParallelism(2)
	strictJob(e, opened{out, t}, storedLimit, func() { read++ })
	_, err := e.Execute(t.Context(), "again")
	var damaged *checkpoint.DamagedError
	lost := file == checkpoint.ManifestName && strings.Contains(how, "lost") && err != nil && strings.Contains(err.Error(), at)
	var version *checkpoint.VersionError
	if !lost && !errors.As(err, &damaged) && !errors.As(err, &version) || err != nil && !strings.Contains(err.Error(), file) && file != checkpoint.ManifestName || read > 0 {
		t.Errorf("%s: %d elements were read, %v", how, read, err)
	}
}

// opened is the disk of a sink that must not be opened.
type opened struct {
	vfs.FS
	t *testing.T
}

func (o opened) Create(name string, _ vfs.Mode) (vfs.Writer, error) {
	o.t.Errorf("%s was made", name)
	return nil, fs.ErrPermission
}
