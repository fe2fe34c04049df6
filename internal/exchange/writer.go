package exchange

import (
	"errors"
	"fmt"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/host"
)

// ErrCancelled ends a writer that waited for room when its task was cancelled.
var ErrCancelled = errors.New("task cancelled")

// Options is what a writer gets from its task.
type Options struct {
	Type     *frame.Type
	Strategy graph.Strategy // resolved by the plan
	Waiter   host.Waiter
	Stopped  func() bool // true once the task is cancelled: no frame is sent any more, with ErrCancelled
	Subtask  int         // of the producer
	Budget   int         // bytes that all frames of this writer may take together; 0: frame.Bytes per frame
	EachRun  bool        // buffer timeout 0: send after every run
	MaxGroup int         // max parallelism of the consumer, for Hash
	Seed     uint64      // the job's hash seed
	Memory   Memory      // frames are reserved here; nil: not
	Isolated bool        // encode and decode every element, as between processes
	// Overtaking has barriers announced beside the queues and sent without waiting, and takes more than there is room for of
	// a task that asks for Room before it works.
	Overtaking bool
}

// Memory is the process's budget.
type Memory interface {
	Reserve(n int64) error
	Release(n int64)
}

// Writer is the end of a chain: it partitions runs over channels. It implements operator.Input. A frame is sent when it
// is full, at a mark that must not wait, and by Flush.
type Writer struct {
	opt      Options
	channels []*Channel
	open     []*frame.Frame // per channel; nil until something is written
	capacity int
	part     partitioner
	reserved int64
	latency  int    // the channel of the next latency marker
	shared   bool   // broadcast: one frame, open[0], goes to all channels
	over     uint64 // frames that a channel takes beyond what it holds
	tight    bool   // a channel may have as many frames as it holds, or more
}

// partitioner spreads a run over the writer's channels.
type partitioner interface {
	spread(w *Writer, r *frame.Run) error
}

// NewWriter returns a writer over the channels, which lie in the order of the consumers.
func NewWriter(p *graph.Partitioner, channels []*Channel, opt Options) *Writer {
	w := &Writer{opt: opt, channels: channels, open: make([]*frame.Frame, len(channels))}
	if opt.Overtaking {
		w.over = Overdraft
	}
	budget := frame.Bytes
	if opt.Budget > 0 {
		budget = min(budget, opt.Budget/(len(channels)*(Depth+1)))
	}
	w.capacity = opt.Type.FrameLen(max(budget, 1))
	w.part = newPartitioner(p, w)
	if opt.Strategy == graph.Broadcast && len(channels) > 1 {
		w.shared, w.open = true, w.open[:1]
	}
	w.latency = opt.Subtask % len(w.open)
	return w
}

// Type implements operator.Input.
func (w *Writer) Type() *frame.Type { return w.opt.Type }

// Push implements operator.Input.
func (w *Writer) Push(r *frame.Run) error {
	if err := w.part.spread(w, r); err != nil {
		return err
	}
	if w.opt.EachRun {
		return w.Flush()
	}
	return nil
}

// Mark implements operator.Input: marks go to every channel, but a latency marker to one of them, in turn: sent to all, its
// copies would multiply at every exchange. Watermarks and latency markers travel with the data, all others are sent at once.
func (w *Writer) Mark(m frame.Mark) error {
	if m.Kind == frame.LatencyMarker {
		c := w.latency
		w.latency = (c + 1) % len(w.open)
		return w.mark(c, m)
	}
	if w.opt.Overtaking && (m.Kind == frame.Barrier || m.Kind == frame.CancelBarrier) {
		return w.barrier(m)
	}
	return w.toAll(m)
}

func (w *Writer) toAll(m frame.Mark) error {
	for c := range w.open {
		if err := w.mark(c, m); err != nil {
			return err
		}
	}
	if m.Kind == frame.Watermark && !w.opt.EachRun {
		return nil
	}
	return w.Flush()
}

// Urgent reports whether a mark that must not wait, and what lies before it, finds room in every channel. There is none once a
// consumer has stood still while many checkpoints were taken or given up.
func (w *Writer) Urgent() bool {
	for _, c := range w.channels {
		if !c.full.below(urgent - 1) { // marks alone may fill a frame: two are sent at most
			return false
		}
	}
	return true
}

// barrier sends a mark that must not wait for room, which there is if Urgent says so, and announces a barrier.
func (w *Writer) barrier(m frame.Mark) error {
	over := w.over
	w.over = urgent
	err := w.toAll(m)
	w.over = over
	if err != nil || m.Kind != frame.Barrier {
		return err
	}
	for _, c := range w.channels {
		c.announce(m.Value)
	}
	return nil
}

// Room reports whether every channel has room for a frame. A writer with overtaking barriers takes more, so that a task which
// works only with Room hardly ever waits in the middle of its work.
func (w *Writer) Room() bool {
	if !w.tight {
		return true
	}
	for _, c := range w.channels {
		if !c.full.below(c.limit(0)) {
			return false
		}
	}
	w.tight = false
	return true
}

// AwaitRoom announces that the task waits for Room; it reports whether there is any already.
func (w *Writer) AwaitRoom() bool {
	room := true
	for _, c := range w.channels {
		if !c.full.below(c.limit(0)) && !c.AwaitRoom() {
			room = false
		}
	}
	return room
}

// mark puts a mark into the open frame of channel c; marks alone fill a frame, too.
func (w *Writer) mark(c int, m frame.Mark) error {
	f, err := w.frame(c)
	if err != nil {
		return err
	}
	f.AddMark(m)
	if len(f.Marks) < frame.MaxLen {
		return nil
	}
	return w.send(c)
}

// Flush sends everything that is open.
func (w *Writer) Flush() error {
	for c, f := range w.open {
		if f != nil && !f.Empty() {
			if err := w.send(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// Pending reports whether something has been written and not sent.
func (w *Writer) Pending() bool {
	for _, f := range w.open {
		if f != nil && !f.Empty() {
			return true
		}
	}
	return false
}

// frame is the open frame of channel c.
func (w *Writer) frame(c int) (*frame.Frame, error) {
	f := w.open[c]
	if f == nil {
		if f = w.fresh(c); f == nil {
			if err := w.reserve(); err != nil {
				return nil, err
			}
			f = frame.New(w.opt.Type, w.capacity)
		}
		w.open[c] = f
	}
	return f, nil
}

// reserve takes the memory of a new frame from the process's budget. Frames come back to the writer until it is closed,
// so what it has reserved stays near its channels' room.
func (w *Writer) reserve() error {
	if w.opt.Memory == nil {
		return nil
	}
	n := int64(w.capacity) * int64(w.opt.Type.Size+8)
	if err := w.opt.Memory.Reserve(n); err != nil {
		return fmt.Errorf("make a frame of %s: %w", w.opt.Type.Name, err)
	}
	w.reserved += n
	return nil
}

// Close gives the memory of the writer's frames back. Frames under way belong to their receivers, who end soon.
func (w *Writer) Close() {
	if w.opt.Memory != nil {
		w.opt.Memory.Release(w.reserved)
		w.reserved = 0
	}
}

// fresh is a returned frame; a shared one comes back on the channel of its last receiver.
func (w *Writer) fresh(c int) *frame.Frame {
	if !w.shared {
		return w.channels[c].Fresh()
	}
	for _, ch := range w.channels {
		if f := ch.Fresh(); f != nil {
			return f
		}
	}
	return nil
}

// send hands the open frame of channel c over, waiting for room if need be: that is the backpressure.
func (w *Writer) send(c int) error {
	f := w.open[c]
	w.open[c] = nil
	if w.opt.Isolated {
		if err := f.Recode(); err != nil {
			return err
		}
	}
	if !w.shared {
		return w.offer(c, f)
	}
	f.Share(len(w.channels))
	for c := range w.channels {
		if err := w.offer(c, f); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) offer(c int, f *frame.Frame) error {
	ch := w.channels[c]
	for {
		if w.opt.Stopped() { // an operator that emits for long, as at a watermark with many keys, ends with this frame
			return ErrCancelled
		}
		if ch.offer(f, ch.limit(w.over)) {
			break
		}
		if !ch.awaitRoom(ch.limit(w.over)) {
			w.opt.Waiter.Wait(host.Backpressured, host.Forever)
		}
	}
	w.tight = w.tight || !ch.full.below(ch.limit(0))
	return nil
}

// add copies elements [from, to) of a run to channel c.
func (w *Writer) add(c int, r *frame.Run, from, to int) error {
	for from < to {
		f, err := w.frame(c)
		if err != nil {
			return err
		}
		n := min(f.Room(), to-from)
		f.Append(r, from, from+n)
		from += n
		if f.Room() == 0 {
			if err := w.send(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// gather copies the elements at the given positions to channel c.
func (w *Writer) gather(c int, r *frame.Run, at []uint16) error {
	for len(at) != 0 {
		f, err := w.frame(c)
		if err != nil {
			return err
		}
		n := min(f.Room(), len(at))
		f.Gather(r, at[:n])
		at = at[n:]
		if f.Room() == 0 {
			if err := w.send(c); err != nil {
				return err
			}
		}
	}
	return nil
}
