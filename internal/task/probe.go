package task

import (
	"slices"

	"github.com/flott-dev/flott/internal/frame"
)

// probe is what a task remembers of the probes of one feedback loop.
type probe struct {
	loop   int64
	seen   []int64 // by channel: the highest value, -1 before the first
	passed int64
	in     *input // that the last one came on
}

// loopBits is where the loop begins in a probe's value: see frame.Probe and package iterate.
const loopBits = 40

// probe notes a probe that has come on a channel.
func (t *Task) probe(in *input, channel int, value int64) {
	i := slices.IndexFunc(t.probes, func(p probe) bool { return p.loop == value>>loopBits })
	if i < 0 {
		i = len(t.probes)
		p := probe{loop: value >> loopBits, seen: make([]int64, len(t.d.Inputs)), passed: -1}
		for c := range p.seen {
			p.seen[c] = -1
		}
		t.probes = append(t.probes, p)
	}
	p := &t.probes[i]
	p.seen[channel], p.in = max(p.seen[channel], value), in
}

// passProbes hands on the probes that have come on every channel that has not ended: nothing that was sent before them is
// still to come.
func (t *Task) passProbes() error {
	for i := range t.probes {
		p := &t.probes[i]
		least := int64(-1)
		for c, v := range p.seen {
			if !t.gate.Ended(c) && (least < 0 || v < least) {
				if least = v; v < 0 {
					break
				}
			}
		}
		if least <= p.passed {
			continue
		}
		p.passed = least
		t.scope.At = p.in.at
		if err := p.in.to.Mark(frame.Mark{Kind: frame.Probe, Value: least}); err != nil {
			return err
		}
	}
	return nil
}
