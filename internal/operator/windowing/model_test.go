package windowing

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

// The model is Flink's window operator without state windows, namespaces or tables: maps, straight from the rules.

// item is an element of the model. What operators get is made of it.
type item struct {
	key, id, at int64
}

// instance is a window of a key.
type instance struct {
	key  int64
	span window.Time
}

// firing is a timer.
type firing struct {
	domain process.Domain
	of     instance
	at     int64
}

type model struct {
	program
	watermark, now int64
	contents       map[instance][]item
	counts         map[instance]int64 // the trigger's state
	fired          map[instance]int64 // the function's state per window
	inFlight       map[instance]bool  // windows that merge
	timers         map[firing]bool
	out, gone      []string // results, and windows that the function was told are gone
	late           []item
	dropped        int64
}

func newModel(p program) *model {
	return &model{
		program: p, watermark: math.MinInt64, contents: map[instance][]item{}, counts: map[instance]int64{},
		fired: map[instance]int64{}, inFlight: map[instance]bool{}, timers: map[firing]bool{},
	}
}

func (m *model) cleanup(w window.Time) int64 {
	if m.domain == process.ProcessingTime {
		return w.MaxTimestamp()
	}
	return exact(w.MaxTimestamp(), m.lateness)
}

// exact is the sum, or the end of time.
func exact(t, d int64) int64 {
	if t > math.MaxInt64-d {
		return math.MaxInt64
	}
	return t + d
}

func (m *model) isLate(w window.Time) bool {
	return m.domain == process.EventTime && m.cleanup(w) <= m.watermark
}

// element adds an element as WindowOperator.processElement does; the error is that of a refused merge.
func (m *model) element(x item) error {
	skipped := true
	spans, err := m.assigner.Assign(nil, x.at, m.now)
	if err != nil {
		return err
	}
	for _, span := range spans {
		if m.merges() {
			if span, err = m.merge(x.key, span); err != nil {
				return err
			}
		}
		w := instance{x.key, span}
		if m.isLate(span) {
			delete(m.inFlight, w)
			continue
		}
		skipped = false
		m.contents[w] = append(m.contents[w], x)
		m.answer(w, m.brain.element(m.at(w), x.at))
		m.register(m.domain, w, m.cleanup(span))
	}
	if skipped && m.domain == process.EventTime && exact(x.at, m.lateness) <= m.watermark {
		m.late = append(m.late, x)
		m.dropped++
	}
	return nil
}

// register sets a timer; cleanup timers at the end of time do not exist.
func (m *model) register(d process.Domain, w instance, at int64) {
	if at != math.MaxInt64 {
		m.timers[firing{d, w, at}] = true
	}
}

// merge adds a span to those of the key.
func (m *model) merge(key int64, added window.Time) (window.Time, error) {
	spans := []window.Time{added}
	for w := range m.inFlight {
		if w.key == key && w.span != added {
			spans = append(spans, w.span)
		}
	}
	result := added
	var err error
	m.assigner.(window.Merger[window.Time]).Merge(spans, func(to window.Time, sources []window.Time) {
		sources = slices.Clone(sources)
		if slices.Contains(sources, added) {
			result = to
		}
		sources = slices.DeleteFunc(sources, func(s window.Time) bool { return !m.inFlight[instance{key, s}] })
		if len(sources) == 1 && sources[0] == to {
			return
		}
		slices.SortStableFunc(sources, m.order)
		if m.isLate(to) || m.domain == process.ProcessingTime && to.MaxTimestamp() <= m.now {
			err = fmt.Errorf("merged into the late window %v", to)
		}
		m.mergeAll(key, to, sources)
	})
	m.inFlight[instance{key, result}] = true
	return result, err
}

func (m *model) mergeAll(key int64, to window.Time, sources []window.Time) {
	target := instance{key, to}
	ctl := m.at(target)
	ctl.sources = sources
	m.brain.merge(ctl)
	var all []item
	for _, s := range sources {
		w := instance{key, s}
		all = append(all, m.contents[w]...)
		delete(m.contents, w)
		delete(m.inFlight, w)
		if s != to {
			m.brain.clear(m.at(w))
			delete(m.timers, firing{m.domain, w, m.cleanup(s)})
		}
	}
	if len(all) != 0 {
		m.contents[target] = all
	}
	m.inFlight[target] = true
	m.register(m.domain, target, m.cleanup(to))
}

func (m *model) answer(w instance, r window.TriggerResult) {
	if r.Fires() {
		m.fire(w)
	}
	if r.Purges() {
		delete(m.contents, w)
	}
}

// fire calls the function if there is something.
func (m *model) fire(w instance) {
	xs := m.contents[w]
	if len(xs) == 0 {
		return
	}
	shown := xs
	if m.evictor != nil {
		shown = m.evict(m.evictor.EvictBefore, xs)
		left := m.evict(m.evictor.EvictAfter, shown)
		if delete(m.contents, w); len(left) != 0 {
			m.contents[w] = left
		}
	}
	m.fired[w]++
	m.out = append(m.out, fmt.Sprintf("%s@%d", m.text(w, shown, m.fired[w]), w.span.MaxTimestamp()))
}

func (m *model) evict(ask func(*window.Eviction), xs []item) (left []item) {
	times := []int64{}
	for _, x := range xs {
		times = append(times, x.at)
	}
	e := &window.Eviction{ProcessingTime: m.now, Watermark: m.watermark}
	e.Reset(times)
	ask(e)
	for i, x := range xs {
		if !e.Evicted(i) {
			left = append(left, x)
		}
	}
	return left
}

// advance sets the time of a domain and fires what is due, the earliest first.
func (m *model) advance(d process.Domain, t int64) {
	if d == process.EventTime {
		m.watermark = t
	} else {
		m.now = t
	}
	for {
		next, found := firing{}, false
		for f := range m.timers {
			if f.domain == d && f.at <= t && (!found || f.at < next.at) {
				next, found = f, true
			}
		}
		if !found {
			return
		}
		delete(m.timers, next)
		m.timer(next)
	}
}

func (m *model) timer(f firing) {
	if m.merges() && !m.inFlight[f.of] {
		return
	}
	m.answer(f.of, m.brain.time(m.at(f.of), f.domain, f.at))
	if f.domain != m.domain || f.at != m.cleanup(f.of.span) {
		return
	}
	delete(m.contents, f.of)
	m.brain.clear(m.at(f.of))
	delete(m.inFlight, f.of)
	m.gone = append(m.gone, fmt.Sprintf("%d %v after %d@%d", f.of.key, f.of.span, m.fired[f.of], f.of.span.MaxTimestamp()))
	delete(m.fired, f.of)
}

// at is the trigger's view of a window.
func (m *model) at(w instance) *modelControl { return &modelControl{m: m, w: w} }

// control is what a brain sees of a window.
type control interface {
	watermark() int64
	now() int64
	end() int64
	register(d process.Domain, at int64)
	remove(d process.Domain, at int64)
	count() int64
	setCount(n int64)
	clearCount()
	eachMerged(f func(count int64))
}

type modelControl struct {
	m       *model
	w       instance
	sources []window.Time
}

func (c *modelControl) watermark() int64                    { return c.m.watermark }
func (c *modelControl) now() int64                          { return c.m.now }
func (c *modelControl) end() int64                          { return c.w.span.MaxTimestamp() }
func (c *modelControl) register(d process.Domain, at int64) { c.m.timers[firing{d, c.w, at}] = true }

func (c *modelControl) remove(d process.Domain, at int64) { delete(c.m.timers, firing{d, c.w, at}) }
func (c *modelControl) count() int64                      { return c.m.counts[c.w] }
func (c *modelControl) setCount(n int64)                  { c.m.counts[c.w] = n }
func (c *modelControl) clearCount()                       { delete(c.m.counts, c.w) }

func (c *modelControl) eachMerged(f func(count int64)) {
	for _, s := range c.sources {
		f(c.m.counts[instance{c.w.key, s}])
	}
}

// brain is a trigger, whatever keeps its state: a pseudo-random mixture of what triggers do.
type brain struct {
	seed   uint64
	domain process.Domain // of its own timers
	every  int64          // fires at every so many elements; 0: never
	period int64          // timers in between; 0: none
	purge  int            // of 4 firings, how many purge
	forget bool           // takes timers back at times
	leave  bool           // leaves timers behind
}

func newBrain(rng *rand.Rand) brain {
	b := brain{seed: rng.Uint64(), domain: process.Domain(rng.IntN(2)), purge: rng.IntN(5) - 1, forget: rng.IntN(3) == 0, leave: rng.IntN(3) == 0}
	if rng.IntN(2) == 0 {
		b.every = 1 + rng.Int64N(4)
	}
	if rng.IntN(2) == 0 {
		b.period = 1 + rng.Int64N(20)
	}
	return b
}

// dice is a number that depends on what it is asked for only.
func (b *brain) dice(what int64, sides uint64) uint64 {
	h := (b.seed ^ uint64(what)) * 0x9e3779b97f4a7c15
	return (h >> 33) % sides
}

func (b *brain) fire(what int64) window.TriggerResult {
	if int(b.dice(what, 4)) < b.purge {
		return window.FireAndPurge
	}
	return window.Fire
}

func (b *brain) clock(c control) int64 {
	if b.domain == process.EventTime {
		return c.watermark()
	}
	return c.now()
}

func (b *brain) element(c control, ts int64) window.TriggerResult {
	n := c.count() + 1
	c.setCount(n)
	if c.end() <= b.clock(c) {
		return b.fire(n)
	}
	c.register(b.domain, c.end())
	if b.period != 0 && ts != math.MinInt64 {
		c.register(b.domain, exact(ts, b.period))
	}
	if b.forget && b.dice(n, 3) == 0 {
		c.remove(b.domain, c.end())
	}
	switch {
	case b.every != 0 && n%b.every == 0:
		return b.fire(n)
	case b.dice(n+99, 8) == 0:
		return window.Purge
	}
	return window.Continue
}

func (b *brain) time(c control, d process.Domain, at int64) window.TriggerResult {
	switch {
	case d == b.domain && at == c.end():
		return b.fire(at)
	case d != b.domain || b.period == 0:
		return window.Continue
	}
	c.register(b.domain, exact(at, 3*b.period))
	if b.forget && b.dice(at, 3) == 0 {
		c.remove(b.domain, c.end())
	}
	return b.fire(at)
}

func (b *brain) merge(c control) {
	sum := int64(0)
	c.eachMerged(func(n int64) { sum += n })
	c.setCount(sum)
	if c.end() > b.clock(c) {
		c.register(b.domain, c.end())
	}
	if b.forget && b.dice(sum, 2) == 0 {
		c.remove(b.domain, c.end())
	}
}

func (b *brain) clear(c control) {
	c.clearCount()
	if !b.leave {
		c.remove(b.domain, c.end())
	}
}
