package valve

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
)

// withSplits is a combination of n splits.
func withSplits(n int) *Splits {
	s := NewSplits(frame.MinWatermark, false)
	for i := range n {
		s.Add(fmt.Sprint("split ", i))
	}
	return s
}

// B006 on splits: whoever falls silent first, 5 comes out; one that resumes in part stalls nobody.
func TestAllSplitsIdleFlushTheMaximumInEveryOrder(t *testing.T) {
	check(t, play(withSplits(2), 0, 5, 1, 4, 0, frame.Idle, 1, frame.Idle), "[watermark 4 watermark 5 idle]")
	check(t, play(withSplits(2), 0, 5, 1, 4, 1, frame.Idle, 0, frame.Idle), "[watermark 4 watermark 5 idle]")
	s := withSplits(2)
	play(s, 0, 5, 1, 4, 0, frame.Idle, 1, frame.Idle)
	check(t, play(s, 1, frame.Active, 1, 4, 1, frame.Idle), "[active idle]")
	check(t, play(s, 0, frame.Active, 0, 7), "[active watermark 7]")
}

func TestNewSplitIsWaitedFor(t *testing.T) {
	s := withSplits(1)
	check(t, play(s, 0, 5), "[watermark 5]")
	n, a := s.Add("new")
	check(t, fmt.Sprint(n, texts(nil, a)), "1 []")
	check(t, play(s, 0, 9), "[]")
	if s.Held() != "new" || s.Out() != 5 || s.Len() != 2 {
		t.Errorf("held by %q of %d at %d", s.Held(), s.Len(), s.Out())
	}
	check(t, play(s, 1, 3, 1, 7, 1, 20), "[watermark 7 watermark 9]")
}

func TestNewSplitEndsIdleness(t *testing.T) {
	s := withSplits(1)
	check(t, play(s, 0, 5, 0, frame.Idle), "[watermark 5 idle]")
	_, a := s.Add("new")
	check(t, fmt.Sprint(texts(nil, a)), "[active]")
	check(t, play(s, 1, 4, 1, frame.Idle), "[idle]")
}

func TestSplitThatIsOverHoldsNobodyBack(t *testing.T) {
	s := withSplits(3)
	check(t, play(s, 0, 9, 1, 4, 2, 6, 2, frame.Idle), "[watermark 4]")
	check(t, fmt.Sprint(texts(nil, s.Remove(1))), "[watermark 9]")
	// The last active one leaves: what is left is idle, and what that had said comes out.
	s = withSplits(3)
	check(t, play(s, 0, 9, 1, 4, 2, 6, 2, frame.Idle, 0, frame.Idle), "[watermark 4]")
	check(t, fmt.Sprint(texts(nil, s.Remove(1))), "[watermark 9 idle]")
	// What a split that is over had said does not count.
	check(t, fmt.Sprint(texts(nil, s.Remove(0))), "[]")
	check(t, play(s, 2, frame.Active, 2, 12), "[active watermark 12]")
}

// Between two splits nothing is known: neither the end nor idleness comes out, and numbers are used again.
func TestNothingComesOutWithoutSplits(t *testing.T) {
	s := withSplits(1)
	check(t, play(s, 0, 8), "[watermark 8]")
	check(t, fmt.Sprint(texts(nil, s.Remove(0))), "[]")
	if s.Len() != 0 || s.Held() != "" || s.IsIdle() {
		t.Errorf("%d splits, held by %q, idle: %v", s.Len(), s.Held(), s.IsIdle())
	}
	n, a := s.Add("new")
	check(t, fmt.Sprint(n, texts(nil, a)), "0 []")
	check(t, play(s, 0, 5, 0, 11), "[watermark 11]")
	// Idle and gone: it is idle as long as there is no other.
	check(t, play(s, 0, frame.Idle), "[idle]")
	check(t, fmt.Sprint(texts(nil, s.Remove(0))), "[]")
	if !s.IsIdle() {
		t.Error("it is active without a split")
	}
	check(t, fmt.Sprint(texts(nil, s.Rest())), "[]")
	_, a = s.Add("newer")
	check(t, fmt.Sprint(texts(nil, a)), "[active]")
}

// Without a split for long it is idle until there is one.
func TestSplitsRest(t *testing.T) {
	s := withSplits(1)
	check(t, fmt.Sprint(texts(nil, s.Rest())), "[]")
	s.Remove(0)
	check(t, fmt.Sprint(texts(nil, s.Rest()), texts(nil, s.Rest())), "[idle] []")
	_, a := s.Add("next")
	check(t, fmt.Sprint(texts(nil, a)), "[active]")
}

func TestSplitsGoOnFromWhatCameOutBefore(t *testing.T) {
	s := NewSplits(10, true)
	_, a := s.Add("first")
	check(t, fmt.Sprint(texts(nil, a)), "[active]")
	check(t, play(s, 0, 7, 0, 12), "[watermark 12]")
}

func TestSplitsAreFoundByName(t *testing.T) {
	s := withSplits(2)
	s.Remove(0)
	if _, ok := s.Find("split 0"); ok {
		t.Error("a split that is over is there")
	}
	if n, ok := s.Find("split 1"); !ok || n != 1 || s.Name(n) != "split 1" {
		t.Errorf("split 1 is number %d (%v)", n, ok)
	}
	if n, _ := s.Add("split 0"); n != 0 || s.Name(n) != "split 0" {
		t.Errorf("a new split is number %d", n)
	}
}

// Splits that come and go give what a valve gives whose channels are those that ever were, the gone ones left out by hand.
func TestSplitsFollowTheRulesOfAValve(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		s := NewSplits(frame.MinWatermark, false)
		now := map[int]*Channel{} // the model: splits that are there
		out, idle := int64(frame.MinWatermark), false
		for step := range 60 {
			var a Actions
			pick, there := -1, slices.Sorted(maps.Keys(now))
			if len(there) > 0 {
				pick = there[rng.IntN(len(there))]
			}
			switch k := rng.IntN(10); {
			case k == 0 || pick < 0:
				n, added := s.Add(fmt.Sprint(step))
				if now[n] != nil {
					t.Fatalf("seed %d: split %d is there twice", seed, n)
				}
				now[n], a = &Channel{Watermark: frame.MinWatermark}, added
			case k == 1:
				delete(now, pick)
				a = s.Remove(pick)
			case k < 5:
				if c := now[pick]; rng.IntN(2) == 0 {
					c.Idle, c.Behind = true, false
					a = s.Step(pick, frame.Mark{Kind: frame.Idle})
				} else if c.Idle {
					c.Idle, c.Behind = false, c.Watermark < out
					a = s.Step(pick, frame.Mark{Kind: frame.Active})
				}
			default:
				at := int64(rng.IntN(40))
				if c := now[pick]; !c.Idle && at > c.Watermark {
					c.Watermark = at
					c.Behind = c.Behind && at < out
				}
				a = s.Step(pick, wm(at))
			}
			out, idle = model(now, out, idle)
			if s.Out() != out || s.IsIdle() != idle {
				t.Fatalf("seed %d: at %d, idle %v after %v; want %d, %v of %v", seed, s.Out(), s.IsIdle(), texts(nil, a), out, idle, now)
			}
		}
	}
}

// model is the watermark and idleness that follow from splits, given what was before.
func model(now map[int]*Channel, out int64, idle bool) (int64, bool) {
	if len(now) == 0 {
		return out, idle
	}
	least, most, active, aligned := int64(frame.MaxWatermark), int64(frame.MinWatermark), 0, 0
	for _, c := range now {
		most = max(most, c.Watermark)
		if c.Idle {
			continue
		}
		active++
		if !c.Behind {
			aligned++
			least = min(least, c.Watermark)
		}
	}
	switch {
	case active == 0 && !idle:
		out = max(out, most)
	case aligned > 0:
		out = max(out, least)
	}
	return out, active == 0
}
