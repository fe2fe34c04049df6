package env

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
)

// logged takes what is logged.
func logged(t *testing.T) *bytes.Buffer {
	var said bytes.Buffer
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	slog.SetDefault(slog.New(slog.NewTextHandler(&said, nil)))
	return &said
}

// Settings that do nothing because of others are told, with what to do; those that do something are not.
func TestSettingsThatDoNothingAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(c *Checkpoints)
		want string // "": nothing is told
	}{
		"nothing":                 {func(*Checkpoints) {}, ""},
		"timeout alone":           {func(c *Checkpoints) { c.AlignedTimeout = time.Second }, "call EnableUnalignedCheckpoints, or set execution.checkpointing.unaligned.enabled"},
		"timeout of unaligned":    {func(c *Checkpoints) { c.AlignedTimeout, c.Unaligned = time.Second, true }, ""},
		"folders alone":           {func(c *Checkpoints) { c.Dir, c.Local.Dirs = "/cp", []string{"/l"} }, "set execution.checkpointing.local-backup.enabled and execution.state-recovery.from-local"},
		"copies that nobody has":  {func(c *Checkpoints) { c.Dir, c.Local.Dirs, c.Local.Read = "/cp", []string{"/l"}, true }, "set execution.checkpointing.local-backup.enabled, too"},
		"copies that nobody uses": {func(c *Checkpoints) { c.Dir, c.Local.Dirs, c.Local.Backup = "/cp", []string{"/l"}, true }, "set execution.state-recovery.from-local, too"},
		"copies":                  {func(c *Checkpoints) { c.Dir, c.Local = "/cp", LocalRecovery{[]string{"/l"}, true, true} }, ""},
		"copies of memory":        {func(c *Checkpoints) { c.Local = LocalRecovery{[]string{"/l"}, true, true} }, "call SetCheckpointStorage, or set execution.checkpointing.dir"},
		"copies of recovery":      {func(c *Checkpoints) { c.Recovery, c.Local = "/r", LocalRecovery{[]string{"/l"}, true, true} }, ""},
		"pause and several":       {func(c *Checkpoints) { c.MinPause, c.MaxConcurrent = time.Second, 2 }, "take execution.checkpointing.min-pause out"},
		"retained in memory":      {func(c *Checkpoints) { c.Enabled, c.Retention = true, RetainOnFailure }, "checkpoints are to outlive the job"},
		"unclaimed of nothing":    {func(c *Checkpoints) { c.AllowNonRestored = true }, "ignore-unclaimed-state: ignored, as the job starts from no snapshot"},
		"claim of nothing":        {func(c *Checkpoints) { c.Claim = true }, "claim-mode: ignored, as the job starts from no snapshot"},
		"claim":                   {func(c *Checkpoints) { c.Claim, c.Savepoint = true, "/sp" }, ""},
	} {
		e := New()
		c.set(&e.Settings.Checkpoints)
		switch told := e.Warnings(); {
		case c.want == "" && len(told) > 0, c.want != "" && (len(told) != 1 || !strings.Contains(told[0], c.want)):
			t.Errorf("%s: %q, want %q", name, told, c.want)
		}
	}
}

// Who does not ask for warnings finds those about settings in the log, each once; a launcher that gets them tells them itself.
func TestWarningsAboutSettingsAreLoggedOnce(t *testing.T) {
	for _, launched := range []bool{false, true} {
		said := logged(t)
		if launched {
			t.Setenv(ReportVariable, t.TempDir()+"/report")
		}
		e := configured(t, map[string]string{"my.key": "x", "execution.state-recovery.claim-mode": "CLAIM", "execution.checkpointing.interval": "1 h"})
		e.Settings.Parallelism = 1
		e.Settings.Checkpoints.AlignedTimeout = time.Second
		for range 2 {
			tally(t, e, 1, neverFail)
			wait(t, start(t, e))
		}
		for _, text := range []string{"ignored, unknown keys: my.key", "aligned-checkpoint-timeout: ignored", "claim-mode: ignored"} {
			want := map[bool]int{false: 1, true: 0}[launched]
			if got := strings.Count(said.String(), text); got != want {
				t.Errorf("launched %v: %q is logged %d times, not %d:\n%s", launched, text, got, want, said)
			}
		}
	}
}

// A job that takes no checkpoints after tasks have finished says so when the first has, once; who asks for one is told, too.
func TestNoCheckpointsAfterTasksHaveFinishedIsLoggedOnce(t *testing.T) {
	said := logged(t)
	synctest.Test(t, func(t *testing.T) {
		e := kept(1)
		e.Settings.Checkpoints.AfterTasksFinish = false
		typ := typeOf[int64](t)
		for _, limit := range []int64{5, 1 << 40} {
			src := add(e, graph.Source, "tap", typ, func() operator.Operator { return &tap{out: operator.NewOutput(typ), limit: limit} })
			add(e, graph.Sink, "end", nil, func() operator.Operator {
				return &drain{b: &basin{ends: make([]int, 1), got: make([][]int64, 1)}, typ: typ}
			}, graph.Edge{From: src})
		}
		x := start(t, e)
		time.Sleep(time.Second)
		if _, err := x.TakeCheckpoint(t.Context(), false); err == nil || !strings.Contains(err.Error(), "set execution.checkpointing.checkpoints-after-tasks-finish to true") {
			t.Errorf("who asks for a checkpoint hears %v; the job %v", err, x.Err())
		}
		x.Cancel()
		<-x.Done()
	})
	const text = "a job takes no periodic checkpoints any more"
	if got := strings.Count(said.String(), text); got != 1 || !strings.Contains(said.String(), "checkpoints-after-tasks-finish") || !strings.Contains(said.String(), `of \"Source: tap`) {
		t.Errorf("%d times in\n%s", got, said)
	}
}

// The end of bounded input is committed also where no checkpoints are taken after tasks have finished.
func TestBoundedInputIsCommittedWithoutCheckpointsAfterTasksFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := kept(1)
		e.Settings.Checkpoints.AfterTasksFinish, e.Settings.Checkpoints.Interval = false, time.Hour
		v := tally(t, e, 50, neverFail)
		x := start(t, e)
		select {
		case <-x.Done():
		case <-time.After(10 * time.Hour):
			t.Error("the job waits for ever to commit")
			x.Cancel()
		}
		<-x.Done()
		if got, want := len(v.all()), len(totals(50)); got != want || x.Err() != nil {
			t.Errorf("%d of %d totals are committed, %v", got, want, x.Err())
		}
	})
}

// Where old configuration wants savepoints in files, the program may say in which folder.
func TestFolderOfSavepointsMayBeSetInCode(t *testing.T) {
	keys := map[string]string{"savepoints.state.backend": "filesystem", "execution.checkpointing.interval": "1 h"}
	for name, c := range map[string]struct {
		e  *Env
		ok bool
	}{
		"nowhere":      {configured(t, keys), false},
		"by an option": {configured(t, keys, func(s *Settings) { s.Checkpoints.SavepointDir = "/sp" }), true},
		"by a call": {func() *Env {
			e := configured(t, keys)
			e.Settings.Checkpoints.SavepointDir = "/sp"
			return e
		}(), true},
		"by a key": {configured(t, map[string]string{"savepoints.state.backend": "filesystem", "savepoints.state.backend.fs.dir": "/sp", "execution.checkpointing.interval": "1 h"}), true},
	} {
		c.e.Settings.Parallelism = 1
		tally(t, c.e, 1, neverFail)
		x, err := c.e.Start(t.Context(), "job")
		if (err == nil) != c.ok || !c.ok && !strings.Contains(err.Error(), "WithConfiguration: savepoints.state.backend: savepoints are to lie in files") {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			wait(t, x)
		}
	}
}
