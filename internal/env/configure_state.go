package env

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/flott-dev/flott/internal/control"
)

const second = time.Second

func (a *application) checkpoints() {
	c, to := a.c, &a.s.Checkpoints
	const p = "execution.checkpointing."
	if d, ok := c.Duration(p + "interval"); ok {
		to.Interval, to.Enabled = d, d > 0
	}
	switch mode, _ := c.Text(p + "mode"); mode {
	case "EXACTLY_ONCE":
		to.Mode = ExactlyOnce
	case "AT_LEAST_ONCE":
		to.Mode = AtLeastOnce
	}
	set(&to.Timeout, c.Duration, p+"timeout")
	set(&to.MinPause, c.Duration, p+"min-pause")
	set(&to.MaxConcurrent, c.Integer, p+"max-concurrent-checkpoints")
	set(&to.TolerableFailures, c.Integer, p+"tolerable-failed-checkpoints")
	switch kept, _ := c.Text(p + "externalized-checkpoint-retention"); kept {
	case "NO_EXTERNALIZED_CHECKPOINTS":
		to.Retention = NeverRetained
	case "RETAIN_ON_CANCELLATION":
		to.Retention = RetainOnCancellation
	case "DELETE_ON_CANCELLATION":
		to.Retention = RetainOnFailure
	}
	set(&to.Incremental, c.Boolean, p+"incremental")
	set(&to.Unaligned, c.Boolean, p+"unaligned.enabled")
	set(&to.AlignedTimeout, c.Duration, p+"aligned-checkpoint-timeout")
	set(&to.Retained, c.Integer, p+"num-retained")
	set(&to.AfterTasksFinish, c.Boolean, p+"checkpoints-after-tasks-finish")
	set(&to.PreferCheckpoint, c.Boolean, p+"prefer-checkpoint-for-recovery")
	set(&to.History, c.Integer, "web.checkpoints.history")
	if n, ok := c.Bytes(p + "data-inline-threshold"); ok {
		if n > 1<<20 {
			a.mistake(p+"data-inline-threshold", "%d bytes are more than 1 mb", n)
		}
		if to.InlineBytes = int(n); n == 0 {
			to.InlineBytes = -1
		}
	}
}

// state applies where state and snapshots are kept.
func (a *application) state() {
	c, to := a.c, &a.s.Checkpoints
	const (
		p       = "execution.checkpointing."
		backend = "state.backend.type"
	)
	const local = p + "local-backup."
	set(&to.Local.Backup, c.Boolean, "state.backend.local-recovery")
	set(&to.Local.Read, c.Boolean, "state.backend.local-recovery")
	set(&to.Local.Backup, c.Boolean, local+"enabled")
	set(&to.Local.Read, c.Boolean, "execution.state-recovery.from-local")
	a.localDirs(local + "dirs")
	set(&to.MemoryLimit, c.Bytes, "state.memory-storage.limit")
	set(&to.Dir, c.Text, p+"dir")
	set(&to.SavepointDir, c.Text, p+"savepoint-dir")
	if name, ok := c.Text(backend); ok {
		a.s.BackendName = name
		switch strings.ToLower(name) {
		case "jobmanager", "memory":
			to.Storage = InMemory
		case "filesystem":
			to.Storage = InFiles
		}
		if note := backendNote(name); note != "" {
			a.warn(backend, "%s", note)
		}
	}
	switch storage, _ := c.Text(p + "storage"); storage {
	case "jobmanager":
		to.Storage = InMemory
	case "filesystem":
		to.Storage = InFiles
	}
	if to.Storage == InMemory && to.Dir != "" {
		a.warn(p+"dir", "ignored, as checkpoints are kept in the job manager's memory")
		to.Dir = ""
	}
	switch old, _ := c.Text("savepoints.state.backend"); {
	case old == "jobmanager" && to.SavepointDir != "":
		a.warn(p+"savepoint-dir", "ignored, as savepoints.state.backend has savepoints kept in the job manager's memory")
		to.SavepointDir = memorySavepoints
	case old == "jobmanager":
		to.SavepointDir = memorySavepoints
	case old == "filesystem": // the program may set it yet
		to.NoSavepointDir = a.c.Mistake("savepoints.state.backend", "savepoints are to lie in files, and no folder is set: set execution.checkpointing.savepoint-dir, or call SetSavepointStorage")
	}
}

// localDirs applies the folders of local copies. Flink has commas between them.
func (a *application) localDirs(key string) {
	dirs, ok := a.c.List(key)
	if !ok {
		return
	}
	to := &a.s.Checkpoints.Local.Dirs
	*to = nil
	for _, list := range dirs {
		for dir := range strings.SplitSeq(list, ",") {
			if dir = strings.TrimSpace(dir); dir != "" {
				*to = append(*to, dir)
			}
		}
	}
}

// recovery applies what the job goes on from.
func (a *application) recovery() {
	c, to := a.c, &a.s.Checkpoints
	const p = "execution.state-recovery."
	set(&to.Savepoint, c.Text, p+"path")
	set(&to.Recovery, c.Text, "execution.recovery.dir")
	set(&to.AllowNonRestored, c.Boolean, p+"ignore-unclaimed-state")
	if mode, ok := c.Text(p + "claim-mode"); ok {
		to.Claim = mode == "CLAIM"
	}
}

func (a *application) exponentialDelay() {
	c := a.c
	const p = "restart-strategy.exponential-delay."
	d := control.DefaultExponentialDelay()
	set(&d.Initial, c.Duration, p+"initial-backoff")
	set(&d.Max, c.Duration, p+"max-backoff")
	set(&d.Reset, c.Duration, p+"reset-backoff-threshold")
	set(&d.Factor, c.Number, p+"backoff-multiplier")
	set(&d.Jitter, c.Number, p+"jitter-factor")
	if d.Jitter > 1 {
		a.mistake(p+"jitter-factor", "%v is more than 1", d.Jitter)
	}
	if d.Initial > d.Max {
		a.mistakes = append(a.mistakes, fmt.Errorf("%sinitial-backoff: %v is more than %smax-backoff, %v", p, d.Initial, p, d.Max))
	}
	if text, ok := c.Text(p + "attempts-before-reset-backoff"); ok && text != "infinite" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			a.mistake(p+"attempts-before-reset-backoff", "%q is neither a whole number of 1 or more nor infinite", text)
		}
		d.Attempts = n
	}
	a.s.Restart = Backoff(d)
}
