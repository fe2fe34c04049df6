package exchange

import (
	"math/rand/v2"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/host"
)

// bell is a Waiter that counts wake-ups.
type bell struct{ rang int }

func (b *bell) Wait(host.Reason, int64) {}
func (b *bell) Yield(int64)             {}
func (b *bell) Wake()                   { b.rang++ }

// deadEnd is the waiter of a producer that is cancelled when it waits.
type deadEnd struct {
	bell
	over bool
}

func (d *deadEnd) Wait(host.Reason, int64) { d.over = true }
func (d *deadEnd) stopped() bool           { return d.over }

// A channel is a queue of Depth frames, whatever the two sides do and however often it wraps around.
func TestChannelIsABoundedQueue(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		c := &Channel{Producer: &bell{}, Consumer: &bell{}}
		var model []*frame.Frame
		for range 50 * Depth {
			if rng.IntN(2) == 0 {
				f := &frame.Frame{}
				if took := c.Offer(f); took != (len(model) < Depth) {
					t.Fatalf("seed %d: a channel with %d frames took one: %v", seed, len(model), took)
				} else if took {
					model = append(model, f)
				}
			} else {
				f := c.Poll()
				switch {
				case len(model) == 0 && f != nil, len(model) != 0 && f != model[0]:
					t.Fatalf("seed %d: took another frame than the oldest of %d", seed, len(model))
				case len(model) != 0:
					model = model[1:]
				}
			}
			if c.Len() != len(model) {
				t.Fatalf("seed %d: Len is %d with %d frames", seed, c.Len(), len(model))
			}
		}
	}
}

func TestConsumerIsWokenByEachFrame(t *testing.T) {
	consumer := &bell{}
	c := &Channel{Producer: &bell{}, Consumer: consumer}
	for i := range Depth {
		if c.Offer(&frame.Frame{}); consumer.rang != i+1 {
			t.Fatalf("%d frames rang %d times", i+1, consumer.rang)
		}
	}
	if c.Offer(&frame.Frame{}) || consumer.rang != Depth {
		t.Error("a frame that was not taken rang")
	}
}

// A slow consumer has its channel hold less; what is in it stays, and a waiting producer is woken when half of the new room is free.
func TestChannelsOfSlowConsumersHoldLess(t *testing.T) {
	for frames, want := range map[int]int{-1: LeastDepth, LeastDepth: LeastDepth, 3: 3, Depth: Depth, 100: Depth} {
		producer := &bell{}
		c := &Channel{Producer: producer, Consumer: &bell{}}
		for range Depth {
			c.Offer(&frame.Frame{})
		}
		c.Hold(frames)
		if c.Len() != Depth || c.Offer(&frame.Frame{}) || c.AwaitRoom() {
			t.Fatalf("holding %d: %d frames are in it, or there is room", frames, c.Len())
		}
		for producer.rang == 0 {
			if c.Poll() == nil {
				t.Fatalf("holding %d: the producer is not woken", frames)
			}
		}
		if got := c.Len(); got != want/2 {
			t.Errorf("holding %d: the producer is woken when %d are left, want %d", frames, got, want/2)
		}
		for c.Offer(&frame.Frame{}) {
		}
		if got := c.Len(); got != want {
			t.Errorf("holding %d: it holds %d, want %d", frames, got, want)
		}
		if !c.offer(&frame.Frame{}, c.limit(1)) || c.offer(&frame.Frame{}, c.limit(1)) {
			t.Errorf("holding %d: it takes another number than one beyond that", frames)
		}
		if got := c.limit(1000); got != urgent {
			t.Errorf("holding %d: it takes %d urgent ones, want %d", frames, got, urgent)
		}
	}
}

// Half of the room must be free before the producer is woken, and then once.
func TestWaitingProducerIsWokenOnceWhenHalfIsFree(t *testing.T) {
	producer := &bell{}
	c := &Channel{Producer: producer, Consumer: &bell{}}
	for range Depth {
		c.Offer(&frame.Frame{})
	}
	c.Poll()
	if producer.rang != 0 {
		t.Error("a producer that does not wait was woken")
	}
	c.Offer(&frame.Frame{})
	if c.AwaitRoom() {
		t.Fatal("there is no room")
	}
	for taken := 1; taken <= Depth; taken++ {
		c.Poll()
		want := 0
		if taken >= Depth/2 {
			want = 1
		}
		if producer.rang != want {
			t.Errorf("after %d of %d frames the producer was woken %d times, want %d", taken, Depth, producer.rang, want)
		}
	}
	if c.Poll() != nil || producer.rang != 1 {
		t.Error("an empty channel woke the producer again")
	}
}

func TestRoomThatCameMeanwhileEndsTheWait(t *testing.T) {
	producer := &bell{}
	c := &Channel{Producer: producer, Consumer: &bell{}}
	for range Depth - 1 {
		c.Offer(&frame.Frame{})
	}
	if !c.AwaitRoom() {
		t.Error("with one free place the producer would wait")
	}
	for range Depth - 1 {
		c.Poll()
	}
	if producer.rang != 0 {
		t.Error("a producer that did not wait after all was woken")
	}
}

// What a writer has reserved is bounded by its channels' room, however often they fill up and run empty.
func TestReservedMemoryDoesNotGrowWithBackpressure(t *testing.T) {
	for _, strategy := range []graph.Strategy{graph.Forward, graph.Rebalance, graph.Broadcast} {
		channels := 3
		if strategy == graph.Forward {
			channels = 1
		}
		m := &refusing{left: 1 << 40}
		w, cs := rig(t, strategy, channels, func(o *Options) { o.Memory, o.EachRun = m, true })
		var most int64
		for round := range 200 {
			held := make([]*frame.Frame, channels)
			for i := range 2 * channels * Depth {
				full := false
				for j, c := range cs {
					if held[j] == nil {
						held[j] = c.Poll() // the consumer is at work on a frame of each channel
					}
					full = full || c.Len() == Depth
				}
				if full {
					break
				}
				push(t, w, int64(i))
			}
			for j, c := range cs {
				if held[j] != nil {
					c.Return(held[j])
				}
				drain(c)
			}
			if round == 2 {
				most = w.reserved
			}
		}
		if w.reserved > most || most == 0 {
			t.Errorf("%v: %d bytes were reserved after 3 rounds of backpressure, %d after 200", strategy, most, w.reserved)
		}
		w.Close()
		if m.left != 1<<40 {
			t.Errorf("%v: %d bytes are missing after Close", strategy, 1<<40-m.left)
		}
	}
}
