package env

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flott-dev/flott/internal/config"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/graph"
)

// effective is the configuration that a job starts with, by the newest names of keys: what the program sets in code wins over
// what was configured, and defaults are there as well. A job that is configured with it runs alike, but for what only a
// program can set, and for secrets among its parameters, which are masked.
func (e *Env) effective() map[string]string {
	s := &e.Settings
	all := map[string]string{
		"parallelism.default":                    strconv.Itoa(s.Parallelism),
		"pipeline.auto-watermark-interval":       durationText(s.AutoWatermark),
		"pipeline.operator-chaining.enabled":     strconv.FormatBool(s.Chaining),
		"pipeline.auto-generate-uids":            strconv.FormatBool(!s.RequireUIDs),
		"execution.buffer-timeout.enabled":       strconv.FormatBool(s.BufferTimeout >= 0),
		"jobmanager.execution.failover-strategy": map[bool]string{true: "full", false: "region"}[s.FullRestart],
		"metrics.latency.interval":               durationText(s.Latency),
		"metrics.latency.granularity":            [...]string{LatencySingle: "single", LatencyPerOperator: "operator", LatencyPerSubtask: "subtask"}[s.LatencyGranularity],
	}
	if s.BufferTimeout >= 0 {
		all["execution.buffer-timeout.interval"] = durationText(s.BufferTimeout)
	}
	if s.MaxParallelism != graph.Unset {
		all["pipeline.max-parallelism"] = strconv.Itoa(s.MaxParallelism)
	}
	if limit := e.memory().Limit(); limit > 0 {
		all["memory"] = strconv.FormatInt(limit, 10) + "b"
	}
	if backend, err := e.backend(); err == nil {
		all["state.backend.type"] = backend.Name()
	}
	for key, value := range map[string]string{
		"pipeline.name": s.JobName, "pipeline.global-job-parameters": mapText(s.Parameters), "pipeline.cached-files": filesText(s.Files),
	} {
		if value != "" {
			all[key] = value
		}
	}
	maps.Copy(all, s.Checkpoints.effective())
	maps.Copy(all, restartKeys(e.restart().Strategy))
	maps.Copy(all, s.REST.effective())
	return all
}

// effective is the part of the configuration that says how snapshots are taken and where they lie.
func (c *Checkpoints) effective() map[string]string {
	const p = "execution.checkpointing."
	all := map[string]string{
		p + "mode":                              [...]string{ExactlyOnce: "EXACTLY_ONCE", AtLeastOnce: "AT_LEAST_ONCE"}[c.Mode],
		p + "timeout":                           durationText(c.Timeout),
		p + "min-pause":                         durationText(c.MinPause),
		p + "max-concurrent-checkpoints":        strconv.Itoa(c.MaxConcurrent),
		p + "tolerable-failed-checkpoints":      strconv.Itoa(c.TolerableFailures),
		p + "externalized-checkpoint-retention": [...]string{NeverRetained: "NO_EXTERNALIZED_CHECKPOINTS", RetainOnFailure: "DELETE_ON_CANCELLATION", RetainOnCancellation: "RETAIN_ON_CANCELLATION"}[c.Retention],
		p + "incremental":                       strconv.FormatBool(c.Incremental),
		p + "unaligned.enabled":                 strconv.FormatBool(c.Unaligned),
		p + "aligned-checkpoint-timeout":        durationText(c.AlignedTimeout),
		p + "num-retained":                      strconv.Itoa(c.Retained),
		p + "checkpoints-after-tasks-finish":    strconv.FormatBool(c.AfterTasksFinish),
		p + "prefer-checkpoint-for-recovery":    strconv.FormatBool(c.PreferCheckpoint),
		p + "local-backup.enabled":              strconv.FormatBool(c.Local.Backup),
		p + "storage":                           "filesystem",
		"execution.state-recovery.from-local":   strconv.FormatBool(c.Local.Read),
		"web.checkpoints.history":               strconv.Itoa(c.History),
		"state.memory-storage.limit":            strconv.FormatInt(c.MemoryLimit, 10) + "b",
	}
	if c.Enabled {
		all[p+"interval"] = durationText(c.Interval)
	}
	if c.inMemory() {
		all[p+"storage"] = "jobmanager"
	}
	if c.InlineBytes != 0 {
		all[p+"data-inline-threshold"] = strconv.Itoa(max(0, c.InlineBytes)) + "b"
	}
	for key, value := range map[string]string{
		p + "dir": c.Dir, p + "savepoint-dir": c.SavepointDir, p + "local-backup.dirs": strings.Join(c.Local.Dirs, ";"),
		"execution.recovery.dir": c.Recovery, "execution.state-recovery.path": c.Savepoint,
	} {
		if value != "" {
			all[key] = value
		}
	}
	if c.Savepoint != "" {
		all["execution.state-recovery.ignore-unclaimed-state"] = strconv.FormatBool(c.AllowNonRestored)
		all["execution.state-recovery.claim-mode"] = map[bool]string{true: "CLAIM", false: "NO_CLAIM"}[c.Claim]
	}
	return all
}

// restartKeys are the keys that give a restart strategy.
func restartKeys(r control.Restart) map[string]string {
	const p = "restart-strategy."
	switch r := r.(type) {
	case control.NoRestart:
		return map[string]string{p + "type": "disable"}
	case *control.FixedDelay:
		return map[string]string{p + "type": "fixed-delay", p + "fixed-delay.attempts": strconv.Itoa(r.Attempts), p + "fixed-delay.delay": durationText(r.Delay)}
	case *control.FailureRate:
		const q = p + "failure-rate."
		return map[string]string{
			p + "type": "failure-rate", q + "max-failures-per-interval": strconv.Itoa(r.Max), q + "failure-rate-interval": durationText(r.Interval), q + "delay": durationText(r.Delay),
		}
	case *control.ExponentialDelay:
		const q = p + "exponential-delay."
		attempts := "infinite"
		if r.Attempts > 0 {
			attempts = strconv.Itoa(r.Attempts)
		}
		return map[string]string{
			p + "type": "exponential-delay", q + "initial-backoff": durationText(r.Initial), q + "max-backoff": durationText(r.Max),
			q + "reset-backoff-threshold": durationText(r.Reset), q + "backoff-multiplier": fmt.Sprint(r.Factor), q + "jitter-factor": fmt.Sprint(r.Jitter),
			q + "attempts-before-reset-backoff": attempts,
		}
	}
	return nil
}

// effective is where REST is served.
func (r *REST) effective() map[string]string {
	if !r.Enabled {
		return nil
	}
	ports := make([]string, len(r.Ports))
	for i, p := range r.Ports {
		ports[i] = strconv.Itoa(p)
	}
	all := map[string]string{"rest.bind-port": strings.Join(ports, ",")}
	if host := r.Host; host != "" && net.ParseIP(host) != nil {
		all["rest.bind-address"] = host
	}
	return all
}

// durationText is a duration as configuration has it: in ms.
func durationText(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) + " ms" }

// mapText is a map as configuration has it, without secrets.
func mapText(m map[string]string) string {
	var entries []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		value := m[key]
		if config.Secret(key) {
			value = "******"
		}
		entries = append(entries, quoted(quoted(key)+":"+quoted(value)))
	}
	return strings.Join(entries, ",")
}

// filesText are cached files as configuration has them.
func filesText(files map[string]string) string {
	var items []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		items = append(items, quoted("name:"+quoted(name)+",path:"+quoted(files[name])))
	}
	return strings.Join(items, ";")
}

// quoted is a piece of a list or map.
func quoted(text string) string {
	if !strings.ContainsAny(text, `;,:'" `) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}
