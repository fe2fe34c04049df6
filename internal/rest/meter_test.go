package rest

import (
	"testing"
	"time"
)

// scripted is a job with one subtask whose counters a test sets.
type scripted struct {
	Job
	now, start int64
	in         int64
	busy       time.Duration
}

func (s *scripted) View() *View {
	t := Subtask{Start: s.start, End: -1, RecordsIn: s.in, RecordsOut: 2 * s.in, Busy: s.busy}
	t.Operators = []Operator{{Title: "to celsius", Metrics: map[string]any{"numRecordsIn": s.in, "name": "text"}}}
	return &View{Now: s.now, End: -1, Vertices: []Vertex{{Subtasks: []Subtask{t}}}}
}

func TestRatesAreOfTheLastMinuteAsFarAsItWasWatched(t *testing.T) {
	s := &scripted{start: 1000}
	m := &metered{Job: s}
	for _, step := range []struct {
		seconds, grown int64   // since the last step
		want           float64 // records per second
	}{
		{0, 0, 0},
		{100, 500, 5},             // since the start
		{3, 30, 530. / 103},       // too soon after the last
		{3, 30, 10},               // since the one 6 s ago
		{30, 0, 60. / 36},         // all that was watched
		{24, 0, 1},                // of a minute, to the second
		{7, 0, 0},                 // since the youngest that is a minute old
		{60, 600, 10},             // a minute later
		{600, 60, 0.1},            // nobody has asked for long
		{5, 0, 0},                 // not any more
		{5, -60 - 600 - 560, 100}, // started anew, see below
	} {
		s.now += step.seconds * 1000
		if s.now == 0 {
			s.now = s.start
		}
		s.in += step.grown
		if s.in == 0 && step.grown < 0 { // another attempt, one second old
			s.start, s.in = s.now-1000, 100
		}
		s.busy = time.Duration(s.in) * time.Millisecond
		got := m.View().Vertices[0].Subtasks[0].Rates
		for name, want := range map[string]float64{"numRecordsIn": step.want, "numRecordsOut": 2 * step.want, "busyTimeMs": step.want, "idleTimeMs": 0, "to_celsius.numRecordsIn": step.want} {
			if d := got[name] - want; d > 1e-9 || d < -1e-9 {
				t.Errorf("at %d ms, %s: %v per second, want %v", s.now, name, got[name], want)
			}
		}
	}
}

func TestSubtasksThatHaveNotStartedHaveNoRates(t *testing.T) {
	s := &scripted{start: -1, now: 5000}
	if r := (&metered{Job: s}).View().Vertices[0].Subtasks[0].Rates; r != nil {
		t.Errorf("%v", r)
	}
}
