package main

import (
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/flott-dev/flott/connector"
)

// touched is what a touch makes of its key's state: how often it was touched.
type touched struct {
	Key, Count uint64
	At         int64 // as in the touch
}

// meters is a sink that checks and times what comes out.
type meters struct {
	feed *feed
	all  []*meter // of the subtasks
}

func newMeters(f *feed, parallelism int) *meters {
	m := &meters{feed: f}
	for range parallelism {
		m.all = append(m.all, &meter{feed: f})
	}
	return m
}

// Writer implements connector.Sink.
func (m *meters) Writer(ctx connector.WriterContext) (connector.Writer[touched], error) {
	return m.all[ctx.Subtask()], nil
}

// total is how many elements have come out, and their digest.
func (m *meters) total() (n, digest uint64) {
	for _, w := range m.all {
		w.mu.Lock()
		n += w.n
		digest += w.digest
		w.mu.Unlock()
	}
	return n, digest
}

// first is when all subtasks had brought something out; 0: not yet.
func (m *meters) first() (last time.Duration) {
	for _, w := range m.all {
		w.mu.Lock()
		first := w.first
		w.mu.Unlock()
		if first == 0 {
			return 0
		}
		last = max(last, first)
	}
	return last
}

// limit makes the subtasks take so many elements per second together; 0: no limit.
func (m *meters) limit(rate float64) {
	for _, w := range m.all {
		w.mu.Lock()
		w.rate, w.free = rate/float64(len(m.all)), 0
		w.mu.Unlock()
	}
}

// begin starts a window; barriers says whether there will be any. The window's figures are those of end. It returns how many
// elements had come out: those after them are in the window.
func (m *meters) begin(barriers bool) (before uint64) {
	for _, w := range m.all {
		w.mu.Lock()
		before += w.n
		w.lookout = lookout{on: true, barriers: barriers, last: m.feed.now()}
		w.mu.Unlock()
	}
	return before
}

// outputs are the figures of a window: gaps between two outputs of a subtask, and the time from when elements were due.
type outputs struct {
	longest time.Duration // gap
	near    times         // the longest gaps around each barrier, sorted; without barriers, those at regular times
	latency latencies
}

func (m *meters) end() outputs {
	var o outputs
	for _, w := range m.all {
		w.mu.Lock()
		w.close()
		o.longest = max(o.longest, w.longest)
		o.near = append(o.near, w.gaps...)
		o.latency.merge(&w.latency)
		w.lookout = lookout{}
		w.mu.Unlock()
	}
	slices.Sort(o.near)
	return o
}

const (
	nearBarrier = 50 * time.Millisecond  // gaps that begin so long after a barrier belong to it
	overslept   = 50 * time.Millisecond  // how late a slow sink may be and still catch up
	regular     = 200 * time.Millisecond // where there are no barriers, how often one looks
)

// lookout is what a meter gathers from begin to end.
type lookout struct {
	on, barriers bool
	last         time.Duration // output
	longest      time.Duration // gap
	barrier      time.Duration // the last one; 0: none yet
	near         time.Duration // the longest gap around it
	gaps         []time.Duration
	latency      latencies
}

// pass notes a barrier.
func (w *lookout) pass(now time.Duration) {
	w.close()
	w.barrier, w.near = now, 0
}

func (w *lookout) close() {
	if w.barrier > 0 && w.near > 0 {
		w.gaps = append(w.gaps, w.near)
	}
	w.barrier = 0
}

// output notes that elements come out.
func (w *lookout) output(now time.Duration) {
	if !w.barriers && (w.barrier == 0 || now-w.barrier >= regular) {
		w.pass(w.last)
	}
	gap := now - w.last
	w.longest = max(w.longest, gap)
	if w.barrier > 0 && w.last < w.barrier+nearBarrier {
		w.near = max(w.near, gap)
	}
	w.last = now
}

// meter is the writer of a subtask.
type meter struct {
	feed *feed
	mu   sync.Mutex
	lookout
	n, digest uint64
	first     time.Duration
	rate      float64       // elements per second that it takes; 0: no limit
	free      time.Duration // when it takes the next one
}

// WriteRun implements connector.RunWriter.
func (m *meter) WriteRun(xs []touched, _ []int64) error {
	now := m.feed.now()
	wait := m.take(xs, now)
	if wait > 0 {
		time.Sleep(wait)
	}
	return nil
}

// take notes the elements and says how long a slow sink would work on them.
func (m *meter) take(xs []touched, now time.Duration) (wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.first == 0 {
		m.first = now
	}
	m.n += uint64(len(xs))
	for i := range xs {
		m.digest += rolling(xs[i].Key, xs[i].Count)
	}
	if m.on {
		m.output(now)
		for i := range xs {
			if at := xs[i].At; at > 0 {
				m.latency.add(now - time.Duration(at))
			}
		}
	}
	if m.rate == 0 {
		return 0
	}
	m.free = max(m.free, now-overslept) + time.Duration(float64(len(xs))/m.rate*1e9)
	return m.free - now
}

func (m *meter) Write(x touched, _ connector.ElementContext) error {
	return m.WriteRun([]touched{x}, nil)
}

// Flush implements connector.Writer: it comes with each barrier.
func (m *meter) Flush(bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.on && m.barriers {
		m.pass(m.feed.now())
	}
	return nil
}

func (m *meter) Close() error { return nil }

// latencies is a histogram of times with 32 buckets for each power of two: 3 % exact.
type latencies struct {
	buckets [64 * 32]uint64
	n       uint64
}

func (l *latencies) add(d time.Duration) {
	l.buckets[latencyBucket(uint64(max(d, 0)))]++
	l.n++
}

func (l *latencies) merge(o *latencies) {
	for i, n := range o.buckets {
		l.buckets[i] += n
	}
	l.n += o.n
}

// quantile is the time that this share of all did not exceed.
func (l *latencies) quantile(q float64) time.Duration {
	rank := max(1, uint64(q*float64(l.n)+0.5))
	var n uint64
	for i, c := range l.buckets {
		if n += c; c > 0 && n >= rank {
			return latencyOf(i)
		}
	}
	return 0
}

func latencyBucket(ns uint64) int {
	if ns < 32 {
		return int(ns)
	}
	shift := bits.Len64(ns) - 6
	return (shift+1)*32 + int(ns>>shift) - 32
}

// latencyOf is the longest time of a bucket.
func latencyOf(bucket int) time.Duration {
	if bucket < 32 {
		return time.Duration(bucket)
	}
	shift := bucket/32 - 1
	return time.Duration((uint64(bucket%32)+33)<<shift - 1)
}
