package env

import (
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/control"
)

// A job that is configured with what another one is said to run with runs with the same.
func TestTheEffectiveConfigurationConfiguresAlike(t *testing.T) {
	for key, c := range settingsByKey() {
		switch key {
		case "execution.check", "execution.runtime-mode": // are no settings of jobs that run
			continue
		case "state.backend.type": // names one that is not linked here
			continue
		}
		keys := besides(key)
		keys["execution.checkpointing.dir"], keys["execution.state-recovery.path"] = "/checkpoints", "/savepoint" // some keys mean nothing without
		keys[key] = c.value
		said := configured(t, keys).effective()
		e := configured(t, said)
		if e.misconfigured != nil {
			t.Errorf("%s: %v", key, e.misconfigured)
		}
		if got := c.read(&e.Settings); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q is said to be %v, which gives %v, want %v", key, c.value, said[key], got, c.want)
		}
		if again := e.effective(); !maps.Equal(said, again) {
			t.Errorf("%s: %v, and again: %v", key, said, again)
		}
	}
}

func TestCodeIsPartOfTheEffectiveConfiguration(t *testing.T) {
	e := configured(t, map[string]string{"parallelism.default": "3", "state.checkpoints.num-retained": "4"}, func(s *Settings) {
		s.Parallelism = 5
		s.Checkpoints.Enabled, s.Checkpoints.Interval = true, 90*time.Second
		s.Parameters["it's, well: quoted"] = "a;b"
		s.Parameters["my.password"] = "hush"
		s.Restart = Backoff(control.ExponentialDelay{Initial: time.Second, Max: time.Minute, Reset: time.Hour, Factor: 2.5, Jitter: 0.5, Attempts: 7})
	})
	said := e.effective()
	for key, want := range map[string]string{
		"parallelism.default":                                              "5",
		"execution.checkpointing.num-retained":                             "4",
		"execution.checkpointing.interval":                                 "90000 ms",
		"execution.checkpointing.timeout":                                  "600000 ms",
		"execution.checkpointing.storage":                                  "jobmanager",
		"state.backend.type":                                               "heap",
		"restart-strategy.type":                                            "exponential-delay",
		"restart-strategy.exponential-delay.backoff-multiplier":            "2.5",
		"restart-strategy.exponential-delay.attempts-before-reset-backoff": "7",
	} {
		if said[key] != want {
			t.Errorf("%s is said to be %q, want %q", key, said[key], want)
		}
	}
	if strings.Contains(said["pipeline.global-job-parameters"], "hush") {
		t.Error("a secret is shown")
	}
	again := configured(t, said).Settings.Parameters
	if want := map[string]string{"it's, well: quoted": "a;b", "my.password": "******"}; !maps.Equal(again, want) {
		t.Errorf("parameters %v, want %v", again, want)
	}
}
