package sessions

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/host"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/statebackend"
)

// TestSnapshotsAreThoseOfTheirMoment takes, reads and gives up snapshots in random jobs, up to three at once.
func TestSnapshotsAreThoseOfTheirMoment(t *testing.T) {
	for seed := range uint64(150) {
		tr := newTrial(t, seed)
		m, o := host.NewMemory(0), tr.h.driver
		had := -o.ledger.held // what was reserved in Open was so without a budget
		tr.h.rt.Memory, o.ledger.memory = m, m
		var open []*kit.Opening
		for range 60 {
			switch what := tr.rng.IntN(6); {
			case what == 0 && len(open) < 3:
				later := kit.TakeOpen(t, o, true)
				if later.Rows() != o.live {
					t.Fatalf("seed %d: %d rows of %d sessions", seed, later.Rows(), o.live)
				}
				open = append(open, later)
			case what == 1 && len(open) > 0:
				i := tr.rng.IntN(len(open))
				one := open[i]
				if tr.rng.IntN(2) == 0 && one.Begin() {
					continue
				}
				open = slices.Delete(open, i, i+1)
				one.End(t, tr.rng.IntN(3) == 0)
			case what == 2:
				tr.progress()
			default:
				tr.elements(t)
			}
		}
		if len(open) > 0 && tr.rng.IntN(2) == 0 {
			kit.Must(t, o.Close()) // it may be before snapshots are written
		}
		for _, one := range open {
			one.End(t, tr.rng.IntN(2) == 0)
		}
		kit.Must(t, o.Close())
		if m.Used() != had {
			t.Errorf("seed %d: %d bytes are held when all is closed, want %d", seed, m.Used(), had)
		}
		o.ledger.memory = nil
	}
}

// TestSnapshotsAreRestoredWhateverCameAfter compares a driver that begins with a snapshot read late with one that went on.
func TestSnapshotsAreRestoredWhateverCameAfter(t *testing.T) {
	for _, kernel := range []string{"polynomial", "wide", "sum", "concat"} {
		j := job{gap: static(10), domain: process.EventTime, agg: kernel}
		give := func(h *harness, from int64) {
			for i := from; i < from+30; i++ {
				h.push(i*3, event{Key: i % 7, Text: fmt.Sprint(i)})
			}
		}
		h, want := j.open(t), j.open(t)
		give(h, 0)
		give(want, 0)
		taken := kit.Take(t, h.op)
		give(h, 30)
		h.watermark(1000)
		give(h, 400)
		o := j.operator(t)
		got := &harness{t: t, op: o, driver: o, rt: kit.Runtime()}
		got.rt.Restored = taken.Restored()
		got.connect(j)
		for _, x := range []*harness{got, want} {
			x.push(80, event{Key: 3, Text: "x"})
			x.watermark(math.MaxInt64)
		}
		a, b := got.Take(), want.Take()
		if a != b || !strings.Contains(b, "3 [72,90)") {
			t.Errorf("%s: got %s\nwant %s", kernel, a, b)
		}
	}
}

func TestCopiesForSnapshotsKeepToTheBudget(t *testing.T) {
	h := job{gap: static(1000), agg: "sum"}.open(t)
	kit.Must(t, h.crowd(1, 0, 500))
	h.rt.Memory = host.NewMemory(1000)
	one := kit.Snapshot(t, h.op)
	if used := h.rt.Memory.Used(); used != 0 {
		t.Errorf("%d bytes for a snapshot of which nothing was changed or read", used)
	}
	if err := h.crowd(2, 0, 500); !errors.Is(err, statebackend.ErrOutOfMemory) || !strings.Contains(err.Error(), "keep windows for a snapshot") {
		t.Errorf("error %v", err)
	}
	one.Release()
	kit.Must(t, h.crowd(2, 0, 500))
	if used := h.rt.Memory.Used(); used != 0 {
		t.Errorf("%d bytes are held", used)
	}
}
