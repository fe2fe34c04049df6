package async

import "github.com/flott-dev/flott/internal/frame"

// Order says in which order a Queue gives its entries back.
type Order uint8

const (
	// Ordered: as they were put.
	Ordered Order = iota
	// Unordered: elements as they were completed, but none passes a mark.
	Unordered
)

// Entry is a place in a queue: an element whose call is under way, or a mark. It is in one queue at most, once.
type Entry struct {
	// Call is what an element's entry stands for; nil for a mark.
	Call Call
	// Mark is the mark of an entry without a call.
	Mark frame.Mark

	prev, next *Entry   // the queue, as it was put
	ready      *Entry   // the next completed entry of the segment
	segment    *segment // unordered
	done       bool
}

// Call is an element on its way through its call.
type Call interface {
	// Emit collects the results.
	Emit()
	// Lend gives the element as a run, valid until it is asked of any call of the operator again.
	Lend() *frame.Run
}

// segment is the stretch of an unordered queue between two marks.
type segment struct {
	open        int    // elements not yet completed
	first, last *Entry // completed elements, oldest completion first
	end         *Entry // the mark that closes the segment; nil for the last segment
	next        *segment
}

// Queue holds the elements whose calls are under way with the marks between them, up to a capacity that both use, and
// gives back what may be emitted. It knows nothing of goroutines and time and belongs to one of the former.
type Queue struct {
	order       Order
	capacity    int
	n           int
	head, tail  *Entry   // as they were put
	front, back *segment // unordered
}

// NewQueue returns an empty queue for at most capacity entries.
func NewQueue(order Order, capacity int) *Queue {
	q := &Queue{order: order, capacity: capacity}
	if order == Unordered {
		q.front = &segment{}
		q.back = q.front
	}
	return q
}

// Len is the number of entries, marks included.
func (q *Queue) Len() int { return q.n }

// Full reports whether TryPut would refuse an entry.
func (q *Queue) Full() bool { return q.n >= q.capacity }

// TryPut appends an entry; false if the queue is full.
func (q *Queue) TryPut(e *Entry) bool {
	if q.Full() {
		return false
	}
	q.n++
	if e.prev = q.tail; q.tail != nil {
		q.tail.next = e
	} else {
		q.head = e
	}
	q.tail = e
	if q.order == Unordered {
		q.assign(e)
	}
	return true
}

func (q *Queue) assign(e *Entry) {
	if e.Call != nil {
		e.segment = q.back
		q.back.open++
		return
	}
	q.back.end = e
	q.back.next = &segment{}
	q.back = q.back.next
}

// Complete says that the call of an element has ended: its entry may be popped. Once per entry.
func (q *Queue) Complete(e *Entry) {
	e.done = true
	s := e.segment
	if s == nil {
		return
	}
	s.open--
	if s.last != nil {
		s.last.ready = e
	} else {
		s.first = e
	}
	s.last = e
}

// Pop takes out the next entry that may be emitted; nil if there is none now.
func (q *Queue) Pop() *Entry {
	e := q.head
	if q.order == Unordered {
		e = q.popSegment()
	} else if e != nil && e.Call != nil && !e.done {
		e = nil
	}
	if e != nil {
		q.unlink(e)
	}
	return e
}

func (q *Queue) popSegment() *Entry {
	s := q.front
	if e := s.first; e != nil {
		if s.first = e.ready; s.first == nil {
			s.last = nil
		}
		e.ready, e.segment = nil, nil
		return e
	}
	if s.open != 0 || s.end == nil {
		return nil
	}
	q.front = s.next
	return s.end
}

func (q *Queue) unlink(e *Entry) {
	q.n--
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		q.head = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		q.tail = e.prev
	}
	e.prev, e.next = nil, nil
}

// Each calls f for every entry in the order in which they were put, completed or not, until it returns an error.
func (q *Queue) Each(f func(*Entry) error) error {
	for e := q.head; e != nil; e = e.next {
		if err := f(e); err != nil {
			return err
		}
	}
	return nil
}
