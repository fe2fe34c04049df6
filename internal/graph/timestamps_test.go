package graph

import (
	"testing"

	"github.com/flott-dev/flott/internal/frame"
)

// eventTime appends an operator that needs timestamps.
func (s *sketch) eventTime(name string, from ...*Node) *Node {
	n := s.op(name, from...)
	n.NeedsTimestamps = true
	return n
}

// bare appends a source without timestamps.
func (s *sketch) bare(name string) *Node {
	n := s.source(name)
	n.Timestamps = TimestampsNone
	return n
}

// given appends an operator that gives timestamps.
func (s *sketch) given(name string, from ...*Node) *Node {
	n := s.op(name, from...)
	n.Timestamps = TimestampsGiven
	return n
}

func TestEventTimeWithoutTimestampsIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		build func(*sketch)
		want  []string
	}{
		"straight": {
			func(s *sketch) { s.eventTime("window", s.op("map", s.bare("elements"))) },
			[]string{`main.go:30: operator "window"`, `source "elements" (main.go:10) gives none`, "AssignTimestampsAndWatermarks"},
		},
		"union": {
			func(s *sketch) { s.eventTime("window", s.op("map", s.bare("a"), s.bare("b"))) },
			[]string{`main.go:40: operator "window"`, `source "a" (main.go:10) and source "b" (main.go:20) give none`},
		},
		"self union": {
			func(s *sketch) { a := s.bare("a"); s.eventTime("window", a, a) },
			[]string{`source "a" (main.go:10) gives none`},
		},
		"connected and quiet on both sides": {
			func(s *sketch) {
				n := s.op("co", s.bare("a"), s.bare("b"))
				n.Inputs[1].Input = 1
				s.eventTime("window", n)
			},
			[]string{`operator "window"`, `"a"`, `"b"`},
		},
		"second side of a join": {
			func(s *sketch) {
				n := s.eventTime("join", s.given("assign", s.bare("a")), s.bare("b"))
				n.Inputs[1].Input = 1
			},
			[]string{`operator "join"`, "by the second input", `source "b" (main.go:30) gives none`},
		},
		"first side of a join": {
			func(s *sketch) {
				n := s.eventTime("join", s.bare("a"), s.source("b"))
				n.Inputs[1].Input = 1
			},
			[]string{"by the first input", `source "a"`},
		},
		"side output of a source": {
			func(s *sketch) {
				a := s.bare("a")
				a.Side = map[string]*frame.Type{"bad": typeOf[int](s.t)}
				s.eventTime("window", a).Inputs[0].Tag = "bad"
			},
			[]string{`source "a"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSketch(t)
			c.build(s)
			wantMistake(t, s.g, c.want...)
		})
	}
}

func TestEventTimeIsAcceptedWhereTimestampsMayBe(t *testing.T) {
	for name, build := range map[string]func(*sketch){
		"unknown source":   func(s *sketch) { s.eventTime("window", s.source("a")) },
		"assigned":         func(s *sketch) { s.eventTime("window", s.op("map", s.given("assign", s.bare("a")))) },
		"one side of many": func(s *sketch) { s.eventTime("window", s.op("map", s.bare("a"), s.source("b"))) },
		"after a window":   func(s *sketch) { s.eventTime("second", s.eventTime("first", s.source("a"))) },
		"no event time":    func(s *sketch) { s.op("count", s.bare("a")) },
		"side of a function": func(s *sketch) {
			f := s.op("process", s.bare("a"))
			f.Side = map[string]*frame.Type{"side": typeOf[int](s.t)}
			s.eventTime("window", f).Inputs[0].Tag = "side"
		},
		"in a loop": func(s *sketch) {
			head := s.add(IterationHead, "head", s.bare("a"))
			tail := s.add(IterationTail, "tail", s.given("assign", head))
			head.Inputs = append(head.Inputs, Edge{From: tail, Feedback: true})
			s.eventTime("window", head)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSketch(t)
			build(s)
			if err := s.g.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMistakesOfEventTimeAreToldOnce: what an operator in event time emits has timestamps.
func TestMistakesOfEventTimeAreToldOnce(t *testing.T) {
	s := newSketch(t)
	first := s.eventTime("first", s.bare("a"))
	s.eventTime("second", first)
	without := make(bare)
	order, err := s.g.Order()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range order {
		without.note(n)
	}
	if len(without) != 1 || without[s.g.Nodes[0]] == nil {
		t.Errorf("without timestamps are %v, want the source only", without)
	}
	wantMistake(t, s.g, `operator "first"`)
}
