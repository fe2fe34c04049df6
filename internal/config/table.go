package config

import (
	"slices"
	"time"
)

// Options is the table of all keys that a job takes, in the order of the guide.
func Options() []Option {
	return slices.Concat(pipelineOptions(), checkpointOptions(), stateOptions(), restartOptions(), processOptions())
}

func pipelineOptions() []Option {
	return []Option{
		{Key: "parallelism.default", Older: []string{"parallelization.degree.default"}, Type: Integer, Least: 1, Meaning: "number of subtasks of operators that set none; default: the processors that Go uses"},
		{Key: "pipeline.name", Type: Text, Meaning: "name of a job that is executed without one"},
		{Key: "pipeline.max-parallelism", Type: Integer, Default: "-1", Least: -1, Meaning: "number of key groups; -1: computed from the parallelism, at least 128"},
		{Key: "pipeline.auto-watermark-interval", Type: Duration, Default: "200 ms", Meaning: "how often periodic watermark strategies are asked; 0: never"},
		{Key: "pipeline.operator-chaining.enabled", Older: []string{"pipeline.operator-chaining"}, Type: Boolean, Default: "true", Meaning: "operators that can be are chained"},
		{Key: "pipeline.auto-generate-uids", Type: Boolean, Default: "true", Meaning: "false: an operator without a UID is a mistake"},
		{Key: "pipeline.global-job-parameters", Type: Map, Meaning: "parameters that every operator can read"},
		{Key: "pipeline.cached-files", Type: List, Meaning: "files for all operators: name:n,path:p for each"},
		{Key: "execution.buffer-timeout.enabled", Type: Boolean, Default: "true", Meaning: "false: only full frames are sent"},
		{Key: "execution.buffer-timeout.interval", Older: []string{"execution.buffer-timeout"}, Type: Duration, Default: "100 ms", Least: -int64(time.Millisecond), Meaning: "0: each element is sent at once; -1: only full frames; else what waits is sent when the input runs dry"},
		{Key: "execution.runtime-mode", Type: Enum, Default: "STREAMING", Values: []string{"STREAMING", "BATCH", "AUTOMATIC"}, Meaning: "jobs are streaming ones; AUTOMATIC means it, too, BATCH is refused"},
	}
}

func checkpointOptions() []Option {
	const p = "execution.checkpointing."
	return []Option{
		{Key: p + "interval", Type: Duration, Meaning: "how often checkpoints are taken, 10 ms at least; none or 0: they are not"},
		{Key: p + "mode", Type: Enum, Default: "EXACTLY_ONCE", Values: []string{"EXACTLY_ONCE", "AT_LEAST_ONCE"}, Meaning: "what they promise"},
		{Key: p + "timeout", Type: Duration, Default: "10 min", Meaning: "they are given up after"},
		{Key: p + "min-pause", Type: Duration, Default: "0 ms", Meaning: "least time between the end of one and the start of the next"},
		{Key: p + "max-concurrent-checkpoints", Type: Integer, Default: "1", Least: 1, Meaning: "how many may be under way at a time"},
		{Key: p + "tolerable-failed-checkpoints", Type: Integer, Default: "0", Meaning: "how many may fail in a row; the next one fails the job"},
		{Key: p + "externalized-checkpoint-retention", Type: Enum, Default: "NO_EXTERNALIZED_CHECKPOINTS", Values: []string{"NO_EXTERNALIZED_CHECKPOINTS", "RETAIN_ON_CANCELLATION", "DELETE_ON_CANCELLATION"}, Meaning: "which checkpoints outlive their job: none; of failed and cancelled ones; of failed ones"},
		{Key: p + "incremental", Older: []string{"state.backend.incremental"}, Type: Boolean, Default: "false", Meaning: "they hold what has changed since earlier ones"},
		{Key: p + "unaligned.enabled", Older: []string{p + "unaligned"}, Type: Boolean, Default: "false", Meaning: "barriers overtake elements under way, which become part of the checkpoint"},
		{Key: p + "aligned-checkpoint-timeout", Older: []string{p + "alignment-timeout"}, Type: Duration, Default: "0 ms", Meaning: "unaligned ones begin aligned and change after this time"},
		{Key: p + "num-retained", Older: []string{"state.checkpoints.num-retained"}, Type: Integer, Default: "1", Least: 1, Meaning: "completed checkpoints that are kept"},
		{Key: p + "checkpoints-after-tasks-finish", Older: []string{p + "checkpoints-after-tasks-finish.enabled"}, Type: Boolean, Default: "true", Meaning: "they go on when some tasks have finished"},
		{Key: p + "prefer-checkpoint-for-recovery", Type: Boolean, Default: "false", Meaning: "a restart passes over savepoints that are newer than the last checkpoint"},
		{Key: p + "data-inline-threshold", Older: []string{"state.storage.fs.memory-threshold", "state.backend.fs.memory-threshold"}, Type: MemorySize, Default: "20 kb", Meaning: "smaller state goes into the manifest; 1 mb at most"},
		{Key: "web.checkpoints.history", Older: []string{"jobmanager.web.checkpoints.history"}, Type: Integer, Default: "10", Meaning: "how many checkpoints the statistics remember"},
	}
}

func stateOptions() []Option {
	const (
		p = "execution.checkpointing."
		r = "execution.state-recovery."
	)
	return []Option{
		{Key: "state.backend.type", Older: []string{"state.backend"}, Type: Text, Default: "hashmap", Meaning: "where state by key is kept: hashmap or heap, pebble (rocksdb and forst mean it, too), or another one that the program links by its name; of old: jobmanager or memory (heap, snapshots in memory), filesystem (heap, snapshots as files)"},
		{Key: p + "storage", Older: []string{"state.checkpoint-storage"}, Type: Enum, Values: []string{"jobmanager", "filesystem"}, Meaning: "where checkpoints lie: in the job manager's memory or in the folder; default: in the folder if there is one"},
		{Key: p + "dir", Older: []string{"state.checkpoints.dir", "state.backend.fs.checkpointdir"}, Type: Text, Meaning: "folder or URL of checkpoints; each job has a folder of its own in it"},
		{Key: p + "savepoint-dir", Older: []string{"state.savepoints.dir", "savepoints.state.backend.fs.dir"}, Type: Text, Meaning: "folder or URL of savepoints that are taken without one"},
		{Key: "savepoints.state.backend", Type: Enum, Values: []string{"jobmanager", "filesystem"}, Meaning: "of old: where savepoints lie that are taken without a folder: in the job manager's memory, lost with the process, or in the folder, which must be set"},
		{Key: "state.memory-storage.limit", Type: MemorySize, Default: "5 mb", Least: 1, Meaning: "most that one subtask of an operator may add to a snapshot in the job manager's memory (a key of Flott's own)"},
		{Key: p + "local-backup.enabled", Type: Boolean, Default: "false", Meaning: "files of checkpoints are written to a local disk as well"},
		{Key: p + "local-backup.dirs", Older: []string{"taskmanager.state.local.root-dirs"}, Type: List, Meaning: "folders on local disks for that"},
		{Key: r + "from-local", Type: Boolean, Default: "false", Meaning: "a restart reads local copies where they are whole"},
		{Key: "state.backend.local-recovery", Type: Boolean, Meaning: "of old: execution.checkpointing.local-backup.enabled and execution.state-recovery.from-local"},
		{Key: "execution.recovery.dir", Type: Text, Launcher: true, Meaning: "folder of a local disk in which checkpoints lie, and from which a program that was killed goes on when it is started again (a key of Flott's own)"},
		{Key: r + "path", Older: []string{"execution.savepoint.path"}, Type: Text, Launcher: true, Meaning: "savepoint or retained checkpoint to start from"},
		{Key: r + "ignore-unclaimed-state", Older: []string{"execution.savepoint.ignore-unclaimed-state"}, Type: Boolean, Default: "false", Launcher: true, Meaning: "state that the program has no operator for is dropped"},
		{Key: r + "claim-mode", Older: []string{"execution.savepoint-restore-mode"}, Type: Enum, Default: "NO_CLAIM", Values: []string{"NO_CLAIM", "CLAIM", "LEGACY"}, Launcher: true, Meaning: "CLAIM: the job removes what it has started from once it does not need it any more; NO_CLAIM and LEGACY: it never does"},
	}
}

func restartOptions() []Option {
	const (
		p           = "restart-strategy."
		fixed       = p + "fixed-delay."
		rate        = p + "failure-rate."
		exponential = p + "exponential-delay."
	)
	return []Option{
		{Key: p + "type", Older: []string{"restart-strategy"}, Type: Enum, Values: []string{"none", "off", "disable", "fixed-delay", "failure-rate", "exponential-delay"}, Meaning: "what follows a failure; default: exponential-delay with checkpoints, none without"},
		{Key: fixed + "attempts", Type: Integer, Default: "1", Meaning: "how often it is tried again"},
		{Key: fixed + "delay", Type: Duration, Default: "1 s", Meaning: "how long after each failure"},
		{Key: rate + "max-failures-per-interval", Type: Integer, Default: "1", Meaning: "most failures in the interval"},
		{Key: rate + "failure-rate-interval", Type: Duration, Default: "1 min", Meaning: "the interval"},
		{Key: rate + "delay", Type: Duration, Default: "1 s", Meaning: "how long after each failure"},
		{Key: exponential + "initial-backoff", Type: Duration, Default: "1 s", Least: int64(time.Millisecond), Meaning: "how long after the first failure"},
		{Key: exponential + "max-backoff", Type: Duration, Default: "1 min", Least: int64(time.Millisecond), Meaning: "how long at most"},
		{Key: exponential + "backoff-multiplier", Type: Number, Default: "1.5", Least: 1, Meaning: "how much longer after each further one"},
		{Key: exponential + "jitter-factor", Type: Number, Default: "0.1", Meaning: "share, 1 at most, by which pauses vary at random"},
		{Key: exponential + "attempts-before-reset-backoff", Type: Text, Default: "infinite", Meaning: "restarts that may follow one on the other; the failure after them ends the job"},
		{Key: exponential + "reset-backoff-threshold", Type: Duration, Default: "1 h", Least: int64(time.Millisecond), Meaning: "time without a failure that starts over"},
		{Key: "jobmanager.execution.failover-strategy", Type: Enum, Default: "region", Values: []string{"region", "full"}, Meaning: "which tasks are restarted: those connected with the one that failed, or all"},
	}
}

func processOptions() []Option {
	return []Option{
		{Key: "memory", Type: MemorySize, Least: 1, Meaning: "budget of state and elements under way (a key of Flott's own); default: 60 % of what the process may use"},
		{Key: "taskmanager.memory.process.size", Older: []string{"taskmanager.memory.flink.size"}, Type: MemorySize, Least: 1, Meaning: "memory of the process, 60 % of which are the budget if memory does not set it"},
		{Key: "metrics.latency.interval", Type: Duration, Default: "0 ms", Meaning: "time between two latency markers of a source; 0: none"},
		{Key: "metrics.latency.granularity", Type: Enum, Default: "operator", Values: []string{"single", "operator", "subtask"}, Meaning: "which latencies are measured apart"},
		{Key: "rest.port", Type: Integer, Launcher: true, Meaning: "the job serves REST at this port; 0: any that is free"},
		{Key: "rest.bind-port", Older: []string{"web.port", "jobmanager.web.port"}, Type: Text, Launcher: true, Meaning: "the same; a range (8081-8090) or list of ports takes the first that is free; -1: it serves none"},
		{Key: "rest.bind-address", Older: []string{"web.address", "jobmanager.web.address"}, Type: Text, Default: "127.0.0.1", Launcher: true, Meaning: "address of the machine at which REST is served, if a port is set"},
		{Key: "execution.check", Type: Boolean, Default: "false", Launcher: true, Meaning: "dry run: Execute says whether the job could start, and ends the process (a key of Flott's own)"},
	}
}
