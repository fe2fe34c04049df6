package valve

import "github.com/flott-dev/flott/internal/frame"

// Splits combines the splits of one reader, which come and go, by the rules of a Valve. A split that is new holds the
// others back until it has spoken; one that is over holds nobody back and is not counted any more. Without a split nothing
// comes out: whether there will be another one is not known. It belongs to one goroutine.
type Splits struct {
	valve   Valve
	names   []string // by number
	numbers map[string]int
	free    []int // numbers of splits that are over
}

// NewSplits returns a combination of no splits. out and idle are what came out before there were any, frame.MinWatermark
// and false at first.
func NewSplits(out int64, idle bool) *Splits {
	return &Splits{valve: Valve{out: out, idle: idle}, numbers: map[string]int{}}
}

// Find is the number of a split that is there.
func (s *Splits) Find(name string) (split int, ok bool) {
	split, ok = s.numbers[name]
	return split, ok
}

// Name is the name of a split that is there.
func (s *Splits) Name(split int) string { return s.names[split] }

// Add takes another split, whose name is new, active at frame.MinWatermark, and says by which number it is known.
func (s *Splits) Add(name string) (split int, a Actions) {
	v := &s.valve
	if n := len(s.free); n > 0 {
		split, s.free = s.free[n-1], s.free[:n-1]
	} else {
		split = len(v.channels)
		v.channels, s.names = append(v.channels, channel{}), append(s.names, "")
	}
	s.names[split], s.numbers[name] = name, split
	v.channels[split] = channel{watermark: frame.MinWatermark}
	v.live++
	v.align(split)
	if v.idle {
		v.idle = false
		a.add(frame.Active, 0)
	}
	return split, a
}

// Step takes a watermark or idleness mark of a split. frame.MaxWatermark is no watermark here: a split that is over is
// removed.
func (s *Splits) Step(split int, m frame.Mark) Actions { return step(&s.valve, split, m) }

// Remove takes a split that is over out.
func (s *Splits) Remove(split int) Actions {
	var a Actions
	v := &s.valve
	c := &v.channels[split]
	v.leave(split)
	v.live--
	if c.idle {
		v.silent--
	}
	*c = channel{watermark: frame.MinWatermark, at: -1, finished: true}
	delete(s.numbers, s.names[split])
	s.free = append(s.free, split)
	if v.live > 0 {
		v.settle(&a)
	}
	return a
}

// Rest takes the word that there is no split and may be none for long: it is idle until there is one.
func (s *Splits) Rest() Actions {
	var a Actions
	if v := &s.valve; v.live == 0 && !v.idle {
		v.idle = true
		a.add(frame.Idle, 0)
	}
	return a
}

// Len is the number of splits.
func (s *Splits) Len() int { return s.valve.live }

// Out is the watermark that came out last, frame.MinWatermark before the first.
func (s *Splits) Out() int64 { return s.valve.out }

// IsIdle reports whether every split is idle.
func (s *Splits) IsIdle() bool { return s.valve.idle }

// Held is the name of the split that holds the watermark back: the one furthest behind of those that are active and
// aligned; "" if there is none.
func (s *Splits) Held() string {
	if h := s.valve.aligned; len(h) > 0 {
		return s.names[h[0]]
	}
	return ""
}
