package valve

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
)

func wm(t int64) frame.Mark { return frame.Mark{Kind: frame.Watermark, Value: t} }

// play sends marks, given as channel and mark, and returns what came out.
func play(stepper interface {
	Step(int, frame.Mark) Actions
}, steps ...any,
) string {
	var out []string
	for i := 0; i < len(steps); i += 2 {
		m := frame.Mark{}
		switch s := steps[i+1].(type) {
		case int:
			m = wm(int64(s))
		case frame.MarkKind:
			m.Kind = s
		case frame.Mark:
			m = s
		}
		out = texts(out, stepper.Step(steps[i].(int), m))
	}
	return fmt.Sprint(out)
}

func texts(out []string, a Actions) []string {
	for _, m := range a.Marks() {
		if m.Kind == frame.Watermark {
			out = append(out, fmt.Sprintf("watermark %d", m.Value))
		} else {
			out = append(out, m.Kind.String())
		}
	}
	return out
}

func check(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// B006, on channels and on inputs: whoever falls silent first, 5 comes out.
func TestAllIdleFlushesTheMaximumInEveryOrder(t *testing.T) {
	check(t, play(New(2), 0, 5, 1, 4, 0, frame.Idle, 1, frame.Idle), "[watermark 4 watermark 5 idle]")
	check(t, play(New(2), 0, 5, 1, 4, 1, frame.Idle, 0, frame.Idle), "[watermark 4 watermark 5 idle]")
	check(t, play(New(2), 0, 5, 0, frame.Idle, 1, 4, 1, frame.Idle), "[watermark 4 watermark 5 idle]")
	c := func() *Combined { return NewCombined(2, ReleaseIdle) }
	check(t, play(c(), 0, 5, 1, 4, 0, frame.Idle, 1, frame.Idle), "[watermark 4 watermark 5 idle]")
	check(t, play(c(), 0, 5, 1, 4, 1, frame.Idle, 0, frame.Idle), "[watermark 4 watermark 5 idle]")
}

// B006, second half (FLINK-40475): B resumes, says 4 again or catches up in part, and goes idle: nobody is stalled.
func TestChannelThatResumedInPartStallsNobody(t *testing.T) {
	v := New(2)
	play(v, 0, 5, 1, 3, 0, frame.Idle, 1, frame.Idle)
	check(t, play(v, 1, frame.Active, 1, 4), "[active]")
	check(t, play(v, 1, frame.Idle), "[idle]")
	check(t, play(v, 0, frame.Active, 0, 7), "[active watermark 7]")
	check(t, play(v, 1, frame.Active, 1, 6, 0, 8), "[watermark 8]")
	check(t, play(v, 1, 8, 1, 9, 0, 10), "[watermark 9]")
}

// FLINK-40475: the last channel to go idle is an unaligned one; the maximum is flushed all the same.
func TestUnalignedLastChannelStillFlushes(t *testing.T) {
	v := New(3)
	play(v, 0, 10, 1, 7, 2, frame.Idle, 2, frame.Active) // 2 is behind
	check(t, play(v, 0, frame.Idle, 1, frame.Idle, 2, frame.Idle), "[watermark 10 idle]")
}

// FLINK-40475: a channel that is ahead resumes beside unaligned ones only: its watermark comes at once, after active.
func TestResumedChannelAheadReleasesItsWatermark(t *testing.T) {
	v := New(3)
	play(v, 0, 10, 1, 7, 2, frame.Idle, 2, frame.Active, 0, frame.Idle, 1, frame.Idle)
	check(t, play(v, 0, frame.Active), "[watermark 10]")
}

func TestWatermarkOfAnIdleChannelIsIgnored(t *testing.T) {
	check(t, play(New(1), 0, 3, 0, frame.Idle, 0, 9, 0, frame.Active), "[watermark 3 idle active]")
}

// FLINK-38477: a finished channel neither holds anybody back nor drags an idle one to the end of time.
func TestFinishedChannelIsLeftOut(t *testing.T) {
	end := wm(frame.MaxWatermark)
	check(t, play(New(2), 0, 9, 1, 4, 0, end, 1, 6), "[watermark 4 watermark 6]")
	check(t, play(New(2), 0, 9, 1, 4, 0, end, 1, frame.Idle, 1, frame.Active, 1, 12, 1, end),
		fmt.Sprintf("[watermark 4 watermark 9 idle active watermark 12 watermark %d]", int64(frame.MaxWatermark)))
	check(t, play(New(2), 0, 9, 1, 4, 1, frame.Idle, 0, end), "[watermark 4 watermark 9 idle]")
	check(t, play(New(1), 0, frame.Idle, 0, end), fmt.Sprintf("[idle active watermark %d]", int64(frame.MaxWatermark)))
	c := func() *Combined { return NewCombined(2, ReleaseIdle) }
	check(t, play(c(), 0, 9, 1, 4, 0, end, 1, frame.Idle, 1, frame.Active, 1, 12, 1, end),
		fmt.Sprintf("[watermark 4 watermark 9 idle active watermark 12 watermark %d]", int64(frame.MaxWatermark)))
}

// A job stopped with a savepoint ends without the last watermark: no timer may fire.
func TestEndReleasesNothing(t *testing.T) {
	check(t, play(New(2), 0, 9, 1, 4, 1, frame.End, 1, frame.End, 0, frame.End), "[watermark 4 end]")
	check(t, play(NewCombined(2, ReleaseIdle), 0, 9, 1, 4, 1, frame.End, 1, frame.End, 0, frame.End), "[watermark 4 end]")
}

// B008: the rules side says one thing and is idle; timers follow the events, and stop following when it is back.
func TestIdleInputDoesNotHoldBackTheOther(t *testing.T) {
	c := NewCombined(2, ReleaseIdle)
	check(t, play(c, 0, 10, 0, 20), "[]")
	check(t, play(c, 1, frame.Idle), "[watermark 20]")
	check(t, play(c, 0, 30), "[watermark 30]")
	check(t, play(c, 1, frame.Active, 1, 5, 0, 40), "[]")
	if c.Out() != 30 {
		t.Errorf("at %d, want 30", c.Out())
	}
	check(t, play(c, 1, 35), "[watermark 35]")
}

// Before 1.14: the idle input holds the other, and nothing is flushed.
func TestHoldIdleTakesTheMinimumOfAll(t *testing.T) {
	c := NewCombined(2, HoldIdle)
	check(t, play(c, 0, 20, 1, 10, 1, frame.Idle), "[watermark 10]")
	check(t, play(c, 0, 30, 0, frame.Idle), "[idle]")
	if !c.IsIdle() || c.Input(1) != (Channel{Watermark: 10, Idle: true}) {
		t.Errorf("idle: %v, input %+v", c.IsIdle(), c.Input(1))
	}
	check(t, play(c, 1, 40), "[]")
	check(t, play(c, 1, frame.Active, 1, 25), "[active watermark 25]")
	check(t, play(c, 1, wm(frame.MaxWatermark)), "[watermark 30 idle]")
	check(t, play(c, 0, wm(frame.MaxWatermark)), fmt.Sprintf("[active watermark %d]", int64(frame.MaxWatermark)))
	if c.Input(0) != (Channel{Watermark: frame.MaxWatermark}) {
		t.Errorf("input %+v", c.Input(0))
	}
}

func TestOtherMarksAreNotTheValves(t *testing.T) {
	for _, s := range []interface {
		Step(int, frame.Mark) Actions
	}{New(1), NewCombined(1, ReleaseIdle)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%T took a barrier", s)
				}
			}()
			s.Step(0, frame.Mark{Kind: frame.Barrier})
		}()
	}
}

// B011: the consumer goes from two channels to one: the smaller watermark counts; a new producer is waited for.
func TestMergedChannelsTakeTheMinimum(t *testing.T) {
	v := New(1)
	a := v.Restore([]Channel{Merge(Channel{Watermark: 100}, Channel{Watermark: 40})})
	check(t, fmt.Sprint(texts(nil, a)), "[watermark 40]")

	v = New(2)
	a = v.Restore([]Channel{{Watermark: 100}, {Watermark: frame.MinWatermark}})
	check(t, fmt.Sprint(texts(nil, a)), "[]")
	check(t, play(v, 1, 40), "[watermark 40]")

	silent := Channel{Watermark: frame.MinWatermark} // has not said anything: it is waited for
	for _, got := range []Channel{Merge(Channel{Watermark: 100}, silent), Merge(silent, Channel{Watermark: 100})} {
		if got != silent {
			t.Errorf("one has not spoken: %+v", got)
		}
	}
	for _, behind := range []bool{true, false} {
		got := Merge(Channel{Watermark: 3, Behind: behind}, Channel{Watermark: 4, Behind: true})
		if other := Merge(Channel{Watermark: 4, Behind: true}, Channel{Watermark: 3, Behind: behind}); got != other || got.Behind != behind {
			t.Errorf("one that is behind, and one of which that is %v: %+v, %+v", behind, got, other)
		}
	}

	idle := Channel{Watermark: 7, Idle: true}
	if got := Merge(idle, Channel{Watermark: 9}); got != (Channel{Watermark: 7}) {
		t.Errorf("one idle: %+v", got)
	}
	if got := Merge(idle, Channel{Watermark: 9, Idle: true}); got != idle {
		t.Errorf("both idle: %+v", got)
	}
	for _, got := range []Channel{
		Merge(Channel{Watermark: frame.MaxWatermark}, idle),
		Merge(idle, Channel{Watermark: frame.MaxWatermark}),
	} {
		if got != idle {
			t.Errorf("one finished: %+v", got)
		}
	}
}

func TestRestoreReplaysWatermarkAndIdleness(t *testing.T) {
	v := New(3)
	play(v, 0, 10, 1, 7, 2, 3, 2, frame.Idle, 2, frame.Active, 2, 4, 0, frame.Idle)
	states := []Channel{v.Channel(0), v.Channel(1), v.Channel(2)}
	w := New(3)
	check(t, fmt.Sprint(texts(nil, w.Restore(states))), "[watermark 7]")
	for ch := range w.Channels() {
		if w.Channel(ch) != states[ch] {
			t.Errorf("channel %d: %+v, want %+v", ch, w.Channel(ch), states[ch])
		}
	}
	check(t, fmt.Sprint(texts(nil, New(2).Restore([]Channel{{Watermark: 5, Idle: true}, {Watermark: 8, Idle: true}}))), "[watermark 8 idle]")
	end := Channel{Watermark: frame.MaxWatermark}
	check(t, fmt.Sprint(texts(nil, New(2).Restore([]Channel{end, end}))), fmt.Sprintf("[watermark %d]", int64(frame.MaxWatermark)))
}

// oracle is the rule of the package comment, computed from scratch at every step.
type oracle struct {
	channels []Channel
	done     []bool
	out      int64
	idle     bool
}

func (o *oracle) step(ch int, m frame.Mark) []string {
	c := &o.channels[ch]
	var out []string
	switch {
	case o.done[ch]:
		return nil
	case m.Kind == frame.Watermark && m.Value == frame.MaxWatermark:
		o.done[ch] = true
	case m.Kind == frame.Watermark && !c.Idle && m.Value > c.Watermark:
		c.Watermark = m.Value
	case m.Kind == frame.Idle && !c.Idle:
		c.Idle = true
	case m.Kind == frame.Active && c.Idle:
		c.Idle, c.Behind = false, true
	default:
		return nil
	}
	if c.Watermark >= o.out {
		c.Behind = false
	}
	live, active, least, most := 0, 0, int64(frame.MaxWatermark), o.out
	for i, c := range o.channels {
		most = max(most, c.Watermark)
		if o.done[i] {
			continue
		}
		live++
		if c.Idle {
			continue
		}
		active++
		if !c.Behind {
			least = min(least, c.Watermark)
		}
	}
	idle := live > 0 && active == 0
	if o.idle && !idle {
		out = append(out, "active")
	}
	switch {
	case idle:
		least = most
	case live > 0 && least == frame.MaxWatermark:
		least = o.out // all are behind
	}
	if least > o.out {
		o.out = least
		out = append(out, fmt.Sprintf("watermark %d", least))
	}
	if idle && !o.idle {
		out = append(out, "idle")
	}
	o.idle = idle
	return out
}

func TestValveAgreesWithTheRuleComputedFromScratch(t *testing.T) {
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		n := 1 + rnd.IntN(6)
		v := New(n)
		o := &oracle{channels: make([]Channel, n), done: make([]bool, n), out: frame.MinWatermark}
		for i := range o.channels {
			o.channels[i].Watermark = frame.MinWatermark
		}
		for i := range 200 {
			ch := rnd.IntN(n)
			m := wm(int64(i/4 + rnd.IntN(12)))
			switch rnd.IntN(12) {
			case 0, 1, 2:
				m = frame.Mark{Kind: frame.Idle}
			case 3, 4, 5:
				m = frame.Mark{Kind: frame.Active}
			case 6:
				if rnd.IntN(20) == 0 {
					m = wm(frame.MaxWatermark)
				}
			}
			got, want := texts(nil, v.Step(ch, m)), o.step(ch, m)
			if fmt.Sprint(got) != fmt.Sprint(want) || v.Out() != o.out || v.IsIdle() != o.idle {
				t.Fatalf("seed %d step %d, channel %d, %v %d: %v, want %v", seed, i, ch, m.Kind, m.Value, got, want)
			}
		}
	}
}

// What comes out grows, and idle and active alternate.
func TestCombinedNeverGoesBack(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		c := NewCombined(1+rnd.IntN(3), Rule(rnd.IntN(2)))
		last, idle := int64(frame.MinWatermark), false
		for i := range 200 {
			m := wm(int64(i/3 + rnd.IntN(9)))
			switch rnd.IntN(6) {
			case 0:
				m = frame.Mark{Kind: frame.Idle}
			case 1:
				m = frame.Mark{Kind: frame.Active}
			}
			a := c.Step(rnd.IntN(len(c.inputs)), m)
			for _, m := range a.Marks() {
				switch m.Kind {
				case frame.Watermark:
					if m.Value <= last || idle {
						t.Fatalf("seed %d: watermark %d after %d, idle: %v", seed, m.Value, last, idle)
					}
					last = m.Value
				default:
					if idle == (m.Kind == frame.Idle) {
						t.Fatalf("seed %d: %v twice", seed, m.Kind)
					}
					idle = m.Kind == frame.Idle
				}
			}
		}
	}
}

func TestStepsDoNotAllocate(t *testing.T) {
	v, c := New(16), NewCombined(2, ReleaseIdle)
	at := int64(0)
	n := testing.AllocsPerRun(100, func() {
		at++
		for ch := range 16 {
			a := v.Step(ch, wm(at))
			for _, m := range a.Marks() {
				c.Step(0, m)
				c.Step(1, m)
			}
		}
		v.Idle(3)
		v.Active(3)
	})
	if n != 0 {
		t.Fatalf("%v allocations, want none", n)
	}
}

func BenchmarkWatermarkOfEachChannelInTurn(b *testing.B) {
	for _, n := range []int{1, 4, 128, 4096} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			v := New(n)
			for i := range b.N {
				v.Watermark(i%n, int64(i))
			}
		})
	}
}
