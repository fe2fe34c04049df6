package slices

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/statebackend"
)

// frozenAttempt takes, reads and gives up snapshots in a random case, up to three at once.
func frozenAttempt(t *testing.T, seed uint64, steps, most int, crowd int64) {
	r := rand.New(rand.NewPCG(seed, 7))
	fs := functions()
	f := fs[r.IntN(len(fs))]
	l, name := randomLayout(r, !f.regroups || r.IntN(3) == 0)
	lateness, disorder := r.Int64N(100)*r.Int64N(2), []int64{0, 5, 40, 200}[r.IntN(4)]
	keys := 1 + r.Int64N([]int64{3, 20, crowd}[r.IntN(3)])
	t.Run(fmt.Sprintf("seed %d: %s, %s, disorder %d, lateness %d, %d keys", seed, f.name, name, disorder, lateness, keys), func(t *testing.T) {
		p := newPair(t, l, f, lateness, false)
		m := host.NewMemory(0)
		p.rt.Memory, p.most = m, most
		had := m.Used() - p.driver().columns.held // what was reserved in Open was so without a budget
		var open []*kit.Opening
		for range steps {
			switch what := r.IntN(6); {
			case what == 0 && len(open) < 3:
				open = append(open, kit.TakeOpen(t, p.op, false))
			case what == 1 && len(open) > 0:
				i := r.IntN(len(open))
				o := open[i]
				if r.IntN(2) == 0 && o.Begin() {
					continue
				}
				open = slices.Delete(open, i, i+1)
				o.End(t, r.IntN(3) == 0)
			default:
				p.step(r, 30, disorder, keys)
			}
		}
		for i, o := range open {
			if i > 0 { // the first is open when the driver closes
				o.End(t, r.IntN(2) == 0)
			}
		}
		kit.Must(t, p.op.Close())
		for _, o := range open[:min(1, len(open))] {
			o.End(t, false)
		}
		if m.Used() != had {
			t.Errorf("%d bytes are held when all is closed, want %d", m.Used(), had)
		}
	})
}

func TestSnapshotsAreThoseOfTheirMoment(t *testing.T) {
	for seed := range uint64(120) {
		frozenAttempt(t, seed, 80, 12, 200)
	}
}

// Many keys make slices dense, lists and dense again; keys are forgotten and their numbers given to others.
func TestSnapshotsOfCrowdsAreThoseOfTheirMoment(t *testing.T) {
	for seed := range uint64(30) {
		frozenAttempt(t, seed, 40, 1500, 9000)
	}
}

// TestSnapshotsAreRestoredWhateverCameAfter compares a driver that begins with a snapshot read late with one that went on.
func TestSnapshotsAreRestoredWhateverCameAfter(t *testing.T) {
	for _, f := range functions() {
		for _, l := range []layout{eventTime(10, 10), eventTime(40, 10)} {
			if !f.regroups && l.grid.Slide < l.grid.Size {
				continue
			}
			o := begin(t, l, f, 0, nil)
			give := func(o *opened, from int64) {
				for i := from; i < from+30; i++ {
					o.give(t, []int64{i, i - i%7}, event{i % 5, i, string(rune('a' + i%26))}, event{i % 3, i, "z"})
				}
			}
			give(o, 0)
			taken := kit.Take(t, o.driver)
			give(o, 30)
			kit.Must(t, o.Mark(kit.Watermark(45))) // what was shared goes
			o.give(t, []int64{50}, event{Key: 1})
			rt := kit.Runtime()
			rt.Restored = taken.Restored()
			s := spec(t)
			next := New(s, l.grid, l.domain, f.kernels(t))
			got := kit.OpenAt(t, next, rt)
			want := begin(t, l, f, 0, nil)
			give(want, 0)
			for _, op := range []operator.Operator{next, want.driver} {
				kit.Must(t, op.Inputs()[0].Push(kit.Run(t, []int64{31, 2}, event{1, 4, "x"}, event{2, 6, "y"})))
				kit.Must(t, op.Inputs()[0].Mark(kit.Watermark(math.MaxInt64)))
			}
			slices.Sort(got.Got)
			slices.Sort(want.out.Got)
			if len(got.Got) < 3 || !slices.Equal(got.Got, want.out.Got) {
				t.Errorf("%s of %v: got %q\nwant %q", f.name, l.assigner, got.Got, want.out.Got)
			}
		}
	}
}

func TestCopiesForSnapshotsKeepToTheBudget(t *testing.T) {
	o := begin(t, eventTime(20, 10), count(), 0, nil)
	for i := range int64(1000) {
		o.give(t, []int64{5}, event{Key: i})
	}
	m := host.NewMemory(1000)
	o.rt.Memory = m
	s := kit.Snapshot(t, o.driver)
	if m.Used() != 0 {
		t.Errorf("%d bytes for a snapshot of which nothing was changed or read", m.Used())
	}
	err := o.Push(kit.Run(t, []int64{5}, event{Key: 700}))
	if !errors.Is(err, statebackend.ErrOutOfMemory) || !strings.Contains(err.Error(), "keep windows for a snapshot") {
		t.Errorf("error %v", err)
	}
	s.Release()
	o.give(t, []int64{5}, event{Key: 700})
	if m.Used() != 0 {
		t.Errorf("%d bytes are held", m.Used())
	}
	o.rt.Memory = nil
}
