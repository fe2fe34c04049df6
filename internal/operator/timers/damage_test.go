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
	"github.com/flott-dev/flott/window"
)

// Rows that can be no timers are refused, with the domain that they are of.
func TestRowsThatAreNoTimersAreRefused(t *testing.T) {
	key, long, at := make([]byte, 8), make([]byte, 9), make([]byte, 8)
	plain := Types{Key: keyOf[int64](t), Seed: 3}
	spaced := Types{Key: plain.Key, Namespace: keyOf[window.Time](t), Seed: 3}
	words := Types{Key: keyOf[string](t), Namespace: keyOf[string](t), Seed: 3}
	single := Types{Key: keyOf[string](t), Namespace: keyOf[struct{}](t), Seed: 3}
	lost := errors.New("the disk is gone")
	for _, c := range []struct {
		types Types
		row   *statebackend.Row
		want  string // "": the row is a timer
	}{
		{plain, &statebackend.Row{Key: key, MapKey: at}, ""},
		{plain, &statebackend.Row{Key: key, MapKey: at[1:]}, "a time of 7 bytes, not 8"},
		{plain, &statebackend.Row{Key: key}, "a time of 0 bytes, not 8"},
		{plain, &statebackend.Row{Key: long, MapKey: at}, "a key of 9 bytes, where int64 takes 8"},
		{plain, &statebackend.Row{Key: key, MapKey: at, Namespace: key}, "a namespace of 8 bytes, where timers have none"},
		{plain, nil, lost.Error()},
		{spaced, &statebackend.Row{Key: key, MapKey: at, Namespace: make([]byte, 16)}, ""},
		{spaced, &statebackend.Row{Key: key, MapKey: at, Namespace: make([]byte, 15)}, "a namespace of 15 bytes, where " + spaced.Namespace.Name + " takes 16"},
		{spaced, &statebackend.Row{Key: key, MapKey: at, Namespace: make([]byte, 17)}, "a namespace of 17 bytes"},
		{spaced, &statebackend.Row{Key: key, MapKey: at}, "a namespace of 0 bytes"},
		{words, &statebackend.Row{Key: long, MapKey: at, Namespace: long}, ""},
		{words, &statebackend.Row{MapKey: at}, ""},
		{single, &statebackend.Row{Key: key, MapKey: at}, ""},
		{single, &statebackend.Row{Key: key, MapKey: at, Namespace: at[:1]}, "a namespace of 1 bytes, where struct {} takes 0"},
	} {
		for name, domain := range map[string]string{"timers/event": "event", "timers/processing": "processing"} {
			info, err := c.types.info(name)
			if err != nil {
				t.Fatal(err)
			}
			rows := func(yield func(*statebackend.Row, error) bool) {
				if c.row == nil {
					yield(nil, lost)
					return
				}
				yield(c.row, nil)
			}
			s := New(Options{Callbacks: &operator.Callbacks{}})
			err = s.Restore(&operator.Restored{Store: tablesOf{{TableInfo: info, Rows: rows}}}, c.types)
			if c.want == "" {
				if err != nil || len(texts(s)) != 1 {
					t.Errorf("%s: %v, %v", name, texts(s), err)
				}
				continue
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(strings.ToLower(err.Error()), domain) {
				t.Errorf("%s, %s: %v", name, c.want, err)
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
