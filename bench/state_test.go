package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/stream"
)

// The program fails when a job's answer differs from what it was fed: this is a test of checkpoints and restores, too.
func TestStateSuiteHasALineForEachWorkload(t *testing.T) {
	var out bytes.Buffer
	disk := t.TempDir()
	if err := run(t.Context(), []string{"-suite", "state", "-shrink", "1024", "-n", "1", "-json", "-disk", disk}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var names, want []string
	for dec := json.NewDecoder(&out); dec.More(); {
		var l stateLine
		if err := dec.Decode(&l); err != nil {
			t.Fatal(err)
		}
		names = append(names, l.Name)
		if l.Elements == 0 || l.Checksum == 0 || l.StateBytes == 0 || l.DiskBytes == 0 || l.RawWriteMs <= 0 || l.JitterMs <= 0 || l.Remark == "" {
			t.Errorf("%s lacks a figure: %+v", l.Name, l)
		}
		asked := 0
		for _, f := range l.Figures {
			if f.AtMost > 0 || f.AtLeast > 0 {
				asked++
			}
			if (strings.HasPrefix(f.Name, "checkpoint") || strings.HasPrefix(f.Name, "p9")) && f.Value <= 0 {
				t.Errorf("%s: %+v", l.Name, f)
			}
		}
		if asked == 0 {
			t.Errorf("%s says nothing of what is asked for", l.Name)
		}
	}
	for _, w := range stateSuite() {
		want = append(want, w.name)
	}
	if !slices.Equal(names, want) {
		t.Errorf("printed %q, want %q", names, want)
	}
	if left, err := os.ReadDir(disk); err != nil || len(left) > 0 {
		t.Errorf("left %v on the disk, %v", left, err)
	}
}

func TestStateTableSaysWhatIsMissed(t *testing.T) {
	l := middleLine([]stateLine{
		{Name: "x", RawWriteMs: 9, Figures: []figure{percent("loss", .5, 30), inMillis("pause", time.Millisecond, 5)}},
		{Name: "x", RawWriteMs: 1, Figures: []figure{percent("loss", .3, 30), inMillis("pause", 3*time.Millisecond, 5)}},
		{Name: "x", RawWriteMs: 4, Figures: []figure{percent("loss", .4, 30), inMillis("pause", 2*time.Millisecond, 5)}},
	})
	var out bytes.Buffer
	if err := l.print(&out, false); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 || l.RawWriteMs != 4 {
		t.Fatalf("printed\n%s", out.String())
	}
	for i, want := range []string{"loss 40.00 % (at most 30) missed", "pause 2.00 ms (at most 5)"} {
		if got := strings.Join(strings.Fields(lines[2+i]), " "); got != want {
			t.Errorf("printed %q, want %q", got, want)
		}
	}
}

func TestLinesAreChosenByPartsOfTheirNames(t *testing.T) {
	all := []stateWorkload{{name: "pause"}, {name: "pause-windows"}, {name: "restore"}}
	for only, want := range map[string]int{"": 3, "pause": 2, "windows,rest": 2, "nothing": 0} {
		if got := chooseLines(all, only); len(got) != want {
			t.Errorf("%q chooses %d lines, want %d", only, len(got), want)
		}
	}
}

// What has come out when a window begins is not in it, and what comes later is, whatever comes in between.
func TestWindowsHoldWhatComesAfterTheirBegin(t *testing.T) {
	m := newMeters(newFeed(2, uniform(2)), 2)
	m.all[0].take([]touched{{1, 1, 1}}, time.Second)
	before := m.begin(false)
	m.all[1].take([]touched{{2, 1, 1}, {2, 2, 1}}, 2*time.Second)
	after, _ := m.total()
	if in := m.end().latency.n; before != 1 || after-before != 2 || in != 2 {
		t.Errorf("%d elements before, %d after, %d in the window", before, after, in)
	}
}

// A line that can't be measured costs its own figures only.
func TestLinesAfterOneThatFailsAreMeasured(t *testing.T) {
	var out, notes bytes.Buffer
	good := stateWorkload{name: "good", measure: func(context.Context, stateOptions) (stateLine, error) { return stateLine{}, nil }}
	bad := stateWorkload{name: "bad", measure: func(context.Context, stateOptions) (stateLine, error) { return stateLine{}, io.ErrUnexpectedEOF }}
	err := measureLines(t.Context(), []stateWorkload{bad, good}, stateOptions{options: options{runs: 1, notes: &notes}}, &out)
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(out.String(), "good") || !strings.Contains(notes.String(), "measure bad") {
		t.Errorf("error %v, printed %q and told %q", err, out.String(), notes.String())
	}
}

func TestUnknownStateWorkloadsAndDisksAreErrors(t *testing.T) {
	for _, args := range [][]string{{"-run", "no such name"}, {"-size", "0"}, {"-disk", filepath.Join(t.TempDir(), "missing")}} {
		if err := run(t.Context(), append([]string{"-suite", "state"}, args...), new(bytes.Buffer), io.Discard); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}

// jobOf is a job that is not started; what it is said to have brought out is right.
func jobOf(t *testing.T) *stateJob {
	t.Helper()
	j := newStateJob("job", 0, t.TempDir(), 3, uniform(3))
	j.feed.made = map[int]uint64{0: 2, 1: 1}
	j.out.all[0].n, j.out.all[0].digest = 2, 1+3
	j.out.all[1].n, j.out.all[1].digest = 1, 2
	return j
}

func TestElementsThatAreLostOrDoubledAreErrors(t *testing.T) {
	if n, digest, err := jobOf(t).check(); err != nil || n != 3 || digest != 6 {
		t.Fatalf("%d elements with digest %d, %v", n, digest, err)
	}
	for name, spoil := range map[string]func(*stateJob){
		"lost":      func(j *stateJob) { j.out.all[0].n-- },
		"doubled":   func(j *stateJob) { j.out.all[1].n, j.out.all[1].digest = 2, 4 },
		"miscount":  func(j *stateJob) { j.out.all[0].digest++ },
		"forgotten": func(j *stateJob) { j.before = 1 },
	} {
		j := jobOf(t)
		spoil(j)
		if _, _, err := j.check(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestAnswersContinueAfterARestore(t *testing.T) {
	f := newFeed(2, uniform(2))
	f.made = map[int]uint64{0: 1, 1: 1}
	if n, digest := f.answer(1); n != 2 || digest != 1*2+2*2 {
		t.Errorf("%d elements with digest %d", n, digest)
	}
}

func TestGapsBelongToTheBarrierBeforeThem(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name     string
		barriers []time.Duration
		outputs  []time.Duration
		near     times
		longest  time.Duration
	}{
		{"across", []time.Duration{15 * ms}, []time.Duration{10 * ms, 22 * ms, 30 * ms}, times{12 * ms}, 12 * ms},
		{"soon after", []time.Duration{11 * ms}, []time.Duration{10 * ms, 12 * ms, 40 * ms, 300 * ms, 700 * ms}, times{260 * ms}, 400 * ms},
		{"each", []time.Duration{11 * ms, 21 * ms}, []time.Duration{10 * ms, 20 * ms, 22 * ms}, times{10 * ms, 2 * ms}, 10 * ms},
	} {
		w := lookout{on: true, barriers: true}
		for _, at := range c.outputs {
			for len(c.barriers) > 0 && c.barriers[0] < at {
				w.pass(c.barriers[0])
				c.barriers = c.barriers[1:]
			}
			w.output(at)
		}
		w.close()
		if !slices.Equal(w.gaps, c.near) || w.longest != c.longest {
			t.Errorf("%s: gaps %v, the longest %v; want %v and %v", c.name, w.gaps, w.longest, c.near, c.longest)
		}
	}
}

func TestQuantilesAreThreePercentExact(t *testing.T) {
	var l latencies
	for i := range 10_000 {
		l.add(time.Duration(i+1) * time.Microsecond)
	}
	for q, want := range map[float64]time.Duration{.5: 5 * time.Millisecond, .99: 9900 * time.Microsecond, 1: 10 * time.Millisecond} {
		if got := l.quantile(q); got < want || got > want+want/30 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	for ns := range uint64(5000) {
		if b := latencyBucket(ns); uint64(latencyOf(b)) < ns || b > 0 && uint64(latencyOf(b-1)) >= ns {
			t.Fatalf("%d ns are in bucket %d, which ends at %d", ns, b, latencyOf(b))
		}
	}
}

func TestOneKeyOfAHundredGetsMostUpdates(t *testing.T) {
	const keys, n = 10_000, 200_000
	pick, seen, few := skewed(keys), map[uint64]bool{}, 0
	for u := range uint64(n) {
		k := pick(u)
		if k >= keys {
			t.Fatalf("there is no key %d", k)
		}
		seen[k] = true
		if k%100 == 0 {
			few++
		}
	}
	if share := float64(few) / n; share < .985 || share > .995 || len(seen) < 1500 {
		t.Errorf("%v of the updates are hot, %d keys were touched", share, len(seen))
	}
}

// Of so many ranks with the exponent that is used, the first has this share of all draws, the first hundred that one.
func TestFrequenciesOfKeysAreZipfs(t *testing.T) {
	const keys, n = 100_000, 400_000
	pick, counts := zipf(keys, 0.99), map[uint64]int{}
	for u := range uint64(n) {
		k := pick(u)
		if k >= keys {
			t.Fatalf("there is no key %d", k)
		}
		counts[k]++
	}
	sorted := slices.SortedFunc(maps.Values(counts), func(a, b int) int { return b - a })
	top := 0
	for _, c := range sorted[:100] {
		top += c
	}
	first, hundred := float64(sorted[0])/n, float64(top)/n
	if first < .05 || first > .08 || hundred < .38 || hundred > .44 || len(sorted) < keys/2 {
		t.Errorf("the first key has %.3f of all draws, a hundred have %.3f, %d keys were drawn", first, hundred, len(sorted))
	}
}

// A ledger that meets an account with something else in it fails: spoiled state can't pass for right.
func TestLedgerLooksIntoAccounts(t *testing.T) {
	for name, c := range map[string]struct {
		touches []touch
		fails   bool
	}{
		"own":     {[]touch{{Key: 1}, {Key: 1}}, false},
		"another": {[]touch{{Key: 1}, {Key: 2}}, true},
	} {
		err := execute(t.Context(), "ledger", 1, func(env *stream.Env) {
			env.FromElements(c.touches...).KeyBy(func(touch) uint64 { return 1 }).Process[*ledger, touched](newLedger).UID("ledger").Discard()
		})
		if (err != nil) != c.fails || err != nil && !strings.Contains(err.Error(), "account of key 1") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
