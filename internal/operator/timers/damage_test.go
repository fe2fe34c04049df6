package timers

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/statebackend"
)

// Rows that can be no timers are refused, with the domain that they are of.
func TestRowsThatAreNoTimersAreRefused(t *testing.T) {
	types := Types{Key: keyOf[int64](t), Seed: 3}
	lost := errors.New("the disk is gone")
	for name, want := range map[string]string{"timers/event": "event", "timers/processing": "processing"} {
		for row, damage := range map[*statebackend.Row]string{
			{Key: make([]byte, 8), MapKey: make([]byte, 7)}: "a time of 7 bytes",
			{Key: make([]byte, 8)}:                          "a time of 0 bytes",
			{Key: make([]byte, 9), MapKey: make([]byte, 8)}: "a key of 9 bytes: int64 takes 8",
			nil: lost.Error(),
		} {
			good := New(Options{Callbacks: &operator.Callbacks{}})
			for d := process.EventTime; d <= process.ProcessingTime; d++ {
				if err := good.Register(d, make([]byte, 8), types.Key.HashOne(make([]byte, 8), 3), nil, 5); err != nil {
					t.Fatal(err)
				}
			}
			o := operator.Snapshot{Groups: 4}
			if err := good.Freeze(&o, types); err != nil {
				t.Fatal(err)
			}
			for i := range o.Tables {
				if o.Tables[i].Name == name {
					o.Tables[i].Rows = func(yield func(*statebackend.Row, error) bool) {
						if row == nil {
							yield(nil, lost)
							return
						}
						yield(row, nil)
					}
				}
			}
			err := New(Options{Callbacks: &operator.Callbacks{}}).Restore(&operator.Restored{Store: tablesOf(o.Tables)}, types)
			if err == nil || !strings.Contains(err.Error(), damage) || !strings.Contains(strings.ToLower(err.Error()), want) {
				t.Errorf("%s, %s: %v", name, damage, err)
			}
		}
	}
}

// Who reads a snapshot may stop at any row.
func TestReadingOfTimersMayStop(t *testing.T) {
	s, _ := behindShelf(t, 1<<20, Options{Callbacks: &operator.Callbacks{}})
	own := New(Options{Callbacks: &operator.Callbacks{}})
	for i := range uint64(20) {
		key := binary.LittleEndian.AppendUint64(nil, i)
		for _, s := range []*Service{s, own} {
			if err := s.Register(process.EventTime, key, i*mixA, nil, int64(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	o := operator.Snapshot{Groups: 4}
	if err := own.Freeze(&o, Types{Key: keyOf[int64](t)}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for range o.Tables[0].Rows {
		if n++; n == 7 {
			break
		}
	}
	for range own.queues[process.EventTime].ahead(false) {
		if n++; n == 14 {
			break
		}
	}
	if n != 14 {
		t.Errorf("%d rows were read", n)
	}
}

// filled is a store whose sets have 20 timers when they are opened, as after a restore.
type filled struct{ *operatortest.TimerShelf }

func (f filled) Timers(spec statebackend.TimerSpec) (statebackend.Timers, error) {
	set, err := f.TimerShelf.Timers(spec)
	for i := range uint64(20) {
		key := binary.LittleEndian.AppendUint64(nil, i)
		err = errors.Join(err, set.Put(&statebackend.Timer{At: 100 + int64(i), Key: key, Hash: i * mixA}))
	}
	return set, err
}

// Processing-time timers that come out of a store are called for when the first of them is due, and event-time timers are not.
func TestTimersOfAStoreAreCalledForAfterARestore(t *testing.T) {
	var got []int64
	callbacks := &operator.Callbacks{}
	shelf := filled{&operatortest.TimerShelf{Rand: rand.New(rand.NewPCG(1, 2)), Ahead: 1000}}
	s := New(Options{Callbacks: callbacks, Store: shelf, OnProcessingTime: func(_ []byte, _ uint64, _ []byte, at int64) error {
		got = append(got, at)
		return nil
	}})
	if err := s.Restore(nil, Types{Key: keyOf[int64](t)}); err != nil {
		t.Fatal(err)
	}
	if at, ok := s.NextProcessing(); !ok || at > 100 {
		t.Errorf("the next call is at %d, %v", at, ok)
	}
	if err := callbacks.Run(119); err != nil || len(got) != 20 || !slices.IsSorted(got) {
		t.Errorf("fired at %v, %v", got, err)
	}
	if n := s.Count(process.EventTime); n != 20 {
		t.Errorf("%d event-time timers are left", n)
	}
}
