package task

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator/valve"
)

// channelList is the list of a snapshot, beside those of the head operator, that keeps how far event time had come on each
// channel: docs/formats/snapshot.md describes its items.
const channelList = "channels"

// channelState is an item of the list.
type channelState struct {
	gate                 int // the number of the vertex's input
	subtask, parallelism int // of this end
	peer, peers          int // of the other
	state                valve.Channel
}

// The flags of an item.
const (
	channelIdle = 1 << iota
	channelBehind
)

// encode gives the bytes of an item.
func (s *channelState) encode() []byte {
	b := binary.LittleEndian.AppendUint64(s.encodeKey(), uint64(s.state.Watermark))
	flags := byte(0)
	if s.state.Idle {
		flags |= channelIdle
	}
	if s.state.Behind {
		flags |= channelBehind
	}
	return append(b, flags)
}

// encodeKey gives the bytes of the numbers of a channel.
func (s *channelState) encodeKey() (b []byte) {
	for _, n := range []int{s.gate, s.subtask, s.parallelism, s.peer, s.peers} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

// decodeKey reads the numbers of a channel and gives what follows them.
func (s *channelState) decodeKey(b []byte) (rest []byte, err error) {
	for _, n := range []*int{&s.gate, &s.subtask, &s.parallelism, &s.peer, &s.peers} {
		v, used := binary.Uvarint(b)
		if used <= 0 || v > 1<<30 {
			return nil, errors.New("decode the numbers of a channel: the item is malformed")
		}
		*n, b = int(v), b[used:]
	}
	return b, nil
}

func decodeChannelState(b []byte) (s channelState, err error) {
	if b, err = s.decodeKey(b); err != nil {
		return s, err
	}
	if len(b) != 9 || b[8]&^(channelIdle|channelBehind) != 0 {
		return s, errors.New("decode the event time of a channel: the item is malformed")
	}
	s.state.Watermark = int64(binary.LittleEndian.Uint64(b))
	s.state.Idle, s.state.Behind = b[8]&channelIdle != 0, b[8]&channelBehind != 0
	return s, nil
}

// channelStates is the list as it is now.
func (t *Task) channelStates() checkpoint.List {
	l := checkpoint.List{Name: channelList, Mode: checkpoint.Union}
	for c := range t.d.Inputs {
		s := t.channelKey(c)
		s.state = t.inputs[t.d.Inputs[c].Input].valve.Channel(t.local[c])
		l.Items = append(l.Items, s.encode())
	}
	return l
}

// channelKey is a channel without its state.
func (t *Task) channelKey(channel int) channelState {
	in := &t.d.Inputs[channel]
	return channelState{
		gate: in.Gate, subtask: t.d.Subtask, parallelism: t.d.Vertex.Parallelism, peer: in.Peer, peers: in.Peers,
	}
}

// restoreChannels gives the channels the event time that they had in the snapshot and tells the operators, before the
// first element. With another parallelism a channel begins where the last of those that it may stand for were.
func (t *Task) restoreChannels() error {
	old, err := t.oldChannels()
	if err != nil || old == nil || len(t.inputs) == 0 {
		return err
	}
	states := make([][]valve.Channel, len(t.inputs))
	for i, in := range t.inputs {
		states[i] = make([]valve.Channel, in.valve.Channels())
	}
	for c := range t.d.Inputs {
		states[t.d.Inputs[c].Input][t.local[c]] = t.channelKey(c).restore(old)
	}
	for i, in := range t.inputs {
		actions := in.valve.Restore(states[i])
		for ch := range states[i] {
			in.time.note(in.valve, ch)
		}
		t.scope.At = in.at
		if err := t.act(in, actions); err != nil {
			return fmt.Errorf("go on from the snapshot's watermarks: %w", err)
		}
	}
	return nil
}

// oldChannels are the channels of all subtasks in the snapshot; nil if it has none.
func (t *Task) oldChannels() ([]channelState, error) {
	list := t.rts[0].Restored.List(channelList)
	if list == nil {
		return nil, nil
	}
	old := make([]channelState, len(list.Items))
	for i, item := range list.Items {
		var err error
		if old[i], err = decodeChannelState(item); err != nil {
			return nil, err
		}
	}
	return old, nil
}

// restore is the state that a channel begins with.
func (s channelState) restore(old []channelState) valve.Channel {
	merged, found := valve.Channel{}, false
	for i := range old {
		o := &old[i]
		if o.gate != s.gate {
			continue
		}
		if o.parallelism == s.parallelism && o.peers == s.peers {
			if o.subtask == s.subtask && o.peer == s.peer {
				return o.state
			}
			continue
		}
		if !found {
			merged, found = o.state, true
			continue
		}
		merged = valve.Merge(merged, o.state)
	}
	if !found {
		return valve.Channel{Watermark: frame.MinWatermark}
	}
	return merged
}
