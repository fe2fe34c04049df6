package async

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
)

// slot is an element of a queue test.
type slot struct{ id int }

func (s *slot) Emit()            {}
func (s *slot) Lend() *frame.Run { return nil }

// model is the queue by its definition: every answer is computed from the list of what was put.
type model struct {
	order    Order
	capacity int
	entries  []modelEntry
	done     int // completions so far
}

type modelEntry struct {
	id   int
	mark bool
	done int // 0: not yet, else the number of its completion
}

func (m *model) put(id int, mark bool) bool {
	if len(m.entries) >= m.capacity {
		return false
	}
	m.entries = append(m.entries, modelEntry{id: id, mark: mark})
	return true
}

func (m *model) complete(id int) {
	m.done++
	i := slices.IndexFunc(m.entries, func(e modelEntry) bool { return e.id == id })
	m.entries[i].done = m.done
}

// pop gives the id of what may be emitted next, -1 for nothing.
func (m *model) pop() int {
	at := -1
	if m.order == Ordered {
		if len(m.entries) > 0 && (m.entries[0].mark || m.entries[0].done > 0) {
			at = 0
		}
	} else {
		for i, e := range m.entries {
			if e.mark {
				if i == 0 {
					at = 0
				}
				break
			}
			if e.done > 0 && (at < 0 || e.done < m.entries[at].done) {
				at = i
			}
		}
	}
	if at < 0 {
		return -1
	}
	id := m.entries[at].id
	m.entries = slices.Delete(m.entries, at, at+1)
	return id
}

func (m *model) ids() []int {
	var out []int
	for _, e := range m.entries {
		out = append(out, e.id)
	}
	return out
}

func TestQueueIsItsDefinition(t *testing.T) {
	for _, order := range []Order{Ordered, Unordered} {
		for seed := range uint64(50) {
			rng := rand.New(rand.NewPCG(seed, 1))
			capacity := 1 + rng.IntN(12)
			q, m := NewQueue(order, capacity), &model{order: order, capacity: capacity}
			ids, byID, open := map[*Entry]int{}, map[int]*Entry{}, []int(nil)
			for step := range 400 {
				switch rng.IntN(4) {
				case 0, 1:
					e, mark := &Entry{}, rng.IntN(4) == 0
					if !mark {
						e.Call = &slot{step}
					}
					ok := q.TryPut(e)
					if ok != m.put(step, mark) {
						t.Fatalf("order %d, seed %d, step %d: put answered %v", order, seed, step, ok)
					}
					if ok {
						ids[e], byID[step] = step, e
						if !mark {
							open = append(open, step)
						}
					}
				case 2:
					if len(open) > 0 {
						i := rng.IntN(len(open))
						q.Complete(byID[open[i]])
						m.complete(open[i])
						open = slices.Delete(open, i, i+1)
					}
				case 3:
					got := -1
					if e := q.Pop(); e != nil {
						got = ids[e]
					}
					if want := m.pop(); got != want {
						t.Fatalf("order %d, seed %d, step %d: popped %d, want %d", order, seed, step, got, want)
					}
				}
				var all []int
				_ = q.Each(func(e *Entry) error {
					all = append(all, ids[e])
					return nil
				})
				if !slices.Equal(all, m.ids()) || q.Len() != len(all) {
					t.Fatalf("order %d, seed %d, step %d: holds %v (%d), want %v", order, seed, step, all, q.Len(), m.ids())
				}
			}
		}
	}
}

func TestQueueAllocatesOnlyForMarks(t *testing.T) {
	for _, order := range []Order{Ordered, Unordered} {
		q := NewQueue(order, 4)
		e := &Entry{Call: &slot{}}
		got := testing.AllocsPerRun(100, func() {
			q.TryPut(e)
			q.Complete(e)
			if q.Pop() != e {
				t.Fatal("an element that is complete was not popped")
			}
			e.done = false
		})
		if got != 0 {
			t.Errorf("order %d: %v allocations per element", order, got)
		}
	}
}
