package host

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestPipeHoldsProducersBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, n = 3, 100
		p := NewPipe[int](newAlarm(), limit)
		put := 0
		go func() {
			for i := range n {
				if err := p.Put(t.Context(), i); err != nil {
					t.Error(err)
				}
				put++
			}
			p.End(nil)
		}()
		synctest.Wait()
		for i := range n {
			if want := min(n, i+limit); put != want {
				t.Fatalf("%d items were taken and %d put, want %d", i, put, want)
			}
			if x, ok, _, err := p.Take(); x != i || !ok || err != nil {
				t.Fatalf("took %d, %v, %v, want %d", x, ok, err, i)
			}
			synctest.Wait()
		}
		if _, ok, ended, err := p.Take(); ok || !ended || err != nil {
			t.Errorf("after the end: ok %v, ended %v, %v", ok, ended, err)
		}
	})
}

func TestPipeEndsAfterItsLastItem(t *testing.T) {
	cause := errors.New("cause")
	w := newAlarm()
	p := NewPipe[string](w, 2)
	if _, ok, ended, _ := p.Take(); ok || ended {
		t.Error("something came out of an empty pipe")
	}
	if err := p.Put(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	w.Wait(Idle, Forever) // Put woke it
	p.End(cause)
	w.Wait(Idle, Forever) // so did End
	if x, ok, ended, err := p.Take(); x != "a" || !ok || ended || err != nil {
		t.Errorf("took %q, ok %v, ended %v, %v", x, ok, ended, err)
	}
	if _, ok, ended, err := p.Take(); ok || !ended || err != cause {
		t.Errorf("ok %v, ended %v, %v", ok, ended, err)
	}
}

func TestWaitingProducerGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPipe[int](newAlarm(), 1)
		ctx, cancel := context.WithCancelCause(context.Background())
		if err := p.Put(ctx, 1); err != nil {
			t.Fatal(err)
		}
		var err error
		go func() { err = p.Put(ctx, 2) }()
		synctest.Wait()
		if err != nil {
			t.Fatal("it did not wait")
		}
		cancel(nil)
		synctest.Wait()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if x, _, _, _ := p.Take(); x != 1 {
			t.Errorf("took %d", x)
		}
		if _, ok, _, _ := p.Take(); ok {
			t.Error("an item was put after its context had ended")
		}
	})
}
