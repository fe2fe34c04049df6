package env

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flott-dev/flott/internal/config"
)

// LaunchVariable is the environment variable by which who starts a program sets its configuration: a JSON object of keys and
// values.
const LaunchVariable = "FLOTT_CONFIGURATION"

// Configuration is what a program takes its settings from beside its code.
type Configuration struct {
	Files []string            // or folders of one; later ones win
	Keys  []map[string]string // stronger than files and the launcher; later ones win
}

// Setup gives the environment its settings: the defaults, on top of them the configuration, on top of it what options set, and
// at last what only the launcher can know. Mistakes are those of every job. options is called once, and again if there is
// any configuration.
func (e *Env) Setup(options func(*Settings)) {
	options(&e.Settings)
	launcher, err := ParseLaunch(os.Getenv(LaunchVariable))
	from := e.Settings.Configuration
	if err == nil && len(launcher.Entries) == 0 && len(from.Files) == 0 && len(from.Keys) == 0 {
		return
	}
	layers, err2 := from.layers(launcher)
	c, err3 := config.Resolve(layers...)
	e.Settings = defaults()
	a := application{s: &e.Settings, c: c}
	a.all()
	options(&e.Settings)
	if s := &e.Settings.Checkpoints; s.Recovery != "" && s.Dir != "" {
		a.warn("execution.checkpointing.dir", "ignored, as checkpoints lie in the recovery folder %s", s.Recovery)
		s.Dir = ""
	}
	if known, err := config.Resolve(launcher); err == nil { // its mistakes are found already
		last := application{s: &e.Settings, c: known}
		last.launcher()
	}
	e.configured = append(c.Warnings(), a.warnings...)
	if err := errors.Join(err, err2, err3, errors.Join(a.mistakes...)); err != nil {
		e.misconfigured = fmt.Errorf("configure the environment: %w", err)
	}
}

// layers are what the configuration has, the weakest first.
func (c *Configuration) layers(launcher config.Layer) (layers []config.Layer, err error) {
	var errs []error
	for _, name := range c.Files {
		l, err := readConfiguration(name)
		layers, errs = append(layers, l), append(errs, err)
	}
	layers = append(layers, launcher)
	for _, keys := range c.Keys {
		layers = append(layers, config.Texts("WithConfiguration", keys))
	}
	return layers, errors.Join(errs...)
}

// readConfiguration reads a file, or the one in a folder.
func readConfiguration(name string) (config.Layer, error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		file := filepath.Join(name, config.FileName)
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			file = filepath.Join(name, config.OldFileName)
		}
		name = file
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return config.Layer{}, fmt.Errorf("read configuration: %w", err)
	}
	return config.Parse(name, b)
}

// ParseLaunch reads what LaunchVariable holds; "" is nothing.
func ParseLaunch(text string) (config.Layer, error) {
	if text == "" {
		return config.Layer{}, nil
	}
	var values map[string]any
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	if err := d.Decode(&values); err != nil {
		return config.Layer{}, fmt.Errorf("read the environment variable %s, a JSON object of keys and values: %w", LaunchVariable, err)
	}
	texts := map[string]string{}
	for key, v := range values {
		switch v := v.(type) {
		case string, json.Number, bool:
			texts[key] = fmt.Sprint(v)
		default:
			return config.Layer{}, fmt.Errorf("read the environment variable %s: the value of %q is no text, number or boolean", LaunchVariable, key)
		}
	}
	return config.Texts(LaunchVariable, texts), nil
}

// jobName is the name of a job that is executed under a name.
func (e *Env) jobName(name string) string {
	switch {
	case name != "":
		return name
	case e.Settings.JobName != "":
		return e.Settings.JobName
	}
	return "Flott job"
}

// application applies configuration to settings: what is not set stays as it is.
type application struct {
	s        *Settings
	c        *config.Config
	warnings []string
	mistakes []error
}

func (a *application) warn(key, format string, args ...any) {
	e, _ := a.c.Entry(key)
	a.warnings = append(a.warnings, fmt.Sprintf("%v: %s: %s", e.At, e.Key, fmt.Sprintf(format, args...)))
}

func (a *application) mistake(key, format string, args ...any) {
	a.mistakes = append(a.mistakes, a.c.Mistake(key, format, args...))
}

// set puts a value where it belongs if its key is set.
func set[T any](to *T, read func(string) (T, bool), key string) {
	if v, ok := read(key); ok {
		*to = v
	}
}

func (a *application) all() {
	a.pipeline()
	a.checkpoints()
	a.state()
	a.restart()
	a.process()
	a.launcher()
}

// launcher applies what only the launcher can know.
func (a *application) launcher() {
	a.recovery()
	a.rest()
	set(&a.s.Check, a.c.Boolean, "execution.check")
}

func (a *application) pipeline() {
	s, c := a.s, a.c
	set(&s.Parallelism, c.Integer, "parallelism.default")
	set(&s.JobName, c.Text, "pipeline.name")
	if n, ok := c.Integer("pipeline.max-parallelism"); ok && n != -1 {
		if n < 1 || n > 1<<15 {
			a.mistake("pipeline.max-parallelism", "%d lies neither in 1 ... 32768 nor is it -1", n)
		}
		s.MaxParallelism = n
	}
	set(&s.AutoWatermark, c.Duration, "pipeline.auto-watermark-interval")
	set(&s.Chaining, c.Boolean, "pipeline.operator-chaining.enabled")
	if auto, ok := c.Boolean("pipeline.auto-generate-uids"); ok {
		s.RequireUIDs = !auto
	}
	if m, ok := c.Map("pipeline.global-job-parameters"); ok {
		for key, value := range m {
			s.Parameters[key] = value
		}
	}
	a.files()
	set(&s.BufferTimeout, c.Duration, "execution.buffer-timeout.interval")
	if on, ok := c.Boolean("execution.buffer-timeout.enabled"); ok && !on {
		s.BufferTimeout = -1
	}
	if mode, _ := c.Text("execution.runtime-mode"); mode == "BATCH" {
		a.mistake("execution.runtime-mode", "there is no batch mode: use STREAMING, which gives the same results for inputs that end")
	}
}

// files applies the cached files.
func (a *application) files() {
	const key = "pipeline.cached-files"
	files, _ := a.c.List(key)
	for _, f := range files {
		m, err := config.ParseMap(f)
		if err != nil || m["name"] == "" || m["path"] == "" {
			a.mistake(key, "%q is no cached file: write name:n,path:p", f)
			continue
		}
		a.s.Files[m["name"]] = m["path"]
	}
}

func (a *application) restart() {
	s, c := a.s, a.c
	const p = "restart-strategy."
	kind, _ := c.Text(p + "type")
	for _, key := range c.Keys() {
		if of, _, ok := strings.Cut(strings.TrimPrefix(key, p), "."); ok && strings.HasPrefix(key, p) && of != kind {
			a.warn(key, "ignored, as restart-strategy.type is not %s", of)
		}
	}
	switch kind {
	case "none", "off", "disable":
		s.Restart = NoRestart()
	case "fixed-delay":
		attempts, delay := 1, second
		set(&attempts, c.Integer, p+"fixed-delay.attempts")
		set(&delay, c.Duration, p+"fixed-delay.delay")
		s.Restart = FixedDelay(attempts, delay)
	case "failure-rate":
		most, interval, delay := 1, 60*second, second
		set(&most, c.Integer, p+"failure-rate.max-failures-per-interval")
		set(&interval, c.Duration, p+"failure-rate.failure-rate-interval")
		set(&delay, c.Duration, p+"failure-rate.delay")
		s.Restart = FailureRate(most, interval, delay)
	case "exponential-delay":
		a.exponentialDelay()
	}
	if scope, ok := c.Text("jobmanager.execution.failover-strategy"); ok {
		s.FullRestart = scope == "full"
	}
}

func (a *application) process() {
	s, c := a.s, a.c
	if n, ok := c.Bytes("taskmanager.memory.process.size"); ok {
		s.Memory = n / 10 * 6
	}
	set(&s.Memory, c.Bytes, "memory")
	set(&s.Latency, c.Duration, "metrics.latency.interval")
	if g, ok := c.Text("metrics.latency.granularity"); ok {
		s.LatencyGranularity = [...]LatencyGranularity{LatencySingle, LatencyPerOperator, LatencyPerSubtask}[slices.Index([]string{"single", "operator", "subtask"}, g)]
	}
}

// rest applies the address at which REST is served: there is one if a port is set.
func (a *application) rest() {
	host, port := "127.0.0.1", ""
	set(&host, a.c.Text, "rest.bind-address")
	if n, ok := a.c.Integer("rest.port"); ok {
		port = fmt.Sprint(n)
	}
	set(&port, a.c.Text, "rest.bind-port")
	switch port {
	case "":
	case "-1": // of the first versions: no dashboard
		a.s.REST.Enabled = false
	default:
		a.s.REST.ListenAt(host + ":" + port)
	}
}
