package exchange

import (
	"fmt"
	"math/rand/v2"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/serde"
)

func newPartitioner(p *graph.Partitioner, w *Writer) partitioner {
	n := len(w.channels)
	switch w.opt.Strategy {
	case graph.Rebalance, graph.Rescale: // rescale deals among the channels that its pointwise wiring gave it
		if n > 1 {
			return newScatter(n, &roundRobin{next: w.opt.Subtask % n, n: n})
		}
	case graph.Shuffle:
		if n > 1 {
			src := rand.NewPCG(p.Seed, uint64(w.opt.Subtask))
			return newScatter(n, &shuffle{rng: rand.New(src), n: n})
		}
	case graph.Hash:
		if n > 1 {
			return newScatter(n, newHashed(p.Key, n, w.opt))
		}
	case graph.Custom:
		return newScatter(n, &custom{n: n, pick: p.Select()})
	}
	return single{}
}

// single fills the frame of channel 0: forward, global, there is no other, or broadcast, whose one frame goes to all.
type single struct{}

func (single) spread(w *Writer, r *frame.Run) error { return w.add(0, r, 0, r.N) }

// chooser names the channel of each element of a run of at most frame.MaxLen elements.
type chooser interface {
	choose(r *frame.Run, out []uint16) error
}

// scatter copies each element to the channel that its chooser names: channels per element, then positions per channel,
// then one gather per channel.
type scatter struct {
	chooser
	target []uint16
	at     []uint16 // position lists, one of frame.MaxLen per channel
	count  []int
	piece  frame.Run
}

func newScatter(channels int, c chooser) *scatter {
	return &scatter{
		chooser: c, target: make([]uint16, frame.MaxLen),
		at: make([]uint16, channels*frame.MaxLen), count: make([]int, channels),
	}
}

func (s *scatter) spread(w *Writer, r *frame.Run) error {
	if r.N <= frame.MaxLen { // as it is, so that it knows the element that a selector fails at
		return s.spreadPiece(w, r)
	}
	for from := 0; from < r.N; from += frame.MaxLen {
		s.piece = r.Slice(from, min(r.N, from+frame.MaxLen))
		if err := s.spreadPiece(w, &s.piece); err != nil {
			return err
		}
	}
	return nil
}

func (s *scatter) spreadPiece(w *Writer, r *frame.Run) error {
	target := s.target[:r.N]
	if err := s.choose(r, target); err != nil {
		return err
	}
	if len(s.count) == 2 {
		s.splitTwo(target)
	} else {
		clear(s.count)
		for i, t := range target {
			s.at[int(t)*frame.MaxLen+s.count[t]] = uint16(i)
			s.count[t]++
		}
	}
	for c, n := range s.count {
		if n == 0 {
			continue
		}
		at := s.at[c*frame.MaxLen:]
		if err := w.gather(c, r, at[:n]); err != nil {
			return err
		}
	}
	return nil
}

// splitTwo writes every position to both lists and moves one end: no branch to mispredict, no counter in memory.
func (s *scatter) splitTwo(target []uint16) {
	zero, one := s.at[:frame.MaxLen], s.at[frame.MaxLen:][:frame.MaxLen]
	n0, n1 := 0, 0
	for i, t := range target {
		zero[n0&(frame.MaxLen-1)], one[n1&(frame.MaxLen-1)] = uint16(i), uint16(i)
		n1 += int(t)
		n0 += int(1 - t)
	}
	s.count[0], s.count[1] = n0, n1
}

// roundRobin deals elements in turn.
type roundRobin struct{ next, n int }

func (p *roundRobin) choose(_ *frame.Run, out []uint16) error {
	next := p.next
	for i := range out {
		out[i] = uint16(next)
		if next++; next == p.n {
			next = 0
		}
	}
	p.next = next
	return nil
}

// shuffle draws a channel per element from a seeded source.
type shuffle struct {
	rng *rand.Rand
	n   int
}

func (p *shuffle) choose(_ *frame.Run, out []uint16) error {
	for i := range out {
		out[i] = uint16(p.rng.IntN(p.n))
	}
	return nil
}

// custom asks the user.
type custom struct {
	n    int
	pick func(r *frame.Run, channels int, out []uint16) error
}

func (p *custom) choose(r *frame.Run, out []uint16) error {
	if err := p.pick(r, p.n, out); err != nil {
		return err
	}
	for i, t := range out {
		if int(t) >= p.n {
			return fmt.Errorf("partition element %d of the run: the partitioner answered channel %d, there are %d", i, t, p.n)
		}
	}
	return nil
}

// hashed sends each element to the subtask that owns its key group.
type hashed struct {
	key     *graph.Key
	extract func(*frame.Run) serde.Column
	scratch serde.KeyScratch
	seed    uint64
	max     uint32
	hashes  []uint64
	groups  []uint16
	owner   []uint16 // channel by key group
}

// Owners is the way to the subtask that each element of a run of at most frame.MaxLen elements belongs to by its key: maxGroup
// key groups over so many subtasks.
func Owners(key *graph.Key, subtasks, maxGroup int, seed uint64) func(r *frame.Run, out []uint16) error {
	return newHashed(key, subtasks, Options{MaxGroup: maxGroup, Seed: seed}).choose
}

func newHashed(key *graph.Key, channels int, opt Options) *hashed {
	h := &hashed{
		key: key, extract: key.Extract(), seed: opt.Seed, max: uint32(opt.MaxGroup),
		hashes: make([]uint64, frame.MaxLen), groups: make([]uint16, frame.MaxLen),
		owner: make([]uint16, opt.MaxGroup),
	}
	for g := range h.owner {
		h.owner[g] = uint16(keygroup.SubtaskOf(opt.MaxGroup, channels, g))
	}
	return h
}

func (h *hashed) choose(r *frame.Run, out []uint16) error {
	canon, err := h.key.Canon(h.extract(r), &h.scratch)
	if err != nil {
		return fmt.Errorf("take the key of an element: %w", err)
	}
	h.key.Hash(&canon, h.seed, h.hashes)
	groups := h.groups[:r.N]
	keygroup.Groups(h.hashes[:r.N], h.max, groups)
	owner := h.owner
	for i, g := range groups {
		out[i] = owner[g]
	}
	return nil
}
