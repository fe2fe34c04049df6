package operator

import "container/heap"

// Callbacks is the queue of a subtask's processing-time callbacks: they run in time order, then in order of
// registration. The task runs the callbacks of time t once the clock is past t (Flink: FLINK-9857), so that an element
// of millisecond t is still before them.
type Callbacks struct {
	// Scope is that of the subtask: the operator that was at work when a call was registered is at work during the call,
	// so that failures are named by it. nil: nobody keeps account of that.
	Scope *Scope
	heap  callbackHeap
	next  uint64
}

// Callback is a registered call; Cancel takes it back.
type Callback struct {
	at    int64
	seq   uint64
	call  func(at int64) error
	owner *Runtime // the operator that registered it
	index int      // in the heap; -1 when fired or cancelled
}

// Schedule registers call for time at (ms). Calls happen on the subtask's goroutine between runs.
func (c *Callbacks) Schedule(at int64, call func(at int64) error) *Callback {
	cb := &Callback{at: at, seq: c.next, call: call}
	if c.Scope != nil {
		cb.owner = c.Scope.At
	}
	c.next++
	heap.Push(&c.heap, cb)
	return cb
}

// Cancel takes a callback back; one that has run already is left alone.
func (c *Callbacks) Cancel(cb *Callback) {
	if cb.index >= 0 {
		heap.Remove(&c.heap, cb.index)
	}
}

// Next is the time of the first callback; ok is false if nothing is registered.
func (c *Callbacks) Next() (at int64, ok bool) {
	if len(c.heap) == 0 {
		return 0, false
	}
	return c.heap[0].at, true
}

// Run calls every callback of a time <= upTo, those registered meanwhile for such a time included.
func (c *Callbacks) Run(upTo int64) error {
	for len(c.heap) != 0 && c.heap[0].at <= upTo {
		cb := heap.Pop(&c.heap).(*Callback)
		if c.Scope != nil {
			c.Scope.At, c.Scope.Run = cb.owner, nil
		}
		if err := cb.call(cb.at); err != nil {
			return err
		}
	}
	return nil
}

type callbackHeap []*Callback

func (h callbackHeap) Len() int { return len(h) }
func (h callbackHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].seq < h[j].seq
}

func (h callbackHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *callbackHeap) Push(x any) {
	cb := x.(*Callback)
	cb.index = len(*h)
	*h = append(*h, cb)
}

func (h *callbackHeap) Pop() any {
	old := *h
	cb := old[len(old)-1]
	old[len(old)-1] = nil
	cb.index = -1
	*h = old[:len(old)-1]
	return cb
}
