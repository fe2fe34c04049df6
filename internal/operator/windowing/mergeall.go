package windowing

import (
	"math"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/process"
)

// mergeAll adds an element to all its windows that are not late, when windows merge; taken says whether there is one.
func (e *engine) mergeAll(input int, r *frame.Run, i int, ts int64) (taken bool, err error) {
	m := e.merging
	if err := m.load(i); err != nil {
		return false, err
	}
	for k := range e.assigned.n {
		w := e.assigned.view(&e.windows, k)
		if err := m.add(w.p); err != nil {
			return false, e.errorf("%w", err)
		}
		for j := range m.merges() {
			if err := e.merge(j); err != nil {
				return false, err
			}
		}
		result, state, fresh := m.result()
		if !e.look(*result) {
			if err := m.retire(result.p); err != nil {
				return false, err
			}
			continue
		}
		taken = true
		if err := e.add(state, input, r, i, ts, fresh); err != nil {
			return true, err
		}
	}
	return taken, m.store(i)
}

// merge moves what belongs to merged windows to the one that they have become.
func (e *engine) merge(j int) error {
	m, err := e.merging.merge(j)
	if err != nil {
		return e.errorf("%w", err)
	}
	if m.sources.n == 0 {
		return e.contents.merge(&m.kept, &m.states)
	}
	if err := e.mayMerge(m); err != nil {
		return err
	}
	e.look(m.result)
	e.space.choose(&e.at)
	e.merged = m
	e.phase = onMerge
	err = e.trig.merging.OnMerge(e.mergeCtx)
	e.phase, e.merged = atTime, nil
	if err != nil {
		return err
	}
	for k := range m.sources.n {
		w := m.sources.view(&e.windows, k)
		if w.is(&m.result) {
			continue // it has only become larger by what was merged into it
		}
		e.look(w)
		if err := e.clearTrigger(onMerged); err != nil {
			return err
		}
		if e.cleanup != math.MaxInt64 {
			e.keys.Delete(e.domain, e.at.b, e.cleanup)
		}
	}
	e.look(m.result)
	e.setCleanup() // at once: the element need not be one of the merged window
	return e.contents.merge(&m.kept, &m.states)
}

// mayMerge refuses a merge whose result is over already: what was merged would never be seen.
func (e *engine) mayMerge(m *merge) error {
	now, what := e.watermark, "the watermark"
	if e.domain == process.ProcessingTime {
		now, what = e.rt.Now, "processing time"
	}
	if e.cleanupTime(m.result.max) <= now {
		return e.errorf("merge windows: the window that they became ends at %d, with lateness at %d, which is not after %s %d",
			m.result.max, e.cleanupTime(m.result.max), what, now)
	}
	return nil
}

// eachMerged calls f for each window that is being merged, with its trigger state at hand.
func (e *engine) eachMerged(f func()) {
	m := e.merged
	if m == nil {
		panic("look at merged windows: no windows are being merged")
	}
	for k := range m.sources.n {
		w := m.sources.view(&e.windows, k)
		e.space.choose(&w)
		f()
	}
	e.space.choose(&m.result)
}
