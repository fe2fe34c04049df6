package rest

import "sync"

// metered is a job whose views tell how fast the counters of its subtasks grow. Nobody watches the job for it: each view is
// compared with those that were asked for before. It may be used by all goroutines.
type metered struct {
	Job

	mu     sync.Mutex
	meters [][]meter // by vertex and subtask
}

// A rate is over the last minute, as Flink's are, as far as views were asked for that are sampleGap apart or more: else over the
// time since the last of them, or since the subtask's start.
const (
	rateWindow = 60_000 // ms
	sampleGap  = 5_000  // ms
)

// meter remembers the counters of one execution of a subtask.
type meter struct {
	start   int64 // of the execution, ms since 1970
	samples []sample
}

// sample is what the counters were at a moment.
type sample struct {
	at     int64 // ms since 1970
	counts map[string]float64
}

// View implements Job.
func (m *metered) View() *View {
	v := m.Job.View()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.meters == nil {
		m.meters = make([][]meter, len(v.Vertices))
	}
	for i := range v.Vertices {
		subtasks := v.Vertices[i].Subtasks
		if len(m.meters[i]) != len(subtasks) {
			m.meters[i] = make([]meter, len(subtasks))
		}
		v.Vertices[i].Subtasks = make([]Subtask, len(subtasks))
		for j := range subtasks {
			t := subtasks[j]
			t.Rates = m.meters[i][j].rates(&t, v.Now)
			v.Vertices[i].Subtasks[j] = t
		}
	}
	return v
}

// rates are what the counters of a subtask have grown by, per second.
func (m *meter) rates(t *Subtask, now int64) map[string]float64 {
	if t.Start < 0 {
		return nil
	}
	if m.samples == nil || m.start != t.Start {
		*m = meter{start: t.Start, samples: []sample{{at: t.Start}}} // before it all counters were 0
	}
	counts, base := counters(t), m.base(now)
	rates := make(map[string]float64, len(counts))
	for name, n := range counts {
		rates[name] = 0
		if now > base.at {
			rates[name] = max(0, n-base.counts[name]) * 1000 / float64(now-base.at)
		}
	}
	if last := m.samples[len(m.samples)-1]; now >= last.at+sampleGap {
		m.samples = append(m.samples, sample{at: now, counts: counts})
	}
	return rates
}

// base is the sample that counters are compared with: the oldest of the window, or, if that is too young, the last before
// it. Older ones are forgotten.
func (m *meter) base(now int64) sample {
	for len(m.samples) > 1 && (m.samples[1].at <= now-rateWindow || m.samples[0].at < now-rateWindow && m.samples[1].at <= now-sampleGap) {
		m.samples = m.samples[1:]
	}
	return m.samples[0]
}

// counters are those of a subtask of which there are rates, by their names; those of its operators by "name.metric". Times
// are in ms.
func counters(t *Subtask) map[string]float64 {
	c := map[string]float64{
		"numRecordsIn": float64(t.RecordsIn), "numRecordsOut": float64(t.RecordsOut),
		"idleTimeMs": float64(t.Idle.Milliseconds()), "busyTimeMs": float64(t.Busy.Milliseconds()), "backPressuredTimeMs": float64(t.Backpressured.Milliseconds()),
	}
	for _, o := range t.Operators {
		for _, name := range []string{"numRecordsIn", "numRecordsOut"} {
			if n, ok := number(o.Metrics[name]); ok {
				c[metricName(o.Title)+"."+name] = n
			}
		}
	}
	return c
}
