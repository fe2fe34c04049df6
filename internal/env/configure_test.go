package env

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/config"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/statebackend/heap"
)

// configured is an environment with keys.
func configured(t *testing.T, keys map[string]string, options ...func(*Settings)) *Env {
	t.Helper()
	e := New()
	e.Setup(func(s *Settings) {
		s.Configuration.Keys = append(s.Configuration.Keys, keys)
		for _, o := range options {
			o(s)
		}
	})
	return e
}

// settingOf gives, for a key, a value that is not the default and where it must arrive.
type settingOf struct {
	value string
	read  func(*Settings) any
	want  any
}

func settingsByKey() map[string]settingOf {
	c := func(f func(*Checkpoints) any) func(*Settings) any {
		return func(s *Settings) any { return f(&s.Checkpoints) }
	}
	restart := func(s *Settings) any { return s.Restart() }
	return map[string]settingOf{
		"parallelism.default":                {"3", func(s *Settings) any { return s.Parallelism }, 3},
		"pipeline.name":                      {"n", func(s *Settings) any { return s.JobName }, "n"},
		"pipeline.max-parallelism":           {"256", func(s *Settings) any { return s.MaxParallelism }, 256},
		"pipeline.auto-watermark-interval":   {"1 s", func(s *Settings) any { return s.AutoWatermark }, time.Second},
		"pipeline.operator-chaining.enabled": {"false", func(s *Settings) any { return s.Chaining }, false},
		"pipeline.auto-generate-uids":        {"false", func(s *Settings) any { return s.RequireUIDs }, true},
		"pipeline.global-job-parameters":     {"a:1", func(s *Settings) any { return s.Parameters }, map[string]string{"a": "1"}},
		"pipeline.cached-files":              {"'name:w,path:/w.txt'", func(s *Settings) any { return s.Files }, map[string]string{"w": "/w.txt"}},
		"execution.buffer-timeout.enabled":   {"false", func(s *Settings) any { return s.BufferTimeout }, time.Duration(-1)},
		"execution.buffer-timeout.interval":  {"5 ms", func(s *Settings) any { return s.BufferTimeout }, 5 * time.Millisecond},
		"execution.runtime-mode":             {"AUTOMATIC", func(*Settings) any { return nil }, nil},

		"execution.checkpointing.interval":                          {"2 s", c(func(c *Checkpoints) any { return [2]any{c.Interval, c.Enabled} }), [2]any{2 * time.Second, true}},
		"execution.checkpointing.mode":                              {"at_least_once", c(func(c *Checkpoints) any { return c.Mode }), AtLeastOnce},
		"execution.checkpointing.timeout":                           {"1 min", c(func(c *Checkpoints) any { return c.Timeout }), time.Minute},
		"execution.checkpointing.min-pause":                         {"3 s", c(func(c *Checkpoints) any { return c.MinPause }), 3 * time.Second},
		"execution.checkpointing.max-concurrent-checkpoints":        {"2", c(func(c *Checkpoints) any { return c.MaxConcurrent }), 2},
		"execution.checkpointing.tolerable-failed-checkpoints":      {"4", c(func(c *Checkpoints) any { return c.TolerableFailures }), 4},
		"execution.checkpointing.externalized-checkpoint-retention": {"DELETE_ON_CANCELLATION", c(func(c *Checkpoints) any { return c.Retention }), RetainOnFailure},
		"execution.checkpointing.incremental":                       {"true", c(func(c *Checkpoints) any { return c.Incremental }), true},
		"execution.checkpointing.unaligned.enabled":                 {"true", c(func(c *Checkpoints) any { return c.Unaligned }), true},
		"execution.checkpointing.aligned-checkpoint-timeout":        {"7 s", c(func(c *Checkpoints) any { return c.AlignedTimeout }), 7 * time.Second},
		"execution.checkpointing.num-retained":                      {"5", c(func(c *Checkpoints) any { return c.Retained }), 5},
		"execution.checkpointing.checkpoints-after-tasks-finish":    {"false", c(func(c *Checkpoints) any { return c.AfterTasksFinish }), false},
		"execution.checkpointing.prefer-checkpoint-for-recovery":    {"true", c(func(c *Checkpoints) any { return c.PreferCheckpoint }), true},
		"execution.checkpointing.data-inline-threshold":             {"1 kb", c(func(c *Checkpoints) any { return c.InlineBytes }), 1024},
		"web.checkpoints.history":                                   {"20", c(func(c *Checkpoints) any { return c.History }), 20},

		"state.backend.type":                              {"rocksdb", func(s *Settings) any { return s.BackendName }, "rocksdb"},
		"execution.checkpointing.storage":                 {"filesystem", c(func(c *Checkpoints) any { return c.Storage }), InFiles},
		"execution.checkpointing.dir":                     {"s3://b/c", c(func(c *Checkpoints) any { return c.Dir }), "s3://b/c"},
		"execution.checkpointing.savepoint-dir":           {"file:/sp", c(func(c *Checkpoints) any { return c.SavepointDir }), "file:/sp"},
		"savepoints.state.backend":                        {"jobmanager", c(func(c *Checkpoints) any { return c.SavepointDir }), "jobmanager://savepoints"},
		"state.memory-storage.limit":                      {"1 mb", c(func(c *Checkpoints) any { return c.MemoryLimit }), int64(1 << 20)},
		"execution.recovery.dir":                          {"/r", c(func(c *Checkpoints) any { return c.Recovery }), "/r"},
		"execution.checkpointing.local-backup.enabled":    {"true", c(func(c *Checkpoints) any { return c.Local.Backup }), true},
		"execution.checkpointing.local-backup.dirs":       {"/a;/b", c(func(c *Checkpoints) any { return len(c.Local.Dirs) }), 2},
		"execution.state-recovery.from-local":             {"true", c(func(c *Checkpoints) any { return c.Local.Read }), true},
		"state.backend.local-recovery":                    {"true", c(func(c *Checkpoints) any { return c.Local.Backup && c.Local.Read }), true},
		"execution.state-recovery.path":                   {"/sp/1", c(func(c *Checkpoints) any { return c.Savepoint }), "/sp/1"},
		"execution.state-recovery.ignore-unclaimed-state": {"true", c(func(c *Checkpoints) any { return c.AllowNonRestored }), true},
		"execution.state-recovery.claim-mode":             {"CLAIM", c(func(c *Checkpoints) any { return c.Claim }), true},

		"restart-strategy.type":                                   {"off", restart, control.NoRestart{}},
		"restart-strategy.fixed-delay.attempts":                   {"3", restart, &control.FixedDelay{Attempts: 3, Delay: time.Second}},
		"restart-strategy.fixed-delay.delay":                      {"2 s", restart, &control.FixedDelay{Attempts: 1, Delay: 2 * time.Second}},
		"restart-strategy.failure-rate.max-failures-per-interval": {"3", restart, &control.FailureRate{Max: 3, Interval: time.Minute, Delay: time.Second}},
		"restart-strategy.failure-rate.failure-rate-interval":     {"5 min", restart, &control.FailureRate{Max: 1, Interval: 5 * time.Minute, Delay: time.Second}},
		"restart-strategy.failure-rate.delay":                     {"2 s", restart, &control.FailureRate{Max: 1, Interval: time.Minute, Delay: 2 * time.Second}},
		"jobmanager.execution.failover-strategy":                  {"full", func(s *Settings) any { return s.FullRestart }, true},

		"memory":                          {"4GiB", func(s *Settings) any { return s.Memory }, int64(4 << 30)},
		"taskmanager.memory.process.size": {"1000", func(s *Settings) any { return s.Memory }, int64(600)},
		"metrics.latency.interval":        {"2 s", func(s *Settings) any { return s.Latency }, 2 * time.Second},
		"metrics.latency.granularity":     {"subtask", func(s *Settings) any { return s.LatencyGranularity }, LatencyPerSubtask},
		"rest.port":                       {"8090", func(s *Settings) any { return [2]any{s.REST.Host, s.REST.Ports} }, [2]any{"127.0.0.1", []int{8090}}},
		"rest.bind-port":                  {"8090,8091", func(s *Settings) any { return s.REST.Ports }, []int{8090, 8091}},
		"rest.bind-address":               {"0.0.0.0", func(s *Settings) any { return s.REST.Host }, "0.0.0.0"},
		"execution.check":                 {"true", func(s *Settings) any { return s.Check }, true},
	}
}

// besides are keys without which a key has no effect.
func besides(key string) map[string]string {
	m := map[string]string{}
	for _, kind := range []string{"fixed-delay", "failure-rate", "exponential-delay"} {
		if strings.HasPrefix(key, "restart-strategy."+kind+".") {
			m["restart-strategy"] = kind
		}
	}
	if key == "rest.bind-address" {
		m["rest.port"] = "8081"
	}
	return m
}

func TestEveryKeyOfTheTableArrives(t *testing.T) {
	by := settingsByKey()
	for _, o := range config.Options() {
		if strings.HasPrefix(o.Key, "restart-strategy.exponential-delay.") {
			continue // its own test below
		}
		want, ok := by[o.Key]
		if !ok {
			t.Errorf("%s is in the table, and no test says what it does", o.Key)
			continue
		}
		delete(by, o.Key)
		for _, name := range append([]string{o.Key}, o.Older...) {
			keys := besides(o.Key)
			keys[name] = want.value
			e := configured(t, keys)
			if e.misconfigured != nil {
				t.Errorf("%s: %v", name, e.misconfigured)
			}
			if got := want.read(&e.Settings); !reflect.DeepEqual(got, want.want) {
				t.Errorf("%s: %s gives %v, want %v", name, want.value, got, want.want)
			}
		}
	}
	for key := range by {
		t.Errorf("%s is not in the table", key)
	}
}

func TestFoldersOfLocalCopiesMayHaveCommasBetween(t *testing.T) {
	for _, value := range []string{"/a;/b", "/a,/b", " /a , /b,"} {
		e := configured(t, map[string]string{"taskmanager.state.local.root-dirs": value})
		if got := e.Settings.Checkpoints.Local.Dirs; !slices.Equal(got, []string{"/a", "/b"}) {
			t.Errorf("%q: folders %q", value, got)
		}
	}
}

// Keys of a restart strategy that is not chosen do nothing, which is told.
func TestKeysOfOtherRestartStrategiesAreTold(t *testing.T) {
	const key = "restart-strategy.fixed-delay.attempts"
	for kind, told := range map[string]bool{"": true, "failure-rate": true, "exponential-delay": true, "off": true, "fixed-delay": false} {
		keys := map[string]string{key: "3"}
		if kind != "" {
			keys["restart-strategy"] = kind
		}
		w := configured(t, keys).Warnings()
		if told != (len(w) == 1) || told && !strings.Contains(w[0], key+": ignored, as restart-strategy.type is not fixed-delay") {
			t.Errorf("%q: warnings %q", kind, w)
		}
	}
}

func TestExponentialDelayIsSetByItsKeys(t *testing.T) {
	const p = "restart-strategy.exponential-delay."
	restart := func(keys map[string]string) *control.ExponentialDelay {
		t.Helper()
		keys["restart-strategy"] = "exponential-delay"
		e := configured(t, keys)
		d, ok := e.Settings.Restart().(*control.ExponentialDelay)
		if e.misconfigured != nil || !ok {
			t.Fatalf("%v: %v", keys, e.misconfigured)
		}
		d.Random = nil
		return d
	}
	got := restart(map[string]string{
		p + "initial-backoff": "2 s", p + "max-backoff": "3 s", p + "backoff-multiplier": "2.5", p + "reset-backoff-threshold": "4 s",
		p + "jitter-factor": "0.5", p + "attempts-before-reset-backoff": "7",
	})
	want := &control.ExponentialDelay{Initial: 2 * time.Second, Max: 3 * time.Second, Reset: 4 * time.Second, Factor: 2.5, Jitter: 0.5, Attempts: 7}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	want = &control.ExponentialDelay{Initial: time.Second, Max: time.Minute, Reset: time.Hour, Factor: 1.5, Jitter: 0.1}
	if got := restart(map[string]string{p + "attempts-before-reset-backoff": "infinite"}); !reflect.DeepEqual(got, want) {
		t.Errorf("by default %+v", got)
	}
	for key, value := range map[string]string{"jitter-factor": "1.1", "attempts-before-reset-backoff": "0", "initial-backoff": "2 h"} {
		e := configured(t, map[string]string{"restart-strategy": "exponential-delay", p + key: value})
		if e.misconfigured == nil || !strings.Contains(e.misconfigured.Error(), p+key) {
			t.Errorf("%s: %s: %v", key, value, e.misconfigured)
		}
	}
}

// The first versions switched the dashboard off by a port of -1.
func TestThePortMinusOneServesNothing(t *testing.T) {
	for _, key := range []string{"rest.bind-port", "jobmanager.web.port"} {
		e := New()
		e.Setup(func(s *Settings) { s.Configuration.Keys = []map[string]string{{key: "-1"}} })
		if e.misconfigured != nil || e.Settings.REST.Enabled {
			t.Errorf("%s: %v, %+v", key, e.misconfigured, e.Settings.REST)
		}
	}
}

func TestCodeWinsOverKeysOverLauncherOverFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("flink-conf.yaml", "parallelism.default: 1\npipeline.max-parallelism: 1000\nexecution.buffer-timeout: 1\nmemory: 1 gb\n")
	t.Setenv(LaunchVariable, `{"pipeline.max-parallelism": 1001, "execution.buffer-timeout": "2 ms", "memory": "2 gb", "execution.check": true}`)
	e := New()
	e.Setup(func(s *Settings) {
		s.Configuration.Files = append(s.Configuration.Files, dir)
		s.Configuration.Keys = append(s.Configuration.Keys, map[string]string{"execution.buffer-timeout": "3 ms", "memory": "3 gb"})
		s.Memory = 4 << 30
		s.Serde = append(s.Serde, serde.Option(nil)) // once, though options are called twice
	})
	s := &e.Settings
	if e.misconfigured != nil || s.Parallelism != 1 || s.MaxParallelism != 1001 || s.BufferTimeout != 3*time.Millisecond || s.Memory != 4<<30 || !s.Check || len(s.Serde) != 1 {
		t.Errorf("settings %+v, %v", s, e.misconfigured)
	}
	write("config.yaml", "parallelism.default: 2\n")
	e = New()
	e.Setup(func(s *Settings) { s.Configuration.Files = []string{dir} })
	if e.Settings.Parallelism != 2 {
		t.Error("config.yaml does not come before flink-conf.yaml")
	}
}

func TestTheLauncherKnowsWhereToGoOn(t *testing.T) {
	t.Setenv(LaunchVariable, `{"execution.savepoint.path": "/launched", "rest.port": "9000", "parallelism.default": "7"}`)
	e := New()
	e.Setup(func(s *Settings) {
		s.Checkpoints.Savepoint, s.Parallelism = "/in code", 2
		s.REST.ListenAt("127.0.0.1:1")
	})
	if s := &e.Settings; s.Checkpoints.Savepoint != "/launched" || !slices.Equal(s.REST.Ports, []int{9000}) || s.Parallelism != 2 {
		t.Errorf("savepoint %s, REST %v, parallelism %d", s.Checkpoints.Savepoint, s.REST, s.Parallelism)
	}
}

func TestMistakesInConfigurationAreThoseOfEveryJob(t *testing.T) {
	for name, c := range map[string]struct {
		keys     map[string]string
		launched string
		file     string
		want     []string
	}{
		"values": {keys: map[string]string{"execution.checkpointing.interval": "x", "pipeline.max-parallelism": "40000", "execution.runtime-mode": "batch", "pipeline.cached-files": "name:x", "execution.checkpointing.data-inline-threshold": "2 mb"}, want: []string{
			`WithConfiguration: execution.checkpointing.interval: "x" is no duration`, "32768", "no batch mode", "is no cached file", "more than 1 mb",
		}},
		"no JSON": {launched: "x", want: []string{LaunchVariable, "JSON"}},
		"no text": {launched: `{"a": []}`, want: []string{`the value of "a"`}},
		"no file": {file: "/nowhere/config.yaml", want: []string{"read configuration", "/nowhere/config.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(LaunchVariable, c.launched)
			e := New()
			e.Setup(func(s *Settings) {
				if c.file != "" {
					s.Configuration.Files = []string{c.file}
				}
				s.Configuration.Keys = []map[string]string{c.keys}
			})
			for range 2 {
				_, err := e.Start(t.Context(), "job")
				for _, want := range c.want {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("error %v, want %q", err, want)
					}
				}
			}
		})
	}
}

func TestOldStateBackendsSayWhereSnapshotsLie(t *testing.T) {
	dir := map[string]string{"state.backend.fs.checkpointdir": "/cp"}
	for _, c := range []struct {
		backend, storage string
		dir              bool
		memory           bool
		warning          string
		err              string
	}{
		{backend: "jobmanager", memory: true},
		{backend: "memory", dir: true, memory: true, warning: "state.backend.fs.checkpointdir: ignored"},
		{backend: "filesystem", dir: true},
		{backend: "filesystem", err: "no folder is set"},
		{backend: "hashmap", memory: true},
		{backend: "hashmap", dir: true},
		{backend: "rocksdb", dir: true, warning: `"rocksdb" means pebble`},
		{backend: "hashmap", storage: "jobmanager", dir: true, memory: true, warning: "ignored"},
		{backend: "jobmanager", storage: "filesystem", dir: true},
	} {
		keys := map[string]string{"state.backend": c.backend}
		if c.storage != "" {
			keys["state.checkpoint-storage"] = c.storage
		}
		if c.dir {
			for k, v := range dir {
				keys[k] = v
			}
		}
		e := configured(t, keys)
		to := &e.Settings.Checkpoints
		_, err := to.config()
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%v: error %v", keys, err)
		}
		if err == nil && to.inMemory() != c.memory {
			t.Errorf("%v: in memory: %v", keys, !c.memory)
		}
		if w := strings.Join(e.Warnings(), "\n"); !strings.Contains(w, c.warning) || c.warning == "" && w != "" {
			t.Errorf("%v: warnings %q", keys, w)
		}
	}
}

// named is a backend of somebody's own.
type named struct {
	heap.Backend
	name string
}

func (n named) Name() string { return n.name }

func TestStateBackendsAreFoundByName(t *testing.T) {
	own, lsm := named{name: "own"}, named{name: "pebble"}
	for _, c := range []struct {
		name   string
		linked []statebackend.Backend
		want   statebackend.Backend
		err    string
	}{
		{name: "", want: heap.Backend{}},
		{name: "", linked: []statebackend.Backend{own, lsm}, want: own},
		{name: "hashmap", linked: []statebackend.Backend{lsm}, want: heap.Backend{}},
		{name: "jobmanager", want: heap.Backend{}},
		{name: "filesystem", want: heap.Backend{}},
		{name: "pebble", linked: []statebackend.Backend{own, lsm}, want: lsm},
		{name: "RocksDB", linked: []statebackend.Backend{lsm}, want: lsm},
		{name: "forst", err: "stream.WithBackends(pebble.Backend{})"},
		{name: "own", linked: []statebackend.Backend{own}, want: own},
		{name: "other", linked: []statebackend.Backend{own}, err: "there is none of that name, but hashmap, own"},
		{name: "org.apache.flink.contrib.streaming.state.RocksDBStateBackendFactory", err: "set state.backend.type to its Name"},
	} {
		s := Settings{BackendName: c.name, Backends: c.linked}
		got, err := s.StateBackend()
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %v, %v", c.name, got, err)
		}
	}
}

func TestRecoveryFoldersComeBeforeConfiguredOnes(t *testing.T) {
	e := configured(t, map[string]string{"state.checkpoints.dir": "/cp"}, func(s *Settings) { s.Checkpoints.Recovery = "/mine" })
	if e.Settings.Checkpoints.Dir != "" || !strings.Contains(strings.Join(e.Warnings(), "\n"), "state.checkpoints.dir: ignored, as checkpoints lie in the recovery folder /mine") {
		t.Errorf("folder %q, warnings %q", e.Settings.Checkpoints.Dir, e.Warnings())
	}
}
