package config

import (
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDurationsAreReadInAllTheirForms(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "10 s": 10 * time.Second, "500 ms": 500 * time.Millisecond, "100ms": 100 * time.Millisecond, "250": 250 * time.Millisecond,
		"-1": -time.Millisecond, "5 min": 5 * time.Minute, " 1 Hour ": time.Hour, "2 days": 48 * time.Hour, "7 µs": 7 * time.Microsecond,
		"3 nanos": 3, "1 h 30 min": 90 * time.Minute, "1m30s": 90 * time.Second, "1.5s": 1500 * time.Millisecond, "PT10S": 10 * time.Second,
		"P1DT2H": 26 * time.Hour, "P2D": 48 * time.Hour, "9223372036854775807 ns": math.MaxInt64,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "s", "10 parsecs", "ten s", "-1 s", "1..5 s", "P1H", "PT", "10 s 5", "300 years", "200000 d", "9223372036854775807", "9223372036854775807 ns 1 ns"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		} else if !strings.Contains(err.Error(), fmt.Sprintf("%q", text)) {
			t.Errorf("%q: the error does not name it: %v", text, err)
		}
	}
}

func TestMemorySizesArePowersOf1024(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "17": 17, "20 kb": 20 << 10, "64m": 64 << 20, "4GiB": 4 << 30, "1 g": 1 << 30, "2 tebibytes": 2 << 40, "10485760b": 10485760,
		"9223372036854775807": math.MaxInt64,
	} {
		if got, err := ParseMemorySize(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "kb", "-1", "1.5 gb", "3 pb", "8388608 tb", "9223372036854775808", "10 kb 3"} {
		if got, err := ParseMemorySize(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func TestListsAndMapsHaveQuotes(t *testing.T) {
	for text, want := range map[string][]string{
		"": {}, "a": {"a"}, "a; b ;c": {"a", "b", "c"}, "'a;b';\"c\"": {"a;b", "c"}, "'it''s'": {"it's"}, "a;;b": {"a", "b"},
	} {
		if got, err := ParseList(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]map[string]string{
		"": {}, "a:1": {"a": "1"}, "a:1, b:x:y": {"a": "1", "b": "x:y"}, "'a:1,2',b:'3'": {"a": "1,2", "b": "3"}, "a": nil, `"a:'x'",b:2`: {"a": "x", "b": "2"},
	} {
		got, err := ParseMap(text)
		if (err != nil) != (want == nil) || want != nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"'a", "'a'b;c", "\"a"} {
		if got, err := ParseList(text); err == nil {
			t.Errorf("%q is read as %q", text, got)
		}
	}
	items := []string{"a", "b;c", "it's", " x ", `"q"`}
	if got, err := ParseList(joinList(items)); err != nil || !slices.Equal(got, items) {
		t.Errorf("%q comes back as %q, %v", items, got, err)
	}
}

const nested = `
# Flink's own
execution:
  checkpointing:
    interval: 10 s
    num-retained: 3 # a comment
    tolerable-failed-checkpoints: "2"
  buffer-timeout.enabled: false
parallelism.default: 4
pipeline:
  global-job-parameters:
    who: me
    n: 7
  cached-files:
    - name:words,path:/w.txt
    - {name: more, path: "/m.txt"}
state.savepoints.dir: s3://bucket/sp
empty:
`

func resolve(t *testing.T, layers ...Layer) *Config {
	t.Helper()
	c, err := Resolve(layers...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func parse(t *testing.T, file, text string) Layer {
	t.Helper()
	l, err := Parse(file, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestNestedMapsAreKeysWithDots(t *testing.T) {
	c := resolve(t, parse(t, "conf/config.yaml", nested))
	if d, ok := c.Duration("execution.checkpointing.interval"); !ok || d != 10*time.Second {
		t.Error("interval", d, ok)
	}
	if n, ok := c.Integer("execution.checkpointing.num-retained"); !ok || n != 3 {
		t.Error("num-retained", n, ok)
	}
	if n, ok := c.Integer("execution.checkpointing.tolerable-failed-checkpoints"); !ok || n != 2 {
		t.Error("tolerable", n, ok)
	}
	if b, ok := c.Boolean("execution.buffer-timeout.enabled"); !ok || b {
		t.Error("buffer timeout", b, ok)
	}
	if m, ok := c.Map("pipeline.global-job-parameters"); !ok || !reflect.DeepEqual(m, map[string]string{"who": "me", "n": "7"}) {
		t.Error("parameters", m, ok)
	}
	if l, ok := c.List("pipeline.cached-files"); !ok || !slices.Equal(l, []string{"name:words,path:/w.txt", "name:more,path:/m.txt"}) {
		t.Error("files", l, ok)
	}
	if s, ok := c.Text("execution.checkpointing.savepoint-dir"); !ok || s != "s3://bucket/sp" {
		t.Error("savepoints", s, ok)
	}
	e, _ := c.Entry("execution.checkpointing.savepoint-dir")
	if e.Key != "state.savepoints.dir" || e.At.String() != "conf/config.yaml:17" {
		t.Error("entry", e)
	}
	if _, ok := c.Text("execution.checkpointing.dir"); ok || len(c.Warnings()) != 0 {
		t.Error("more than was written", c.Warnings())
	}
}

func TestOldFilesHaveLines(t *testing.T) {
	l := parse(t, "conf/flink-conf.yaml", "# all\njobmanager.rpc.address: localhost\nstate.backend.fs.checkpointdir: hdfs://nn:40010/flink # there\nstate.backend: jobmanager\nbad line\nkey:\nstate.backend: filesystem\nparallelism.default:2\n")
	c := resolve(t, l)
	if s, _ := c.Text("state.backend.type"); s != "filesystem" {
		t.Errorf("the later of two lines must count, not %q", s)
	}
	if s, _ := c.Text("execution.checkpointing.dir"); s != "hdfs://nn:40010/flink" {
		t.Error(s)
	}
	want := []string{
		`conf/flink-conf.yaml:5: skipped a line that is not "key: value"`,
		`conf/flink-conf.yaml:6: skipped a line that is not "key: value"`,
		`conf/flink-conf.yaml:8: skipped a line that is not "key: value"`,
		"conf/flink-conf.yaml:2: ignored, as it concerns a cluster, and the job runs in this process: jobmanager.rpc.address",
	}
	if !slices.Equal(c.Warnings(), want) {
		t.Errorf("warnings %q", c.Warnings())
	}
}

func TestMistakesNameFileLineKeyValueAndWhatIsAllowed(t *testing.T) {
	l := parse(t, "c.yaml", "execution.checkpointing:\n  interval: soon\n  mode: SOMETIMES\n  num-retained: 0\n  incremental: yes!\nparallelism.default: many\nrestart-strategy.exponential-delay.backoff-multiplier: 0.5\nstate.memory-storage.limit: big\npipeline.cached-files: \"'x\"\npipeline.global-job-parameters: x\nexecution.checkpointing.timeout: -5\nmemory: 0\n")
	_, err := Resolve(l)
	if err == nil {
		t.Fatal("no error")
	}
	want := []string{
		`c.yaml:11: execution.checkpointing.timeout: "-5" is less than 0 ms`,
		`c.yaml:12: memory: "0" is less than 1`,
		`c.yaml:5: execution.checkpointing.incremental: "yes!" is neither true nor false`,
		`c.yaml:2: execution.checkpointing.interval: "soon" is no duration: write a number and a unit (ms, s, min, h, d), as in 10 s; a number alone is milliseconds`,
		`c.yaml:3: execution.checkpointing.mode: "SOMETIMES" is none of EXACTLY_ONCE, AT_LEAST_ONCE`,
		`c.yaml:4: execution.checkpointing.num-retained: "0" is less than 1`,
		`c.yaml:6: parallelism.default: "many" is no whole number`,
		`c.yaml:9: pipeline.cached-files: "'x": the quote has no end`,
		`c.yaml:10: pipeline.global-job-parameters: "x" is no entry of a map: write key:value`,
		`c.yaml:7: restart-strategy.exponential-delay.backoff-multiplier: "0.5" is no number of 1 or more`,
		`c.yaml:8: state.memory-storage.limit: "big" is no size: write a whole number and a unit (b, kb, mb, gb, tb), as in 64 mb; a number alone is bytes`,
	}
	got := strings.Split(err.Error(), "\n")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("mistakes\n%s", strings.Join(got, "\n"))
	}
}

func TestFilesThatAreNoConfigurationAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"a: b: c":                     "read configuration c.yaml",
		"- a\n- b":                    "c.yaml:1: the file is no map",
		"a: 1\n---\nb: 2\n":           "more than one document",
		"a:\n  b: 1\na.b: 2\n":        "c.yaml:3: a.b is set a second time, after line 2",
		"a: [[1]]":                    "an item of a list",
		"? [x]\n: 1":                  "a key is a text",
		"state: &s\n  x: 1\n<<: *s\n": "a key is a text",
	} {
		if _, err := Parse("c.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
	if l, err := Parse("c.yaml", []byte("# nothing\n")); err != nil || len(l.Entries) != 0 {
		t.Error(l, err)
	}
}

func TestHigherLayersWin(t *testing.T) {
	low := Texts("file", map[string]string{"execution.checkpointing.interval": "1 s", "restart-strategy": "none", "pipeline.global-job-parameters.a": "1", "pipeline.global-job-parameters.b": "1"})
	high := Texts("-D", map[string]string{"execution.checkpointing.interval": "2 s", "restart-strategy": "fixed-delay", "pipeline.global-job-parameters.a": "2"})
	c := resolve(t, low, high)
	if d, _ := c.Duration("execution.checkpointing.interval"); d != 2*time.Second {
		t.Error(d)
	}
	if s, _ := c.Text("restart-strategy.type"); s != "fixed-delay" {
		t.Error(s)
	}
	if m, _ := c.Map("pipeline.global-job-parameters"); !reflect.DeepEqual(m, map[string]string{"a": "2", "b": "1"}) {
		t.Error(m)
	}
	if !slices.Equal(c.Keys(), []string{"execution.checkpointing.interval", "pipeline.global-job-parameters", "restart-strategy.type"}) {
		t.Error(c.Keys())
	}
}

func TestTheNewestNameOfALayerCounts(t *testing.T) {
	names := []string{"execution.checkpointing.dir", "state.checkpoints.dir", "state.backend.fs.checkpointdir"}
	for i := range names {
		m := map[string]string{}
		for _, name := range names[i:] {
			m[name] = name
		}
		c := resolve(t, Texts("x", m))
		if s, _ := c.Text(names[0]); s != names[i] {
			t.Errorf("of %v counts %s", m, s)
		}
		if len(m) > 1 && (len(c.Warnings()) == 0 || !strings.Contains(c.Warnings()[0], names[i]+" counts")) {
			t.Errorf("warnings %q", c.Warnings())
		}
	}
	c := resolve(t, Texts("x", map[string]string{names[0]: "new"}), Texts("y", map[string]string{names[2]: "old"}))
	if s, _ := c.Text(names[0]); s != "old" {
		t.Errorf("a lower layer's newer name counts: %s", s)
	}
}

func TestUselessKeysAreToldWithTheirReason(t *testing.T) {
	c := resolve(t, Texts("x", map[string]string{
		"execution.checkpointing.intervall": "1 s", "execution.checkpoint.mode": "x", "my.own": "1", "env.java.opts.all": "-Xmx1g", "taskmanager.numberOfTaskSlots": "4",
		"state.backend.rocksdb.block.blocksize": "4 kb", "jobmanager.rpc.port": "6123",
	}))
	want := []string{
		"x: ignored, as it concerns the JVM only: env.java.opts.all",
		"x: ignored, unknown keys: execution.checkpoint.mode (did you mean execution.checkpointing.mode?), execution.checkpointing.intervall (did you mean execution.checkpointing.interval?), my.own",
		"x: ignored, as it concerns a cluster, and the job runs in this process: jobmanager.rpc.port, taskmanager.numberOfTaskSlots",
		"x: ignored, as it tunes RocksDB; pebble.Backend has the settings of the backend on disk: state.backend.rocksdb.block.blocksize",
	}
	got := slices.Clone(c.Warnings())
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("warnings\n%s", strings.Join(got, "\n"))
	}
}

func TestEveryNameIsOfOneOptionAndEveryDefaultIsAValue(t *testing.T) {
	seen := map[string]string{}
	for _, o := range Options() {
		for _, name := range append([]string{o.Key}, o.Older...) {
			if seen[name] != "" {
				t.Errorf("%s belongs to %s and %s", name, seen[name], o.Key)
			}
			seen[name] = o.Key
			for i := range idleKeys {
				if idleKeys[i].key == name {
					t.Errorf("%s is applied and said to do nothing", name)
				}
			}
		}
		if o.Default != "" {
			if _, err := o.parse(o.Default); err != nil {
				t.Errorf("default of %s: %v", o.Key, err)
			}
		}
		if o.Meaning == "" {
			t.Errorf("%s has no meaning", o.Key)
		}
	}
}

// TestTheGuideHasTheTable keeps docs/guide/configuration.md in step.
func TestTheGuideHasTheTable(t *testing.T) {
	b, err := os.ReadFile("../../docs/guide/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := string(b)
	var lines []string
	for _, o := range Options() {
		key := "`" + o.Key + "`"
		for _, older := range o.Older {
			key += "<br>`" + older + "`"
		}
		kind := o.Type.String()
		if o.Type == Enum {
			kind = strings.Join(o.Values, ", ")
		}
		line := fmt.Sprintf("| %s | %s | %s | %s |", key, kind, o.Default, o.Meaning)
		if !strings.Contains(guide, line+"\n") {
			lines = append(lines, line)
		}
	}
	if len(lines) > 0 {
		t.Errorf("the table lacks:\n%s", strings.Join(lines, "\n"))
	}
}

func TestSecretsAreKnown(t *testing.T) {
	for key, want := range map[string]bool{
		"security.ssl.rest.key-password": true, "s3.secret-key": true, "my.Token": true, "parallelism.default": false,
	} {
		if Secret(key) != want {
			t.Errorf("%s: %v", key, !want)
		}
	}
}

func FuzzFilesNeverPanic(f *testing.F) {
	f.Add("config.yaml", nested)
	f.Add("flink-conf.yaml", "a: b\nc\n")
	f.Add("config.yaml", "execution.checkpointing.interval: P1D\npipeline.cached-files: ['a''b']\n")
	f.Fuzz(func(t *testing.T, file, text string) {
		l, err := Parse(file, []byte(text))
		if err != nil {
			return
		}
		c, err := Resolve(l)
		if c == nil || err != nil && err.Error() == "" {
			t.Fatal("neither configuration nor error")
		}
	})
}
