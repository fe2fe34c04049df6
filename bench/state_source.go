package main

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/flott-dev/flott/connector"
)

// touch is an element of the suite state: the key whose state it changes and when it was due, in ns since the feed began;
// 0: at no certain time.
type touch struct {
	Key uint64
	At  int64
}

// feed is a source of touches: first each key once, then keys as pick chooses them, at the pace that is set meanwhile.
type feed struct {
	keys  uint64
	pick  func(u uint64) uint64 // the place of a key, of the update with this number
	stamp func(i uint64) int64  // what an element has in the place of when it was due, by its number; nil: nothing
	sent  atomic.Uint64         // elements
	epoch time.Time
	mu    sync.Mutex
	pace  *pace           // nil: no updates
	over  bool            // the source ends
	made  map[int]uint64  // elements by subtask
	all   map[int]*feeder // by subtask
}

// pace is how fast updates come. Each new one begins with what is then the next element.
type pace struct {
	rate  float64       // of all subtasks, per second; 0: as fast as the job takes them
	begin time.Duration // when the first one is due
}

func newFeed(keys int, pick func(uint64) uint64) *feed {
	return &feed{keys: uint64(keys), pick: pick, epoch: time.Now(), made: map[int]uint64{}, all: map[int]*feeder{}}
}

// now is the time since the feed was made.
func (f *feed) now() time.Duration { return time.Since(f.epoch) }

// at sets the pace of updates; 0 is full speed.
func (f *feed) at(rate float64) {
	f.set(func() { f.pace = &pace{rate, f.now()} })
}

// end ends the source.
func (f *feed) end() { f.set(func() { f.over = true }) }

func (f *feed) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	for _, r := range f.all {
		r.ctx.Wake()
	}
}

// state is what a reader asks for once in each poll.
func (f *feed) state() (p *pace, over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pace, f.over
}

// key is the key of an element of the whole feed, by its number.
func (f *feed) key(i uint64) uint64 {
	if i >= f.keys {
		i = f.pick(i - f.keys)
	}
	return i + 1
}

// answer counts all elements anew: how many there were, and the sum of key times count over each key's rolling counts, which
// begin after the given one.
func (f *feed) answer(before uint64) (n, digest uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := make([]uint32, f.keys+1)
	p := uint64(len(f.made))
	for subtask, made := range f.made {
		n += made
		for i := range made {
			counts[f.key(i*p+uint64(subtask))]++
		}
	}
	for key, c := range counts {
		first, last := before+1, before+uint64(c)
		digest += uint64(key) * ((first + last) * uint64(c) / 2)
	}
	return n, digest
}

// Bounded implements connector.Source.
func (f *feed) Bounded() bool { return true }

// Enumerator implements connector.Source.
func (f *feed) Enumerator(ctx connector.EnumeratorContext[stretch], _ []byte) (connector.Enumerator[stretch], error) {
	return &dealer{ctx: ctx, n: int(f.keys)}, nil
}

// Reader implements connector.Source.
func (f *feed) Reader(ctx connector.ReaderContext) (connector.Reader[touch, stretch], error) {
	r := &feeder{feed: f, ctx: ctx, closed: make(chan struct{}), buf: make([]touch, 0, feedRun)}
	f.mu.Lock()
	f.all[ctx.Subtask()] = r
	f.mu.Unlock()
	ctx.Go(r.tick)
	return r, nil
}

const (
	feedRun  = 512                    // elements that are made at a time
	feedTick = 200 * time.Microsecond // how often a reader that is ahead of its time looks again
)

// feeder is the reader of a subtask: its elements are those whose number leaves the subtask's as the remainder.
type feeder struct {
	*feed
	ctx    connector.ReaderContext
	begun  bool
	next   uint64 // number of its elements so far
	paced  *pace  // the last one seen
	base   uint64 // next, when it was
	buf    []touch
	once   sync.Once
	closed chan struct{}
}

// tick wakes the reader until it is closed.
func (r *feeder) tick() {
	t := time.NewTicker(feedTick)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			r.ctx.Wake()
		case <-r.closed:
			return
		case <-r.ctx.Context().Done():
			return
		}
	}
}

func (r *feeder) Poll(out *connector.Output[touch]) (connector.Status, error) {
	pace, over := r.state()
	if pace != r.paced {
		r.paced, r.base = pace, r.next
	}
	switch {
	case !r.begun:
		return connector.Nothing, nil
	case over:
		r.stop()
		return connector.Done, nil
	}
	p, s := uint64(r.ctx.Parallelism()), uint64(r.ctx.Subtask())
	loading := r.next*p+s < r.keys
	if !loading && pace == nil {
		return connector.Nothing, nil
	}
	n, paced := min(out.Room(), feedRun), !loading && pace.rate > 0
	if paced {
		due := int64((r.now()-pace.begin).Seconds()*pace.rate/float64(p)) - int64(r.next-r.base)
		n = int(min(int64(n), due))
	}
	if n <= 0 {
		return connector.Nothing, nil
	}
	r.buf = r.buf[:0]
	for range n {
		i := r.next*p + s
		if loading && i >= r.keys {
			break
		}
		t := touch{Key: r.key(i)}
		if paced {
			t.At = int64(pace.begin) + int64(float64(r.next-r.base)*1e9*float64(p)/pace.rate)
		}
		if r.stamp != nil {
			t.At = r.stamp(i)
		}
		r.buf = append(r.buf, t)
		r.next++
	}
	r.sent.Add(uint64(len(r.buf)))
	out.EmitSlice(r.buf)
	return connector.More, nil
}

// stop notes what was made and lets the ticker go.
func (r *feeder) stop() {
	r.once.Do(func() {
		r.mu.Lock()
		r.made[r.ctx.Subtask()] = r.next
		r.mu.Unlock()
		close(r.closed)
	})
}

func (r *feeder) AddSplits([]stretch) error {
	r.begun = true
	r.ctx.Wake()
	return nil
}

func (r *feeder) NoMoreSplits()                     {}
func (r *feeder) Snapshot(int64) ([]stretch, error) { return nil, nil }
func (r *feeder) Committed(int64) error             { return nil }
func (r *feeder) Close() error                      { r.stop(); return nil }

// uniform picks each of the keys as often as any other.
func uniform(keys int) func(uint64) uint64 {
	return func(u uint64) uint64 { return scramble(u) % uint64(keys) }
}

// skewed picks one key of a hundred for 99 updates of a hundred. Hot keys lie anywhere among the others.
func skewed(keys int) func(uint64) uint64 {
	few := uint64(max(1, keys/100))
	return func(u uint64) uint64 {
		x := scramble(u)
		if x%100 == 0 {
			return x / 100 % uint64(keys)
		}
		return x / 100 % few * 100 % uint64(keys)
	}
}

// scramble is a bijection of 64 bits that leaves no order.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
