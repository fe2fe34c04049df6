package valve

import (
	"github.com/flott-dev/flott/internal/frame"
)

// Rule says how a Combined treats idle inputs.
type Rule uint8

const (
	// ReleaseIdle: idle inputs hold nobody back; when all are idle, the maximum is flushed. The default.
	ReleaseIdle Rule = iota
	// HoldIdle: the minimum is taken over all inputs, and nothing is flushed (Flink before 1.14).
	HoldIdle
)

// Combined combines the inputs of one operator. It belongs to one goroutine.
type Combined struct {
	inputs []input
	rule   Rule
	out    int64
	ended  int
	idle   bool
}

type input struct {
	watermark int64 // highest but frame.MaxWatermark
	idle      bool
	finished  bool // said frame.MaxWatermark
	ended     bool
}

// NewCombined returns the combination of inputs that are active at frame.MinWatermark.
func NewCombined(inputs int, rule Rule) *Combined {
	c := &Combined{inputs: make([]input, inputs), rule: rule, out: frame.MinWatermark}
	for i := range c.inputs {
		c.inputs[i].watermark = frame.MinWatermark
	}
	return c
}

// Step takes a watermark, idleness or end mark of an input. Other kinds are not for it.
func (c *Combined) Step(in int, m frame.Mark) Actions { return step(c, in, m) }

// Watermark takes an input's watermark. One of an idle input is ignored (active is said first), except
// frame.MaxWatermark.
func (c *Combined) Watermark(in int, t int64) Actions {
	var a Actions
	p := &c.inputs[in]
	switch {
	case p.finished:
		return a
	case t == frame.MaxWatermark:
		p.finished, p.idle = true, false
	case p.idle || t <= p.watermark:
		return a
	default:
		p.watermark = t
	}
	c.settle(&a)
	return a
}

// Idle takes an input's word that it has nothing for now.
func (c *Combined) Idle(in int) Actions {
	var a Actions
	if p := &c.inputs[in]; !p.idle && !p.finished {
		p.idle = true
		c.settle(&a)
	}
	return a
}

// Active takes an input's word that it has elements again.
func (c *Combined) Active(in int) Actions {
	var a Actions
	if p := &c.inputs[in]; p.idle {
		p.idle = false
		c.settle(&a)
	}
	return a
}

// End takes the end of an input; the end of the last one is the operator's.
func (c *Combined) End(in int) Actions {
	var a Actions
	if p := &c.inputs[in]; !p.ended {
		p.ended = true
		c.ended++
		if c.ended == len(c.inputs) {
			a.add(frame.End, 0)
		}
	}
	return a
}

// Out is the operator's watermark, frame.MinWatermark before the first.
func (c *Combined) Out() int64 { return c.out }

// IsIdle reports whether every input that has not finished is idle.
func (c *Combined) IsIdle() bool { return c.idle }

// Input is the state of an input.
func (c *Combined) Input(in int) Channel {
	p := &c.inputs[in]
	if p.finished {
		return Channel{Watermark: frame.MaxWatermark}
	}
	return Channel{Watermark: p.watermark, Idle: p.idle}
}

// counts reports whether the input's watermark bounds the operator's.
func (c *Combined) counts(p *input) bool {
	return !p.finished && (!p.idle || c.rule == HoldIdle)
}

// settle emits what follows from the inputs' present state.
func (c *Combined) settle(a *Actions) {
	live, active := 0, 0
	least, most := int64(frame.MaxWatermark), c.out
	for i := range c.inputs {
		p := &c.inputs[i]
		most = max(most, p.watermark)
		if c.counts(p) {
			least = min(least, p.watermark)
		}
		if !p.finished {
			live++
			if !p.idle {
				active++
			}
		}
	}
	idle := live != 0 && active == 0
	if c.idle && !idle {
		a.add(frame.Active, 0)
	}
	if idle && c.rule == ReleaseIdle {
		least = most
	}
	if least > c.out {
		c.out = least
		a.add(frame.Watermark, least)
	}
	if idle && !c.idle {
		a.add(frame.Idle, 0)
	}
	c.idle = idle
}
