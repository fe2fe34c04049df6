package task

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator/valve"
	"github.com/flott-dev/flott/serde"
)

// restored is a frame of a snapshot's data in flight.
type restored struct {
	channel channelState
	frame   *frame.Frame
}

// restoreInFlight puts the data in flight of the snapshot before everything else that the channels bring. With the same
// parallelism on both ends each channel has its own frames back. Otherwise elements go to the subtask that owns their key, or
// are dealt out, and come on the first channel of their edge. Event time stands still until they are through: each lay
// behind the watermark of one old channel, and the least of those is where the new channels begin.
func (t *Task) restoreInFlight() error {
	list := t.rts[0].Restored.List(inFlightList)
	if list == nil || len(t.inputs) == 0 {
		return nil
	}
	r := replay{t: t, readers: map[string]*serde.Reader{}, byGate: map[int][]restored{}}
	for _, item := range list.Items {
		if err := r.read(item); err != nil {
			return fmt.Errorf("restore data in flight: %w", err)
		}
	}
	for c := range t.d.Inputs {
		in := &t.d.Inputs[c]
		if frames := r.byGate[in.Gate]; len(frames) > 0 {
			delete(r.byGate, in.Gate)
			if err := r.gate(in.Gate, frames); err != nil {
				return fmt.Errorf("restore data in flight: %w", err)
			}
		}
	}
	return nil
}

// restoreInChain gives operators behind the head what was on its way to them when they were heads, on edges that other
// parallelisms made. It comes before all that the head emits; this subtask takes its share.
func (t *Task) restoreInChain() error {
	for node := 1; node < len(t.ops); node++ {
		list := t.rts[node].Restored.List(inFlightList)
		if list == nil {
			continue
		}
		for i, item := range list.Items {
			if i%t.d.Vertex.Parallelism != t.d.Subtask {
				continue
			}
			t.scope.At = t.rts[node]
			if err := t.pushInFlight(node, item); err != nil {
				return fmt.Errorf("restore data in flight: %w", err)
			}
		}
	}
	return nil
}

// pushInFlight gives the elements of an item to an operator of the chain. Only operators with one input are in chains.
func (t *Task) pushInFlight(node int, item []byte) error {
	to := t.ops[node].Inputs()[0]
	var key channelState
	b, err := key.decodeKey(item)
	if err != nil {
		return err
	}
	schema, b, err := cutSchema(b)
	if err != nil {
		return err
	}
	r := replay{t: t, readers: map[string]*serde.Reader{}}
	reader, err := r.reader(0, to.Type(), schema)
	if err != nil {
		return err
	}
	f, err := frame.Decode(to.Type(), reader, b)
	if err != nil {
		return err
	}
	run := f.Run()
	if run.N == 0 {
		return nil
	}
	t.scope.Run = &run
	if err := to.Push(&run); err != nil {
		return err
	}
	t.scope.Run = nil
	return nil
}

// cutSchema takes the schema from the front of the rest of an item.
func cutSchema(b []byte) (schema string, rest []byte, err error) {
	n, used := binary.Uvarint(b)
	if used <= 0 || n > uint64(len(b)-used) {
		return "", nil, errInFlight
	}
	return string(b[used : used+int(n)]), b[used+int(n):], nil
}

// replay is one restore of data in flight.
type replay struct {
	t       *Task
	readers map[string]*serde.Reader // by gate and schema; nil for the type's own
	byGate  map[int][]restored
}

var errInFlight = errors.New("the item is malformed")

// read decodes an item, unless the task has no such edge.
func (r *replay) read(item []byte) error {
	var x restored
	b, err := x.channel.decodeKey(item)
	if err != nil {
		return err
	}
	typ := r.typeOf(x.channel.gate)
	if typ == nil {
		return nil
	}
	if r.same(&x.channel) && x.channel.subtask != r.t.d.Subtask {
		return nil // of another subtask
	}
	schema, b, err := cutSchema(b)
	if err != nil {
		return err
	}
	reader, err := r.reader(x.channel.gate, typ, schema)
	if err != nil {
		return err
	}
	if x.frame, err = frame.Decode(typ, reader, b); err != nil {
		return err
	}
	r.byGate[x.channel.gate] = append(r.byGate[x.channel.gate], x)
	return nil
}

func (r *replay) typeOf(gate int) *frame.Type {
	for _, in := range r.t.d.Inputs {
		if in.Gate == gate {
			return r.t.d.Vertex.Inputs[gate].Type
		}
	}
	return nil
}

func (r *replay) reader(gate int, typ *frame.Type, schema string) (*serde.Reader, error) {
	if schema == typ.Schema().String() {
		return nil, nil
	}
	key := fmt.Sprint(gate, " ", schema)
	if reader := r.readers[key]; reader != nil {
		return reader, nil
	}
	old, err := serde.ParseSchema(schema)
	if err != nil {
		return nil, err
	}
	reader, err := typ.Reader(old)
	if err != nil {
		return nil, err
	}
	r.readers[key] = reader
	return reader, nil
}

// same reports whether the edge of a channel has the parallelism that it had.
func (r *replay) same(s *channelState) bool {
	for _, in := range r.t.d.Inputs {
		if in.Gate == s.gate {
			return s.parallelism == r.t.d.Vertex.Parallelism && s.peers == in.Peers
		}
	}
	return false
}

// gate gives the channels of an edge their frames.
func (r *replay) gate(gate int, frames []restored) error {
	first, peers := -1, map[int]int{}
	for c, in := range r.t.d.Inputs {
		if in.Gate != gate {
			continue
		}
		if first < 0 {
			first = c
		}
		peers[in.Peer] = c
	}
	if !r.same(&frames[0].channel) {
		return r.deal(gate, first, frames)
	}
	for _, x := range frames {
		c, ok := peers[x.channel.peer]
		if !ok {
			return errInFlight
		}
		r.t.gate.Backlog(c, x.frame)
	}
	return nil
}

// deal gives the first channel of an edge this subtask's share of the elements, and then all of its channels the event time
// that the old ones had come to.
func (r *replay) deal(gate, first int, frames []restored) error {
	marks, err := r.timeAfter(gate, frames) // before the frames lose theirs
	if err != nil {
		return err
	}
	own := r.t.owner(gate)
	for i, x := range frames {
		f, err := own(i, x.frame)
		if err != nil {
			return err
		}
		if f != nil {
			r.t.gate.Backlog(first, f)
		}
	}
	if len(marks) == 0 {
		return nil
	}
	for c, in := range r.t.d.Inputs {
		if in.Gate == gate {
			f := frame.New(r.typeOf(gate), 1)
			f.Marks = append(f.Marks, marks...)
			r.t.gate.Backlog(c, f)
		}
	}
	return nil
}

// owner is the way to this subtask's share of the frames of an edge, which are numbered.
func (t *Task) owner(gate int) func(i int, f *frame.Frame) (*frame.Frame, error) {
	edge, parallelism := t.d.Vertex.Inputs[gate], t.d.Vertex.Parallelism
	switch edge.Strategy {
	case graph.Hash:
		if parallelism == 1 {
			return func(_ int, f *frame.Frame) (*frame.Frame, error) { return unmarked(f), nil }
		}
		owners := exchange.Owners(edge.Partitioner.Key, parallelism, edge.MaxParallelism, t.d.Seed)
		return func(_ int, f *frame.Frame) (*frame.Frame, error) { return share(f, t.d.Subtask, owners) }
	case graph.Global:
		parallelism = 1
	}
	return func(i int, f *frame.Frame) (*frame.Frame, error) {
		if i%parallelism != t.d.Subtask {
			return nil, nil
		}
		return unmarked(f), nil
	}
}

// share is the elements of a frame that belong to a subtask; nil: there are none.
func share(f *frame.Frame, subtask int, owners func(*frame.Run, []uint16) error) (*frame.Frame, error) {
	r := f.Run()
	if r.N == 0 {
		return nil, nil
	}
	to := make([]uint16, r.N)
	if err := owners(&r, to); err != nil {
		return nil, err
	}
	at := make([]uint16, 0, r.N)
	for i, s := range to {
		if int(s) == subtask {
			at = append(at, uint16(i))
		}
	}
	if len(at) == 0 {
		return nil, nil
	}
	g := frame.New(f.Type, len(at))
	g.Gather(&r, at)
	return g, nil
}

// unmarked is a frame without marks; nil if nothing is left.
func unmarked(f *frame.Frame) *frame.Frame {
	if f.Marks = f.Marks[:0]; f.Empty() {
		return nil
	}
	return f
}

// timeAfter is what brings a new channel of an edge from where it begins to where the last of the old ones were after their
// data in flight.
func (r *replay) timeAfter(gate int, frames []restored) ([]frame.Mark, error) {
	old, err := r.t.oldChannels()
	if err != nil {
		return nil, err
	}
	key := channelState{gate: gate, parallelism: -1} // fits no old channel: all are merged
	before := key.restore(old)
	for i := range old {
		o := &old[i]
		for _, x := range frames {
			if k := &x.channel; o.gate == gate && k.subtask == o.subtask && k.peer == o.peer {
				o.state = advance(o.state, x.frame.Marks)
			}
		}
	}
	return towards(before, key.restore(old)), nil
}

// advance is the state of a channel after marks.
func advance(s valve.Channel, marks []frame.Mark) valve.Channel {
	for _, m := range marks {
		switch m.Kind {
		case frame.Watermark:
			s.Watermark = max(s.Watermark, m.Value)
		case frame.Idle:
			s.Idle = true
		case frame.Active:
			s.Idle = false
		}
	}
	return s
}

// towards is the marks that lead from one state of a channel to another.
func towards(from, to valve.Channel) (marks []frame.Mark) {
	if to.Watermark > from.Watermark || from.Idle && !to.Idle {
		if from.Idle {
			marks = append(marks, frame.Mark{Kind: frame.Active})
		}
		if to.Watermark > from.Watermark {
			marks = append(marks, frame.Mark{Kind: frame.Watermark, Value: to.Watermark})
		}
		from.Idle = false
	}
	if to.Idle && !from.Idle {
		marks = append(marks, frame.Mark{Kind: frame.Idle})
	}
	return marks
}
