package main

import (
	"bytes"
	"errors"
	"math"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
)

// broken is an output that fails.
type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

func TestOutputThatFails(t *testing.T) {
	t.Chdir(t.TempDir())
	takeAll(t, false)
	for _, c := range []struct {
		err  error
		want string
	}{
		{syscall.EPIPE, ""}, // who reads has seen enough
		{syscall.ENOSPC, "flott savepoint dump: write the output: no space left on device\n"},
	} {
		var stderr bytes.Buffer
		a := &app{stdout: broken{c.err}, stderr: &stderr, fs: vfs.OS{}}
		if code := a.run([]string{"savepoint", "dump", "savepoints/savepoint-001122-7", "-operator", "alarm"}); code != exitFailed || stderr.String() != c.want {
			t.Errorf("%v: exit %d, %q", c.err, code, stderr.String())
		}
	}
}

// A dump that is larger than the output's buffer stops at the first write that fails.
func TestLongOutputStopsWhenNobodyReads(t *testing.T) {
	for _, format := range []string{"jsonl", "csv"} {
		var stderr bytes.Buffer
		a := &app{stdout: broken{syscall.EPIPE}, stderr: &stderr, fs: vfs.OS{}}
		if code := a.run([]string{"savepoint", "dump", many(t), "-operator", "many", "-format", format}); code != exitFailed || stderr.Len() > 0 {
			t.Errorf("%s: exit %d, %q", format, code, stderr.String())
		}
	}
}

func TestStorageThatFails(t *testing.T) {
	t.Chdir(t.TempDir())
	takeAll(t, false)
	worn := errors.New("the disk is worn out")
	for _, args := range []string{
		"savepoint inspect savepoints/savepoint-001122-7",
		"savepoint dump savepoints/savepoint-001122-7 -operator alarm",
		"savepoint verify savepoints/savepoint-001122-7",
	} {
		failing := 0
		for at := int64(1); ; at++ { // the call of the file system that fails
			f := &failingFS{FS: vfs.OS{}, at: at, err: worn}
			var stdout, stderr bytes.Buffer
			code := (&app{stdout: &stdout, stderr: &stderr, fs: f}).run(strings.Fields(args))
			if f.calls.Load() < at {
				break
			}
			failing++
			if code != exitFailed || !strings.Contains(stderr.String(), worn.Error()) {
				t.Errorf("%s, open %d fails: exit %d, %s", args, at, code, stderr.String())
			}
		}
		if failing < 2 {
			t.Errorf("%s: only %d calls of the file system", args, failing)
		}
	}
	f := &failingFS{FS: vfs.OS{}, at: 1, err: worn}
	var stdout, stderr bytes.Buffer
	code := (&app{stdout: &stdout, stderr: &stderr, fs: f}).run([]string{"savepoint", "list", "savepoints"})
	if code != exitOK || !strings.Contains(stdout.String(), "unreadable: load snapshot savepoints/savepoint-001122-7: the disk is worn out") {
		t.Errorf("exit %d, %s%s", code, stdout.String(), stderr.String())
	}
}

// failingFS fails to open one file. Several may be opened at once.
type failingFS struct {
	vfs.FS
	calls atomic.Int64
	at    int64
	err   error
}

func (f *failingFS) Open(name string) (vfs.File, error) {
	if f.calls.Add(1) == f.at {
		return nil, f.err
	}
	return f.FS.Open(name)
}

func TestColoursAreForTerminalsThatWantThem(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a terminal is such a device, too
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	for _, c := range []struct {
		to      *os.File
		noColor string
		term    string
		want    bool
	}{
		{device, "", "xterm", true},
		{device, "1", "xterm", false},
		{device, "", "dumb", false},
		{device, "", "", false},
		{file, "", "xterm", false},
	} {
		env := map[string]string{"NO_COLOR": c.noColor, "TERM": c.term}
		if got := wantsColour(c.to, func(name string) string { return env[name] }); got != c.want {
			t.Errorf("%s, NO_COLOR %q, TERM %q: %v", c.to.Name(), c.noColor, c.term, got)
		}
	}
}

func TestColoursSurroundWhatIsSeenWithoutThem(t *testing.T) {
	t.Chdir(t.TempDir())
	takeAll(t, false)
	harm(t, "cut", "checkpoints/job/chk-12/_metadata")
	for _, args := range []string{"savepoint list .", "savepoint inspect savepoints/savepoint-001122-9", "savepoint verify savepoints/savepoint-001122-9"} {
		plain := must(t, strings.Fields(args)...)
		var stdout bytes.Buffer
		a := &app{stdout: &stdout, stderr: &stdout, fs: vfs.OS{}, colour: true}
		a.run(strings.Fields(args))
		coloured := stdout.String()
		for _, code := range []string{"\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[0m"} {
			coloured = strings.ReplaceAll(coloured, code, "")
		}
		if coloured != plain || stdout.String() == plain {
			t.Errorf("%s:\n%q\n%q", args, stdout.String(), plain)
		}
	}
}

func TestTextForPeople(t *testing.T) {
	for _, c := range [][2]string{
		{size(0), "0 B"},
		{size(1023), "1023 B"},
		{size(1024), "1.0 KiB"},
		{size(1536), "1.5 KiB"},
		{size(1<<20 - 1), "1.0 MiB"},
		{size(5 << 30), "5.0 GiB"},
		{size(math.MaxInt64), "8.0 EiB"},
		{count(0, "file"), "0 files"},
		{count(1, "file"), "1 file"},
		{count(2, "file"), "2 files"},
		{shown("Window Count"), "Window Count"},
		{shown("größe"), "größe"},
		{shown(""), `""`},
		{shown(" x"), `" x"`},
		{shown("a\nb"), `"a\nb"`},
		{shown("\xff"), `"\xff"`},
		{shown("\u202edrow"), `"\u202edrow"`},
		{orDash(""), "-"},
		{instant(-1), "1969-12-31T23:59:59.999Z"},
		{eventTime(math.MinInt64), "none"},
		{eventTime(math.MaxInt64), "end"},
		{eventTime(0), "1970-01-01T00:00:00.000Z"},
	} {
		if c[0] != c[1] {
			t.Errorf("got %s, want %s", c[0], c[1])
		}
	}
}

func TestFoldersAreSearchedFourDeep(t *testing.T) {
	t.Chdir(t.TempDir())
	takeAll(t, false)
	if err := os.MkdirAll("x/y/z", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename("savepoints", "x/y/z/savepoints"); err != nil {
		t.Fatal(err)
	}
	if out := must(t, "savepoint", "list", "x"); strings.Count(out, "complete") != 2 {
		t.Error(out)
	}
	if out := must(t, "savepoint", "list", "."); strings.Contains(out, "savepoint-001122") {
		t.Error(out)
	}
}

// A checkpoint's folder that was renamed is not that checkpoint.
func TestForeignCheckpointIsDamage(t *testing.T) {
	t.Chdir(t.TempDir())
	takeAll(t, false)
	if err := os.Rename("checkpoints/job/chk-12", "checkpoints/job/chk-13"); err != nil {
		t.Fatal(err)
	}
	if out := must(t, "savepoint", "list", "checkpoints"); !strings.Contains(out, "damaged: checkpoints/job/chk-13/_metadata: it is that of checkpoint 12") {
		t.Error(out)
	}
}

func FuzzEngineItems(f *testing.F) {
	f.Add(channelItem(0, 1, 2, 3, 4, 5, channelIdle))
	f.Add([]byte{0, 2, 84, 208, 15})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := decodeChannel(b); err == nil {
			flags := byte(0)
			if c.Idle {
				flags |= channelIdle
			}
			if c.Behind {
				flags |= channelBehind
			}
			again, err := decodeChannel(channelItem(c.Input, c.Subtask, c.Parallelism, c.Peer, c.Peers, c.Millis, flags))
			if err != nil || again != c {
				t.Errorf("%x: %+v, then %+v, %v", b, c, again, err)
			}
		}
		if p, err := decodePosition(b); err == nil && 2*len(p.Stretches) > len(b) {
			t.Errorf("%x: %+v", b, p)
		}
	})
}
