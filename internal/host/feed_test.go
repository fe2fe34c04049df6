package host

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// letters is a batch of at most 4.
type letters struct{ xs []int }

func (l *letters) Empty() bool { return len(l.xs) == 0 }

// alarm is a Waiter for tests on the consumer's side.
type alarm struct{ rang chan struct{} }

func newAlarm() *alarm              { return &alarm{rang: make(chan struct{}, 1)} }
func (a *alarm) Wait(Reason, int64) { <-a.rang }
func (a *alarm) Yield(int64)        {}
func (a *alarm) Wake() {
	select {
	case a.rang <- struct{}{}:
	default:
	}
}

func newLetters(ctx context.Context, w Waiter) *Feed[*letters] {
	return NewFeed(ctx, w, 2, func() *letters { return &letters{} })
}

func post(f *Feed[*letters], x int) bool {
	l, ok := f.Begin()
	if !ok {
		return false
	}
	l.xs = append(l.xs, x)
	f.Done(len(l.xs) == 4)
	return true
}

// drain takes until the feed has ended.
func drain(t *testing.T, f *Feed[*letters], w *alarm) (xs []int, err error) {
	t.Helper()
	for {
		l, ok, ended, err := f.Take()
		switch {
		case ok:
			if len(l.xs) == 0 || len(l.xs) > 4 {
				t.Errorf("a batch of %d", len(l.xs))
			}
			xs = append(xs, l.xs...)
			l.xs = l.xs[:0]
			f.Return(l)
		case ended:
			return xs, err
		default:
			w.Wait(Idle, Forever)
		}
	}
}

func TestFeedKeepsOrderUnderBackpressure(t *testing.T) {
	w := newAlarm()
	f := newLetters(context.Background(), w)
	go func() {
		for i := range 10_000 {
			post(f, i)
		}
		f.End(nil)
	}()
	xs, err := drain(t, f, w)
	if err != nil || len(xs) != 10_000 || !slices.IsSorted(xs) {
		t.Errorf("%d letters, %v", len(xs), err)
	}
}

func TestFeedServesSeveralProducers(t *testing.T) {
	w := newAlarm()
	f := newLetters(context.Background(), w)
	var group sync.WaitGroup
	for p := range 8 {
		group.Go(func() {
			for i := range 1000 {
				post(f, p*1000+i)
			}
		})
	}
	go func() { group.Wait(); f.End(nil) }()
	xs, _ := drain(t, f, w)
	slices.Sort(xs)
	for i, x := range xs {
		if x != i {
			t.Fatalf("letter %d is %d", i, x)
		}
	}
	if len(xs) != 8000 {
		t.Errorf("%d letters", len(xs))
	}
}

func TestFeedHandsOverAnOpenBatchToAHungrySubtask(t *testing.T) {
	w := newAlarm()
	f := newLetters(context.Background(), w)
	if _, ok, ended, _ := f.Take(); ok || ended {
		t.Fatal("something in an empty feed")
	}
	post(f, 7)
	w.Wait(Idle, Forever) // the producer woke it
	l, ok, _, _ := f.Take()
	if !ok || !slices.Equal(l.xs, []int{7}) {
		t.Errorf("took %v, %v", l, ok)
	}
	post(f, 8)
	select {
	case <-w.rang:
		t.Error("a subtask that has not asked in vain was woken")
	default:
	}
}

func TestFeedTurnsProducersAwayAtTheEnd(t *testing.T) {
	cause := errors.New("cause")
	f := newLetters(context.Background(), newAlarm())
	post(f, 1)
	f.End(cause)
	f.End(errors.New("another"))
	if post(f, 2) {
		t.Error("a letter was taken after the end")
	}
	if l, ok, ended, _ := f.Take(); !ok || ended || !slices.Equal(l.xs, []int{1}) {
		t.Error("what came before the end is lost")
	}
	if _, ok, ended, err := f.Take(); ok || !ended || err != cause {
		t.Errorf("ended %v, %v", ended, err)
	}
}

func TestFeedReleasesWaitingProducersWhenTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	f := newLetters(ctx, newAlarm())
	done := make(chan bool)
	for range 3 {
		go func() {
			for post(f, 1) {
			}
			done <- true
		}()
	}
	cancel()
	for range 3 {
		<-done
	}
	if post(f, 1) {
		t.Error("a letter was taken after the context's end")
	}
}

func TestFeedFillsABatchBeforeTheNext(t *testing.T) {
	f := newLetters(context.Background(), newAlarm())
	for i := range 6 {
		post(f, i)
	}
	for _, want := range [][]int{{0, 1, 2, 3}, {4, 5}} {
		if l, ok, _, _ := f.Take(); !ok || !slices.Equal(l.xs, want) {
			t.Errorf("took %v, %v, want %v", l, ok, want)
		}
	}
}

func TestFeedMakesProducersWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newLetters(context.Background(), newAlarm())
		posted := 0
		go func() {
			for post(f, posted) {
				posted++
			}
		}()
		for taken := range 5 {
			synctest.Wait()
			if want := (taken + 2) * 4; posted != want {
				t.Fatalf("%d batches were taken and %d letters posted, want %d", taken, posted, want)
			}
			l, _, _, _ := f.Take()
			l.xs = l.xs[:0]
			f.Return(l)
		}
		synctest.Wait()
		before := posted
		f.End(nil) // turns the waiting one away, and the next at once
		synctest.Wait()
		if posted != before || post(f, 0) {
			t.Errorf("%d letters were posted after the end", posted-before)
		}
	})
}

// Each of several waiting producers comes in once there is room, though the others post no more: none is forgotten.
func TestFeedForgetsNoWaitingProducer(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			w := newAlarm()
			f := newLetters(context.Background(), w)
			for i := range 8 {
				post(f, i)
			}
			for i := range 5 {
				go post(f, 8+i)
			}
			synctest.Wait()
			var xs []int
			for range 2 {
				l, _, _, _ := f.Take()
				xs = append(xs, l.xs...)
			}
			for range 100 {
				synctest.Wait()
				l, ok, _, _ := f.Take()
				if !ok {
					break
				}
				xs = append(xs, l.xs...)
			}
			if len(xs) != 13 {
				t.Errorf("%d of 13 letters came: a producer still waits", len(xs))
				f.End(nil)
			}
		})
	}
}

func TestFeedKeepsFewSpareBatches(t *testing.T) {
	made := 0
	f := NewFeed(context.Background(), newAlarm(), 2, func() *letters {
		made++
		return &letters{}
	})
	for i := range 100 {
		post(f, i)
		l, _, _, _ := f.Take()
		l.xs = l.xs[:0]
		f.Return(l)
	}
	if made != 1 {
		t.Errorf("%d batches were made for one at a time", made)
	}
	for range 10 {
		f.Return(&letters{})
	}
	if len(f.spare) != 3 {
		t.Errorf("%d batches are kept, want 3", len(f.spare))
	}
}

func TestFreezeSeesWhatWaitsBetweenSections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		f := newLetters(ctx, newAlarm())
		var sum, frozen int
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.Section(func() { // 30 letters where only 8 have room: it waits until somebody freezes
				for x := range 30 {
					sum += x
					post(f, x)
				}
			})
			f.Section(func() {
				sum += 1000
				post(f, 1000)
			})
		}()
		synctest.Wait()
		var waiting []int
		err := f.Freeze(func() error {
			frozen = sum
			return nil
		}, func(l *letters) error {
			waiting = append(waiting, l.xs...)
			return nil
		})
		total := 0
		for _, x := range waiting {
			total += x
		}
		if err != nil || len(waiting) < 30 || frozen != total { // the second section may have come first
			t.Errorf("%d letters wait, whose sum is said to be %d, %v", len(waiting), frozen, err)
		}
		cancel()
		<-done
	})
}

func TestFreezeGivesErrors(t *testing.T) {
	f := newLetters(t.Context(), newAlarm())
	own := errors.New("own")
	fail := func() error { return own }
	fine := func() error { return nil }
	if err := f.Freeze(fail, func(*letters) error { return nil }); !errors.Is(err, own) {
		t.Error(err)
	}
	for n := range 5 { // the open one, then a full one
		post(f, n)
		if err := f.Freeze(fine, func(*letters) error { return own }); !errors.Is(err, own) {
			t.Error(err)
		}
	}
	f.Section(func() {}) // it is free
}
