package watermarks

import (
	"errors"
	"fmt"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/valve"
	"github.com/flott-dev/flott/watermark"
)

// PerSplit stands behind a source that may read several splits at a time: each gets an Operator of its own, and what comes
// out is their combination. As long as no split is named there is one Operator for all.
type PerSplit struct {
	fresh    func() *Operator
	idleness int64   // ms; 0: never idle
	member   *Member // alignment; nil: none

	rt      *operator.Runtime
	out     operator.Output
	current *splitEnd         // nil between splits
	ends    map[int]*splitEnd // by the number of the split
	splits  *valve.Splits     // nil: no split was named
	held    operator.HeldSplit
	rest    *operator.Callback // finds out that there is no split for long
}

// splitEnd is where an Operator sends what belongs to a split, or to the whole source.
type splitEnd struct {
	to    *PerSplit
	marks *Operator
	name  string
	split int // number; -1: the whole source
	over  bool
}

// NewPerSplit returns the operator of a strategy in a source, for elements of type t, which is T's handle. member is its
// place in the strategy's alignment group, nil without alignment.
func NewPerSplit[T any](t *frame.Type, s watermark.Strategy[T], member *Member) *PerSplit {
	return &PerSplit{
		idleness: s.Spec().Idleness, member: member, out: operator.NewOutput(t), ends: map[int]*splitEnd{},
		fresh: func() *Operator {
			o := New(t, s, nil)
			if member != nil {
				o.paused = member.Paused
			}
			return o
		},
	}
}

// Inputs implements operator.Operator.
func (p *PerSplit) Inputs() []operator.Input { return []operator.Input{p} }

// Output implements operator.Operator: there is the main output only.
func (p *PerSplit) Output(tag string) *operator.Output {
	if tag != "" {
		return nil
	}
	return &p.out
}

// Type implements operator.Input.
func (p *PerSplit) Type() *frame.Type { return p.out.Type }

// Open implements operator.Operator.
func (p *PerSplit) Open(rt *operator.Runtime) (err error) {
	p.rt = rt
	p.out.Bind(rt)
	p.current, err = p.open("", -1)
	return err
}

func (p *PerSplit) open(name string, split int) (*splitEnd, error) {
	e := &splitEnd{to: p, marks: p.fresh(), name: name, split: split}
	if err := e.marks.out.Connect(e, p.rt); err != nil {
		return nil, fmt.Errorf("make watermarks for each split: %w", err)
	}
	return e, e.marks.Open(p.rt)
}

// Close implements operator.Operator.
func (p *PerSplit) Close() error {
	if p.current != nil {
		p.current.marks.stop()
	}
	for _, e := range p.ends {
		e.marks.stop()
	}
	p.cancelRest()
	if p.member != nil {
		p.member.Leave()
	}
	return nil
}

// Push implements operator.Input.
func (p *PerSplit) Push(r *frame.Run) error {
	if p.current == nil {
		return errors.New("read elements of no split: the last one is over, and no other was named")
	}
	return p.current.marks.Push(r)
}

// Mark implements operator.Input.
func (p *PerSplit) Mark(m frame.Mark) error {
	if p.current == nil {
		return nil
	}
	return p.current.marks.Mark(m)
}

// Split says to which split what comes belongs from now on, or that a split is over.
func (p *PerSplit) Split(name string, over bool) error {
	if p.splits == nil { // what the source has said as a whole goes on from here
		whole := p.current.marks
		whole.stop()
		p.current, p.splits = nil, valve.NewSplits(whole.emitted, whole.isIdle)
	}
	n, ok := p.splits.Find(name)
	switch {
	case over:
		return p.end(name)
	case ok:
		p.current = p.ends[n]
		return nil
	}
	p.cancelRest()
	n, a := p.splits.Add(name)
	e, err := p.open(name, n)
	if err != nil {
		return err
	}
	p.ends[n], p.current = e, e
	return p.act(a)
}

// end takes the word that a split is over.
func (p *PerSplit) end(name string) error {
	if p.current != nil && p.current.name == name {
		p.current = nil
	}
	if n, ok := p.splits.Find(name); ok {
		return p.drop(p.ends[n])
	}
	return nil
}

// drop takes a split out of the reckoning: it is over, or its strategy has said that nothing follows.
func (p *PerSplit) drop(e *splitEnd) error {
	e.over = true
	e.marks.stop()
	delete(p.ends, e.split)
	if err := p.act(p.splits.Remove(e.split)); err != nil {
		return err
	}
	if p.splits.Len() == 0 && p.idleness > 0 {
		p.rest = p.rt.Timers.Schedule(watermark.Add(p.rt.Now, p.idleness), func(int64) error {
			p.rest = nil
			return p.act(p.splits.Rest())
		})
	}
	return nil
}

func (p *PerSplit) cancelRest() {
	if p.rest != nil {
		p.rt.Timers.Cancel(p.rest)
		p.rest = nil
	}
}

// HeldSplit implements operator.SplitHolder.
func (p *PerSplit) HeldSplit() string { return p.held.Read() }

// act sends what the combination of the splits answered.
func (p *PerSplit) act(a valve.Actions) error {
	p.held.Note(p.splits.Held())
	for _, m := range a.Marks() {
		if err := p.send(m); err != nil {
			return err
		}
	}
	return nil
}

// send sends a mark on and tells the alignment group.
func (p *PerSplit) send(m frame.Mark) error {
	if p.member != nil {
		switch m.Kind {
		case frame.Watermark:
			p.member.Report(m.Value)
		case frame.Idle, frame.Active:
			p.member.SetIdle(m.Kind == frame.Idle)
		}
	}
	return p.out.Mark(m)
}

// Type implements operator.Input.
func (e *splitEnd) Type() *frame.Type { return e.to.out.Type }

// Push implements operator.Input.
func (e *splitEnd) Push(r *frame.Run) error { return e.to.out.Push(r) }

// Mark implements operator.Input.
func (e *splitEnd) Mark(m frame.Mark) error {
	switch {
	case e.split < 0:
		return e.to.send(m)
	case e.over:
		return nil
	}
	switch m.Kind {
	case frame.Watermark:
		if m.Value == frame.MaxWatermark {
			return e.to.drop(e)
		}
	case frame.Idle, frame.Active:
	default:
		return e.to.send(m)
	}
	return e.to.act(e.to.splits.Step(e.split, m))
}
