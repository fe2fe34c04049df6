package env

import (
	"strings"
	"testing"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/vfs"
)

func TestConnectorsFindTheirPlaces(t *testing.T) {
	b := &bucket{mem: vfs.NewMem()}
	e := New()
	e.Settings.Storage = []checkpoint.Opener{b}
	for location, want := range map[string]string{
		"in/*.csv":              "in/*.csv",
		"/in/a:b.csv":           "/in/a:b.csv",
		"file:///in/*.csv":      "/in/*.csv",
		"bk://host/x/**/y*.csv": "/host/x/**/y*.csv remote",
		"bk://host":             "/host remote",
		"bk://host/a%20b/":      "/host/a b remote",
		"mem://m/x":             "/m/x remote",
	} {
		p, err := e.Place(location)
		got := p.Path
		if p.Remote {
			got += " remote"
		}
		if err != nil || got != want || p.FS == nil {
			t.Errorf("%s: %s, %v, want %s", location, got, err, want)
		}
	}
	if len(b.opened) != 1 || b.opened[0] != "bk://host" {
		t.Errorf("what lies in one bucket was opened by %q", b.opened)
	}
	for location, want := range map[string]string{
		"file://there/x":  "not on there",
		"bk://closed/x":   "no access",
		"other://x":       "no storage for other: is linked",
		"bk://host/x%zzy": "invalid URL escape",
	} {
		if p, err := e.Place(location); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %q", location, p, err, want)
		}
	}
}

func TestFoldersThatMustLieOnADiskAreNoURLs(t *testing.T) {
	for location, want := range map[string]string{"file:///a/b": "/a/b", "/a": "/a"} {
		if got, err := onDisk(location); got != want || err != nil {
			t.Errorf("%s: %s, %v", location, got, err)
		}
	}
	for _, location := range []string{"bk://host/x", "file://there/x", "file:///%zz"} {
		if got, err := onDisk(location); err == nil {
			t.Errorf("%s: %s", location, got)
		}
	}
	for name, change := range map[string]func(c *Checkpoints){
		"its lock: bk://host/x is a URL":              func(c *Checkpoints) { c.Recovery = "bk://host/x" },
		"local copies of checkpoints: bk://host/x is": func(c *Checkpoints) { c.Dir, c.Local = "/x", LocalRecovery{Dirs: []string{"bk://host/x"}, Read: true} },
	} {
		e := kept(1)
		change(&e.Settings.Checkpoints)
		tally(t, e, 1, neverFail)
		if _, err := e.Start(t.Context(), "job"); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q", err, name)
		}
	}
}

func TestCheckpointsInMemoryThatAreToOutliveTheJobAreAWarning(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *Checkpoints)
		warns  bool
	}{
		"in memory":   {func(*Checkpoints) {}, true},
		"in a folder": {func(c *Checkpoints) { c.Dir = "/x" }, false},
		"recovered":   {func(c *Checkpoints) { c.Recovery = "/x" }, false},
		"not kept":    {func(c *Checkpoints) { c.Retention = NeverRetained }, false},
		"none":        {func(c *Checkpoints) { c.Enabled = false }, false},
	} {
		e := kept(1)
		e.Settings.Checkpoints.Dir, e.Settings.Checkpoints.Retention = "", RetainOnCancellation
		c.change(&e.Settings.Checkpoints)
		if got := strings.Contains(strings.Join(e.Warnings(), "\n"), "lie in memory"); got != c.warns {
			t.Errorf("%s: %q", name, e.Warnings())
		}
	}
}
