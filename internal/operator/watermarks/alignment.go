package watermarks

import (
	"sync/atomic"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/watermark"
)

// Group is an alignment group within a process: the place where subtasks leave their watermarks and learn how far the
// fastest may go. All members of a job in one process share one Group. Processes of a cluster are joined by whoever
// reads Least in each of them and brings the least of the others back by Limit. Safe for concurrent use.
type Group struct {
	drift    int64
	interval int64
	members  atomic.Pointer[[]*Member]
	others   atomic.Int64 // least watermark in other processes
	bound    atomic.Int64 // no member may read on above it
	due      atomic.Int64 // when bound is computed again
}

// Member is one subtask's place in a group. Report, SetIdle and Leave are called by one goroutine, Paused by any.
type Member struct {
	group     *Group
	watermark atomic.Int64
	idle      atomic.Bool
}

// NewGroup returns a group of the strategy's alignment.
func NewGroup(a watermark.Alignment) *Group {
	g := &Group{drift: a.MaxDrift, interval: a.Interval}
	g.members.Store(&[]*Member{})
	g.others.Store(frame.MaxWatermark)
	g.bound.Store(frame.MaxWatermark)
	g.due.Store(frame.MinWatermark)
	return g
}

// Join adds a member, at frame.MinWatermark: until it has reported, others that have must wait.
func (g *Group) Join() *Member {
	m := &Member{group: g}
	m.watermark.Store(frame.MinWatermark)
	for {
		old := g.members.Load()
		all := append(append(make([]*Member, 0, len(*old)+1), *old...), m)
		if g.members.CompareAndSwap(old, &all) {
			return m
		}
	}
}

// Interval is how often (ms) the group looks: a paused source asks again after that time.
func (g *Group) Interval() int64 { return g.interval }

// Least is the lowest watermark of the members that are not idle, frame.MaxWatermark if there is none.
func (g *Group) Least() int64 {
	least := int64(frame.MaxWatermark)
	for _, m := range *g.members.Load() {
		if !m.idle.Load() {
			least = min(least, m.watermark.Load())
		}
	}
	return least
}

// Limit sets the lowest watermark of the group's members in other processes.
func (g *Group) Limit(least int64) { g.others.Store(least) }

// update computes the bound once per interval, whoever comes first.
func (g *Group) update(now int64) {
	due := g.due.Load()
	if now < due || !g.due.CompareAndSwap(due, watermark.Add(now, g.interval)) {
		return
	}
	g.bound.Store(watermark.Add(min(g.Least(), g.others.Load()), g.drift))
}

// Report tells the group the subtask's watermark.
func (m *Member) Report(ms int64) { m.watermark.Store(ms) }

// SetIdle tells the group whether the subtask is idle: nobody waits for an idle one.
func (m *Member) SetIdle(idle bool) { m.idle.Store(idle) }

// Paused reports whether the subtask is too far ahead of the others and must not read on. now is the processing time in
// ms.
func (m *Member) Paused(now int64) bool {
	m.group.update(now)
	return m.watermark.Load() > m.group.bound.Load()
}

// Group is the member's group.
func (m *Member) Group() *Group { return m.group }

// Leave takes the subtask out of the group, at its end.
func (m *Member) Leave() {
	g := m.group
	for {
		old := g.members.Load()
		rest := make([]*Member, 0, len(*old))
		for _, x := range *old {
			if x != m {
				rest = append(rest, x)
			}
		}
		if g.members.CompareAndSwap(old, &rest) {
			return
		}
	}
}
