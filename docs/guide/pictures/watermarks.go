package main

import (
	"fmt"
	"strings"

	"github.com/flott-dev/flott/internal/operator/valve"
)

// said is what an input says at some moment: a watermark, or that it is idle.
type said struct {
	when  float64
	input int
	mark  int64
	idle  bool
}

// stairs is a line that stays where it is until the next step.
type stairs struct{ points [][2]float64 }

func (s *stairs) step(when, value float64) {
	if n := len(s.points); n > 0 {
		s.points = append(s.points, [2]float64{when, s.points[n-1][1]})
	}
	s.points = append(s.points, [2]float64{when, value})
}

func (s *stairs) last() float64 { return s.points[len(s.points)-1][1] }

// path is the line up to a moment.
func (s *stairs) path(until float64, x, y func(float64) float64) string {
	var b strings.Builder
	s.step(until, s.last())
	for i, p := range s.points {
		fmt.Fprintf(&b, "%c%s %s", "ML"[min(i, 1)], num(x(p[0])), num(y(p[1])))
	}
	return b.String()
}

// marks is what the inputs say. Input 2 is idle for a while.
func marks() []said {
	return []said{
		{0, 0, 1, false},
		{0, 1, 0, false},
		{1, 1, 2, false},
		{2, 0, 4, false},
		{3, 1, 3, false},
		{4, 0, 6, false},
		{5, 1, 5, false},
		{6, 0, 7, false},
		{7, 1, 0, true},
		{8, 0, 9, false},
		{9.5, 1, 8, false},
		{10.5, 0, 11, false},
		{11, 1, 10, false},
		{12, 1, 12, false},
	}
}

func inputClass(input int) string { return [...]string{"inputa", "inputb"}[input] }

func watermarks() ([]byte, error) {
	const last = 13.0
	c := newCanvas(pictureWidth, 384, "Event time of an operator with two inputs",
		"The watermarks of two inputs over time, as stairs, and below them the event time of the operator: always that of the "+
			"input that is behind, except while that input is idle.")
	c.heading("event time with two inputs", "is that of the input that is behind; idle inputs are not waited for")
	x := func(t float64) float64 { return laneLeft + (laneRight-laneLeft)*t/last }
	y := func(v float64) float64 { return 322 - 21*v }
	for v := 0.0; v <= 12; v += 2 {
		c.line("grid", x(0), y(v), x(last), y(v))
		c.text(laneLeft-12, y(v)+4, "dim small end", fmt.Sprintf("12:%02.0f", v))
	}
	c.arrow("axis", x(0), y(0), x(last)+16, y(0))
	c.text(x(last)+16, y(0)+20, "dim small end", "time of the machine")
	c.text(margin, y(12)-12, "dim small", "event time")

	v := valve.NewCombined(2, valve.ReleaseIdle)
	var inputs [2]stairs
	var silence, out stairs // of input 2, of the operator
	for _, s := range marks() {
		switch {
		case s.idle:
			v.Idle(s.input)
			silence.step(s.when, inputs[s.input].last())
			c.text(x(s.when)+6, y(silence.last())+22, "small dim", "idle")
			c.path(inputClass(s.input), inputs[s.input].path(s.when, x, y))
			inputs[s.input] = stairs{}
		default:
			v.Active(s.input)
			v.Watermark(s.input, s.mark)
			inputs[s.input].step(s.when, float64(s.mark))
		}
		if v.Out() >= 0 {
			out.step(s.when, float64(v.Out()))
		}
	}
	resumed := inputs[1].points[0]
	silence.step(resumed[0], resumed[1])
	c.path("watermark band", out.path(last, x, y))
	c.path(inputClass(1)+" quiet", silence.path(resumed[0], x, y))
	for i := range inputs {
		c.path(inputClass(i), inputs[i].path(last, x, y))
	}
	c.line("inputa", laneLeft, 362, laneLeft+24, 362)
	c.text(laneLeft+30, 366, "small", "watermarks of input 1")
	c.line("inputb", laneLeft+180, 362, laneLeft+204, 362)
	c.text(laneLeft+210, 366, "small", "watermarks of input 2")
	c.line("watermark band", laneLeft+360, 362, laneLeft+384, 362)
	c.text(laneLeft+392, 366, "small", "event time of the operator")
	return c.svg(), nil
}
