package task

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/serde"
)

// ownKey is the key of numbers that are their own keys.
func ownKey(t *testing.T) *graph.Key {
	t.Helper()
	k, err := serde.KeyOf[int64]()
	if err != nil {
		t.Fatal(err)
	}
	return &graph.Key{Key: k, Extract: func() func(*frame.Run) serde.Column {
		return func(r *frame.Run) serde.Column {
			xs := slices.Clone(frame.Values[int64](r))
			return serde.Column{P: unsafe.Pointer(unsafe.SliceData(xs)), N: len(xs), Stride: 8}
		}
	}}
}

// item is a frame in flight on an old channel of the one edge.
func item(t *testing.T, key channelState, f *frame.Frame) []byte {
	t.Helper()
	x := inFlight{channel: key, frame: f}
	b, err := x.encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// going is a bench of a subtask of so many, with two channels of one edge into a chain of savers, whose node has lists of a
// snapshot, and what comes to that node's operator from then on.
func going(t *testing.T, subtask, parallelism, node, chain int, lists ...checkpoint.List) (b *bench, got *[]int64) {
	t.Helper()
	b, ss := savers(t, chain, 2)
	b.vertex.Parallelism, b.dep.Subtask = parallelism, subtask
	b.vertex.Inputs = []*plan.JobEdge{{Type: typeOf[int64](t), MaxParallelism: 128, Strategy: graph.Rebalance, Partitioner: &graph.Partitioner{}}}
	for i := range b.dep.Inputs {
		b.dep.Inputs[i].Peer, b.dep.Inputs[i].Peers = i, 2
	}
	runtime := b.dep.Runtime
	b.dep.Runtime = func(n *plan.ChainNode, scope *operator.Scope) *operator.Runtime {
		rt := runtime(n, scope)
		if n.Index == node {
			rt.Restored = &operator.Restored{Lists: lists}
		}
		return rt
	}
	got = new([]int64)
	ss[node].push = func(r *frame.Run) error {
		*got = append(*got, frame.Values[int64](r)...)
		return nil
	}
	return b, got
}

func (b *bench) end() error {
	for c := range b.in {
		b.send(c, mark(frame.End))
	}
	return b.run()
}

// After a change of parallelism each element in flight comes to one subtask: that which owns its key, the first one of all if
// the edge leads to one, or any.
func TestDataInFlightComesToItsOwnersAfterARescale(t *testing.T) {
	const old = 4 // subtasks, with one channel each
	key := ownKey(t)
	for _, strategy := range []graph.Strategy{graph.Hash, graph.Global, graph.Rebalance} {
		for _, now := range []int{1, 2, 3} {
			all := map[int64]int{} // elements, with the subtask that got them
			for subtask := range now {
				inFlightItems := checkpoint.List{Name: inFlightList}
				b, _ := going(t, subtask, now, 0, 1)
				for s := range old {
					f := b.frame(10*s, 10*s+1, watermark(int64(s)), 10*s+2)
					inFlightItems.Items = append(inFlightItems.Items, item(t, channelState{subtask: s, parallelism: old, peers: 1}, f))
				}
				none := channelState{gate: 7, parallelism: old, peers: 1} // of an edge that is no more
				inFlightItems.Items = append(inFlightItems.Items, item(t, none, b.frame(999)))
				marks := channelState{subtask: 1, parallelism: old, peers: 1}
				inFlightItems.Items = append(inFlightItems.Items, item(t, marks, b.frame(watermark(3)))) // without an element
				b, got := going(t, subtask, now, 0, 1, inFlightItems)
				b.dep.Seed = 5
				b.vertex.Inputs[0].Strategy, b.vertex.Inputs[0].Partitioner = strategy, &graph.Partitioner{Strategy: strategy, Key: key}
				if err := b.end(); err != nil {
					t.Fatal(err)
				}
				for _, x := range *got {
					if other, twice := all[x]; twice {
						t.Errorf("%v to %d: subtasks %d and %d got %d", strategy, now, other, subtask, x)
					}
					all[x] = subtask
					hash := key.HashOne(binary.LittleEndian.AppendUint64(nil, uint64(x)), 5)
					owner := keygroup.SubtaskOf(128, now, keygroup.Of(uint32(hash), 128))
					if strategy == graph.Hash && subtask != owner || strategy == graph.Global && subtask != 0 {
						t.Errorf("%v to %d: subtask %d got %d", strategy, now, subtask, x)
					}
				}
			}
			if len(all) != 3*old {
				t.Errorf("%v to %d: %d of %d elements came", strategy, now, len(all), 3*old)
			}
		}
	}
}

// With the same parallelism on both ends each channel has its own frames back, marks included, before what it brings.
func TestDataInFlightComesBackToItsChannel(t *testing.T) {
	list := checkpoint.List{Name: inFlightList}
	b, _ := going(t, 1, 2, 0, 1)
	for subtask := range 2 {
		for peer := range 2 {
			f := b.frame(10*subtask+peer, watermark(int64(10*(peer+1))))
			list.Items = append(list.Items, item(t, channelState{subtask: subtask, parallelism: 2, peer: peer, peers: 2}, f))
		}
	}
	b, got := going(t, 1, 2, 0, 1, list)
	b.build()
	b.task.ops[0].(*saver).mark = func(m frame.Mark) error {
		if m.Kind == frame.Watermark {
			e := b.task.EventTime()[0]
			b.note("of %d and %d", e.Channel(0).Watermark, e.Channel(1).Watermark)
		}
		return nil
	}
	b.send(0, 77)
	b.send(1, 78)
	if err := b.end(); err != nil {
		t.Fatal(err)
	}
	if want := []int64{10, 11, 77, 78}; !slices.Equal(*got, want) || !slices.Contains(b.log, "of 10 and 20") {
		t.Errorf("got %v, want %v; %q", *got, want, b.log)
	}
}

// What was on its way to an operator that has become part of a chain comes to it first, dealt out to its subtasks.
func TestDataInFlightComesToOperatorsInsideOfChains(t *testing.T) {
	var all []int64
	for subtask := range 2 {
		list := checkpoint.List{Name: inFlightList}
		b, _ := going(t, subtask, 2, 1, 2)
		for i := range 5 {
			list.Items = append(list.Items, item(t, channelState{subtask: i, parallelism: 5, peers: 1}, b.frame(i, watermark(9))))
		}
		list.Items = append(list.Items, item(t, channelState{parallelism: 5, peers: 1}, b.frame(watermark(9))))
		b, got := going(t, subtask, 2, 1, 2, list)
		b.send(0, 77)
		if err := b.end(); err != nil {
			t.Fatal(err)
		}
		if n := len(*got); n == 0 || (*got)[n-1] != 77 || slices.Contains(b.log, "b watermark 9") {
			t.Errorf("subtask %d: operator b got %v: %q", subtask, *got, b.log)
		}
		all = append(all, (*got)[:len(*got)-1]...)
	}
	if slices.Sort(all); !slices.Equal(all, []int64{0, 1, 2, 3, 4}) {
		t.Errorf("the subtasks got %v", all)
	}
}

// Elements in flight are read with the schema that they were written with.
func TestDataInFlightMayHaveAnOlderType(t *testing.T) {
	narrow := frame.New(typeOf[int32](t), 2)
	frame.Add(&narrow.Column, int32(-5), frame.NoTime)
	frame.Add(&narrow.Column, int32(6), frame.NoTime)
	texts := frame.New(typeOf[string](t), 1)
	frame.Add(&texts.Column, "no number", frame.NoTime)
	for node := range 2 { // at the head, and inside of the chain
		key := channelState{parallelism: 1, peers: 1}
		good := checkpoint.List{Name: inFlightList, Items: [][]byte{item(t, key, narrow), item(t, key, narrow)}}
		b, got := going(t, 0, 1, node, 2, good)
		if err := b.end(); err != nil || !slices.Equal(*got, []int64{-5, 6, -5, 6}) {
			t.Errorf("node %d got %v, %v", node, *got, err)
		}
		b, _ = going(t, 0, 1, node, 2, checkpoint.List{Name: inFlightList, Items: [][]byte{item(t, key, texts)}})
		var e *Error
		if err := b.end(); !errors.As(err, &e) || e.Operator != fmt.Sprint("op", node) || !strings.Contains(err.Error(), "restore data in flight") {
			t.Errorf("node %d takes texts as numbers: %v", node, err)
		}
	}
}

// A snapshot whose items are damaged is refused, wherever they are cut.
func TestDataInFlightThatIsCutAnywhereIsRefused(t *testing.T) {
	b, _ := going(t, 0, 1, 0, 1)
	key := channelState{parallelism: 1, peers: 2}
	whole := item(t, key, b.frame(1, 2))
	unknown := channelState{parallelism: 1, peer: 5, peers: 2}
	long := append(key.encodeKey(), binary.AppendUvarint(nil, 1<<62)...)
	noSchema := append(append(key.encodeKey(), 3), "???"...)
	for node := range 2 {
		damaged := [][]byte{long, noSchema}
		if node == 0 {
			damaged = append(damaged, item(t, unknown, b.frame(1))) // a channel that its edge can't have
		}
		for cut := range whole {
			damaged = append(damaged, whole[:cut])
		}
		for i, x := range damaged {
			b, got := going(t, 0, 1, node, 2, checkpoint.List{Name: inFlightList, Items: [][]byte{x}})
			if err := b.end(); err == nil || !strings.Contains(err.Error(), "restore data in flight") || len(*got) != 0 {
				t.Errorf("node %d, damage %d: got %v, %v", node, i, *got, err)
			}
		}
	}
}

// The word that the operators had seen the end is refused if it is damaged.
func TestDamagedEndIsRefused(t *testing.T) {
	for _, x := range [][]byte{{}, {0x80}, {0}, {0, 0x80}} {
		b, _ := going(t, 0, 1, 0, 1, checkpoint.List{Name: endedList, Items: [][]byte{x}})
		if err := b.end(); err == nil || !strings.Contains(err.Error(), "restore the end of the input: an item is malformed") {
			t.Errorf("%v: %v", x, err)
		}
	}
}
