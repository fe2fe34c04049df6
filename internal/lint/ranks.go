package lint

import "strings"

// Rank is one line of the floor map: packages that match Pattern stand here, above all lines before.
type Rank struct {
	Pattern string // a folder, or folder/* for everything below it
	Floor   string // F0 ... F8 as in ARCHITECTURE.md; "side" for what hangs beside F1; "law" for this package
	Why     string // what the place means for those who want to import it
}

// Ranks is the floor map from low to high. A package imports only packages of lines before its own: never upward, never
// sideways. Where packages of one floor need each other, the order of their lines decides, and Why says why.
func Ranks() []Rank {
	return []Rank{
		{"internal/invariants", "F0", "assertions that a build tag turns on; lowest, so that everyone may assert"},
		{"internal/clock", "F0", "the injected time"},
		{"internal/vfs", "F0", "the injected file system"},
		{"internal/host", "F0", "the one point where a subtask waits; above clock, as deadlines are read from it"},
		{"internal/keygroup", "F0", "hash to key group to subtask, as Flink computes it"},
		{"internal/murmur", "F0", "the hash of UIDs, as Flink computes it"},

		{"internal/config", "F1", "keys, files and values of configuration: pure, it needs nothing of ours"},
		{"serde", "F1", "type handles and codecs: the lowest contract, since everything that moves has a type"},
		{"serde/*", "F1", "codecs that need more than serde itself"},
		{"row", "F1", "a dynamic row is a type with a handle"},
		{"internal/frame", "F1", "what travels; below the contracts because timestamps and ownership are theirs too"},
		{"watermark", "F1", "strategies see elements and their times"},
		{"agg", "F1", "aggregate functions: accumulators have type handles"},
		{"statebackend", "F1", "the contract of a table: rows and slots, no types"},
		{"statebackend/internal/modeltest", "F1", "what tables should hold, by which the suite and the backends' own tests go"},
		{"statebackend/backendtest", "F1", "the suite that every backend passes; below the backends, whose tests run it"},
		{"statebackend/*", "side", "the backends: F0 and F1 only, never the engine"},
		{"state", "F1", "the handles that user code holds, opened on a backend's tables"},
		{"process", "F1", "processors see state, timers and outputs"},
		{"connector", "F1", "the source and sink contracts"},
		{"connector/file", "side", "how files are found, cut and read; the formats stand on it"},
		{"connector/*", "side", "the connectors: F0 and F1 only, never the engine"},
		{"checkpoint", "F1", "the snapshot container"},
		{"storage/storagetest", "F1", "the suite that every storage passes; below the storages, whose tests run it"},
		{"storage/blob", "side", "object stores as file systems; those of one service stand on it"},
		{"storage/*", "side", "where snapshots lie: F0 and F1 only, never the engine"},
		{"window", "F1", "assigners, triggers, evictors; above state, which triggers use"},

		{"internal/operator", "F2", "the operator contract"},
		{"internal/operator/operatortest", "F2", "the kit of the drivers' tests; no source file imports it"},
		{"internal/operator/timers", "F2", "the timer service that keyed drivers own"},
		{"internal/operator/valve", "F2", "the pure watermark valve: the task and drivers with several inputs own one"},
		{"internal/operator/keyed", "F2", "drivers of keyed streams, whose keyer two-input drivers use as well"},
		{"internal/operator/co", "F2", "drivers with two inputs"},
		{"internal/operator/broadcast", "F2", "broadcast state: drivers with two inputs, one of them broadcast"},
		{"internal/operator/windows", "F2", "what the drivers of windowed operators share: kernels and what they are told"},
		{"internal/operator/interval", "F2", "interval joins: a driver with two inputs, keyed alike"},
		{"internal/operator/windowing", "F2", "the general driver of windows, for one or two inputs"},
		{"internal/operator/slices", "F2", "windows on a grid, kept in slices"},
		{"internal/operator/sessions", "F2", "session windows with one accumulator each"},
		{"internal/operator/*", "F2", "typed drivers, each alone: none imports another"},
		{"internal/graph", "F2", "the logical graph: nodes hold constructors of operators"},

		{"internal/plan", "F3", "logical graph to job graph to execution graph"},

		{"internal/exchange", "F4", "how frames travel between subtasks"},
		{"internal/control", "F4", "pure step machines: checkpoints, scheduling, failover"},
		{"internal/task", "F4", "the mailbox loop of a subtask; drives exchange, is told by control"},

		{"internal/taskmanager", "F5", "runs tasks"},
		{"internal/jobmanager", "F5", "runs jobs on task managers"},
		{"internal/pyworker", "F5", "processes of Python functions"},
		{"internal/rpc", "F5", "managers across sockets"},
		{"internal/rest", "F5", "Flink's REST paths over the job manager"},
		{"internal/webui", "F5", "the dashboard over REST"},

		{"internal/localcopy", "F5", "local copies of checkpoints: a file system over a storage"},

		{"internal/env", "F6", "the one joint: configuration, names to things, embedded runtime, Execute"},

		{"stream", "F7", "builds a graph, holds no engine logic"},
		{"dataset", "F7", "builds a graph, holds no engine logic; above stream, whose sources it shares"},
		{"gelly", "F7", "graph library on dataset"},
		{"storm", "F7", "Storm topologies on stream"},

		{"flotttest", "F8", "the users' test kit"},
		{"internal/bulktest", "F8", "what the tests of bulk formats try with jobs"},
		{"test/servers", "F8", "tests that run storages and whole jobs against real servers"},
		{"conformance", "F8", "runners of the vectors"},
		{"conformance/*", "F8", "runners of the vectors, one family each"},
		{"examples/*", "F8", "programs, each alone"},
		{"docs/guide/pictures", "F8", "draws the guide's pictures of windows by running assigners, jobs and valves on their data"},
		{"bench/*", "F8", "hand-written loops to compare with; they import nothing of ours"},
		{"bench", "F8", "the measuring program"},
		{"cmd/*", "F8", "binaries: they link everything"},
		{"python/*", "F8", "what the Python package needs on the Go side"},

		{"internal/lint", "law", "this law; nobody but its command imports it"},
		{"internal/lint/*", "law", "commands over the law's floor map"},
	}
}

// rank finds the line of a package. An exact line wins over a folder/* line, a longer folder over a shorter.
func (t *Tree) rank(pkg string) (index int, ok bool) {
	best := -1
	for i, r := range t.ranks {
		if r.Pattern == pkg {
			return i, true
		}
		dir, wild := strings.CutSuffix(r.Pattern, "/*")
		if !wild || !strings.HasPrefix(pkg, dir+"/") {
			continue
		}
		if best < 0 || len(r.Pattern) > len(t.ranks[best].Pattern) {
			best = i
		}
	}
	return best, best >= 0
}

// Floor is the floor on which a package stands, or "" if the map does not know it.
func (t *Tree) Floor(pkg string) string {
	i, ok := t.rank(pkg)
	if !ok {
		return ""
	}
	return t.ranks[i].Floor
}

// engine are the folders that a front door (F7) reaches only through internal/env.
func engine() []string {
	return []string{
		"internal/plan", "internal/exchange", "internal/control", "internal/task", "internal/taskmanager",
		"internal/jobmanager", "internal/pyworker", "internal/rpc", "internal/rest", "internal/webui",
	}
}
