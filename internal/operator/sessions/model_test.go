package sessions

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

// model is the general window operator by the book: merging window sets, a trigger and cleanup timers per window, nothing
// shared and nothing lazy.
type model struct {
	job     job
	time    int64 // watermark, or the clock
	windows map[int64][]*pane
	timers  map[timer]bool
	out     []string
	late    []string
	dropped int
}

type pane struct {
	window.Time
	texts []string
}

type timer struct {
	at  int64
	key int64
	w   window.Time
}

func newModel(j job) *model {
	return &model{job: j, time: math.MinInt64, windows: map[int64][]*pane{}, timers: map[timer]bool{}}
}

func (m *model) eventTime() bool { return m.job.domain == process.EventTime }

func sum(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}

func (m *model) cleanup(w window.Time) int64 {
	if m.eventTime() {
		return sum(w.MaxTimestamp(), m.job.lateness)
	}
	return w.MaxTimestamp()
}

func (m *model) fire(key int64, p *pane) {
	who := strconv.FormatInt(key, 10)
	switch m.job.key {
	case "text":
		who = "key " + who
	case "wide":
		who = "wide " + who
	}
	result := fmt.Sprint(p.texts)
	switch m.job.agg {
	case "sum":
		total := uint64(0)
		for _, text := range p.texts {
			total += number(text)
		}
		result = fmt.Sprint(total)
	case "polynomial", "wide":
		acc := polynomial{}.Create()
		for _, text := range p.texts {
			polynomial{}.Add(&acc, event{Text: text})
		}
		result = polynomial{}.Result(&acc)
	}
	m.out = append(m.out, fmt.Sprintf("%s %v %s@%d", who, p.Time, result, p.MaxTimestamp()))
}

// element is an element of that time, or of now.
func (m *model) element(ts int64, x event) {
	gap := m.job.gap.Millis
	if m.job.gap.Of != nil {
		gap = x.Gap
	}
	added := &pane{Time: window.Time{Start: ts, End: sum(ts, gap)}}
	var apart []*pane
	var merged []*pane
	for _, p := range m.windows[x.Key] {
		if p.Intersects(added.Time) {
			merged = append(merged, p)
		} else {
			apart = append(apart, p)
		}
	}
	slices.SortFunc(merged, func(a, b *pane) int { return cmp.Compare(a.Start, b.Start) })
	for _, p := range merged {
		delete(m.timers, timer{p.MaxTimestamp(), x.Key, p.Time})
		delete(m.timers, timer{m.cleanup(p.Time), x.Key, p.Time})
		added.Time = added.Cover(p.Time)
		added.texts = append(added.texts, p.texts...)
	}
	if m.eventTime() && m.cleanup(added.Time) <= m.time {
		m.windows[x.Key] = apart
		m.reject(ts, x)
		return
	}
	added.texts = append(added.texts, x.Text)
	m.windows[x.Key] = append(apart, added)
	if last := added.MaxTimestamp(); m.eventTime() && last <= m.time {
		m.fire(x.Key, added)
	} else {
		m.timers[timer{last, x.Key, added.Time}] = true
	}
	m.timers[timer{m.cleanup(added.Time), x.Key, added.Time}] = true
}

func (m *model) reject(ts int64, x event) {
	switch {
	case sum(ts, m.job.lateness) > m.time:
	case m.job.late != "":
		m.late = append(m.late, fmt.Sprintf("%v@%d", x, ts))
	default:
		m.dropped++
	}
}

// advance fires the timers until a watermark or clock, in time order, among equal times by key.
func (m *model) advance(to int64) {
	if m.eventTime() {
		m.time = to
	}
	for {
		var due []timer
		for t := range m.timers {
			if t.at <= to {
				due = append(due, t)
			}
		}
		if len(due) == 0 {
			return
		}
		t := slices.MinFunc(due, func(a, b timer) int { return cmp.Compare(a.at, b.at) })
		delete(m.timers, t)
		i := slices.IndexFunc(m.windows[t.key], func(p *pane) bool { return p.Time == t.w })
		if i < 0 {
			continue
		}
		if t.at == t.w.MaxTimestamp() {
			m.fire(t.key, m.windows[t.key][i])
		}
		if t.at == m.cleanup(t.w) {
			m.windows[t.key] = slices.Delete(m.windows[t.key], i, i+1)
		}
	}
}

// trial is one random job with its input.
type trial struct {
	job
	rng   *rand.Rand
	model *model
	h     *harness
	twin  *harness // the general driver, or nil
	keys  int
	base  int64
	now   int64 // of the elements
	next  int
}

func newTrial(t *testing.T, seed uint64) *trial {
	rng := rand.New(rand.NewPCG(seed, 3))
	j := job{gap: static(1 + rng.Int64N(20)), slack: 1 + rng.IntN(5)}
	if rng.IntN(2) == 0 {
		j.gap = dynamic()
	}
	if rng.IntN(4) == 0 {
		j.domain = process.ProcessingTime
	}
	j.agg = []string{"", "polynomial", "wide", "sum"}[rng.IntN(4)]
	j.key = []string{"", "text", "wide"}[rng.IntN(3)]
	j.lateness = []int64{0, 0, 1, 10, 100, math.MaxInt64}[rng.IntN(6)]
	if rng.IntN(2) == 0 {
		j.late = "late"
	}
	base := []int64{0, 0, -50, math.MinInt64 + 1, math.MaxInt64 - 400, 1_700_000_000_000}[rng.IntN(6)]
	if j.domain == process.ProcessingTime {
		base = max(base, 0)
	}
	tr := &trial{job: j, rng: rng, model: newModel(j), h: j.open(t), keys: []int{1, 2, 5, 1000}[rng.IntN(4)], base: base, now: base}
	if j.domain == process.ProcessingTime {
		tr.clock(base)
	}
	return tr
}

// elements pushes a run.
func (tr *trial) elements(t *testing.T) {
	n := 1 + tr.rng.IntN(30)
	xs, times := make([]event, n), make([]int64, n)
	for i := range xs {
		if tr.rng.IntN(3) == 0 {
			tr.now = sum(tr.now, tr.rng.Int64N(8))
		}
		ts := tr.now
		if tr.rng.IntN(4) == 0 && tr.base > math.MinInt64+1 {
			ts -= tr.rng.Int64N(60)
		}
		key := int64(tr.rng.IntN(tr.keys)) + int64(tr.next/50)*int64(tr.keys/1000) // many keys are new after a while
		xs[i], times[i] = event{Key: key, Gap: 1 + tr.rng.Int64N(25), Text: strconv.Itoa(tr.next)}, ts
		if tr.rng.IntN(500) == 0 {
			xs[i].Gap = 1 << 42
		}
		tr.next++
		if tr.domain == process.ProcessingTime {
			ts = tr.h.rt.Now
		}
		tr.model.element(ts, xs[i])
	}
	timeless := tr.domain == process.ProcessingTime && tr.rng.IntN(2) == 0
	for _, h := range []*harness{tr.h, tr.twin} {
		if h == nil {
			continue
		}
		r := kit.Run(t, times, xs...)
		if timeless {
			r.Times = nil
		}
		kit.Must(t, h.give(r))
	}
}

func (tr *trial) clock(ms int64) {
	tr.h.clock(ms)
	if tr.twin != nil {
		tr.twin.clock(ms)
	}
	tr.model.advance(ms - 1)
}

func (tr *trial) progress() {
	switch {
	case tr.domain == process.ProcessingTime && tr.rng.IntN(6) == 0: // it is set back
		tr.clock(tr.h.rt.Now - tr.rng.Int64N(60))
	case tr.domain == process.ProcessingTime:
		tr.clock(sum(tr.h.rt.Now, tr.rng.Int64N(20)))
	case tr.now-30 > tr.now: // beyond the beginning of time
	default:
		tr.watermark(max(tr.now-tr.rng.Int64N(30), tr.model.time))
	}
}

// watermark gives a watermark and takes it out of what was recorded.
func (tr *trial) watermark(wm int64) {
	tr.h.watermark(wm)
	tr.model.advance(wm)
	marked := []*kit.Recorder{tr.h.Recorder, tr.h.side}
	if tr.twin != nil {
		tr.twin.watermark(wm)
		marked = append(marked, tr.twin.Recorder, tr.twin.side)
	}
	for _, r := range marked {
		if r == nil {
			continue
		}
		last := len(r.Got) - 1
		if r.Got[last] != fmt.Sprint("watermark ", wm) {
			tr.h.t.Fatalf("%q instead of watermark %d", r.Got[last], wm)
		}
		r.Got = r.Got[:last]
	}
}

// timeOf is the timestamp of a result.
func timeOf(result string) int64 {
	ts, _ := strconv.ParseInt(result[strings.LastIndexByte(result, '@')+1:], 10, 64)
	return ts
}

// compare looks at what came since the last time; free: among equal times the order is free.
func (tr *trial) compare(seed uint64, step int, free bool) {
	got, want := tr.h.Got, tr.model.out
	if free {
		byTime := func(a, b string) int { return cmp.Compare(timeOf(a), timeOf(b)) }
		if !slices.IsSortedFunc(got, byTime) {
			tr.h.t.Fatalf("seed %d, step %d: out of order: %q", seed, step, got)
		}
		slices.Sort(got)
		slices.Sort(want)
	}
	if !slices.Equal(got, want) {
		tr.h.t.Fatalf("seed %d, step %d (%+v): got\n%s\nwant\n%s", seed, step, tr.job, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	tr.agrees(seed, step, free)
	tr.h.Got, tr.model.out = nil, nil
	if tr.h.side != nil {
		if !slices.Equal(tr.h.side.Got, tr.model.late) {
			tr.h.t.Fatalf("seed %d, step %d: late: got %q, want %q", seed, step, tr.h.side.Got, tr.model.late)
		}
		tr.h.side.Got, tr.model.late = nil, nil
	}
	if got := readDropped(tr.h); got != int64(tr.model.dropped) {
		tr.h.t.Fatalf("seed %d, step %d: %d dropped, want %d", seed, step, got, tr.model.dropped)
	}
	tr.consistent(seed, step)
}

// consistent looks at the chains themselves.
func (tr *trial) consistent(seed uint64, step int) {
	o := tr.h.driver
	if o == nil { // it is the general one
		return
	}
	sessions, idle, free := 0, 0, 0
	for id := 1; id < o.used; id++ {
		s := &o.nodes[id]
		switch {
		case s.newer == freeNode:
			free++
			continue
		case s.empty():
			idle++
		default:
			sessions++
		}
		if s.older != 0 && (o.nodes[s.older].newer != uint32(id) || o.nodes[s.older].end >= s.start) {
			tr.h.t.Fatalf("seed %d, step %d: chain broken at node %d", seed, step, id)
		}
	}
	want := 0
	for _, ps := range tr.model.windows {
		want += len(ps)
	}
	if sessions != want || sessions != o.live || idle != o.idle {
		tr.h.t.Fatalf("seed %d, step %d: %d sessions (counted %d), want %d; %d idle (counted %d), %d free", seed, step, sessions, o.live, want, idle, o.idle, free)
	}
	if keys := o.keyer.table.Len(); keys != idle+chainsOf(o) {
		tr.h.t.Fatalf("seed %d, step %d: %d keys in the table, %d idle", seed, step, keys, idle)
	}
}

// chainsOf is the number of keys with sessions.
func chainsOf(o *driver) (n int) {
	for id := 1; id < o.used; id++ {
		if s := &o.nodes[id]; s.newer == 0 && !s.empty() {
			n++
		}
	}
	return n
}

// run gives elements and time to the end, and calls then after each step.
func (tr *trial) run(t *testing.T, seed uint64, then func(step int)) {
	for step := range 40 {
		tr.elements(t)
		tr.compare(seed, step, false)
		if tr.rng.IntN(3) == 0 {
			tr.progress()
			tr.compare(seed, step, true)
		}
		then(step)
	}
	if tr.domain == process.ProcessingTime {
		tr.clock(math.MaxInt64)
	} else {
		tr.watermark(frame.MaxWatermark)
	}
	tr.compare(seed, 40, true)
	kit.Must(t, tr.h.mark(kit.End()))
}

func TestSessionsBehaveAsTheGeneralOperator(t *testing.T) {
	for seed := range uint64(400) {
		newTrial(t, seed).run(t, seed, func(int) {})
	}
}
