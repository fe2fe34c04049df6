package timers

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// tablesOf are the tables of a snapshot as a restore has them.
type tablesOf []statebackend.FrozenTable

func (t tablesOf) Table(name string) (statebackend.FrozenTable, bool) {
	for _, f := range t {
		if f.Name == name {
			return f, true
		}
	}
	return statebackend.FrozenTable{}, false
}

func (t tablesOf) Tables() (names []string) {
	for _, f := range t {
		names = append(names, f.Name)
	}
	return names
}

func keyOf[K any](t *testing.T) *serde.Key {
	t.Helper()
	k, err := serde.KeyOf[K]()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// texts are all timers of a service.
func texts(s *Service) map[string]bool {
	all := map[string]bool{}
	for d := process.EventTime; d <= process.ProcessingTime; d++ {
		_ = s.ForEach(d, func(key []byte, hash uint64, ns []byte, at int64) error {
			all[fmt.Sprintf("%v %x %x %x %d", d, key, hash, ns, at)] = true
			return nil
		})
	}
	return all
}

func TestSnapshotHoldsTheTimersOfItsMoment(t *testing.T) {
	types := Types{Key: keyOf[string](t), Namespace: keyOf[int64](t), Seed: 3}
	s := New(Options{Callbacks: &operator.Callbacks{}})
	set := func(i int, remove bool) {
		d, at := process.Domain(i%2), int64(i%7-3)*1000
		key := strings.Repeat("k", i%50) + fmt.Sprint(i%100)
		ns := binary.LittleEndian.AppendUint64(nil, uint64(i))
		if hash := types.Key.HashOne([]byte(key), types.Seed); remove {
			s.Delete(d, []byte(key), hash, ns, at)
		} else {
			s.Register(d, []byte(key), hash, ns, at)
		}
	}
	for i := range 3000 {
		set(i, false)
	}
	for i := 0; i < 3000; i += 3 {
		set(i, true)
	}
	want := texts(s)
	o := operator.Snapshot{Groups: 100}
	if err := s.Freeze(&o, types); err != nil {
		t.Fatal(err)
	}
	for i := range 5000 { // what comes afterwards is not in it
		set(i, i%2 == 0)
	}
	for _, table := range o.Tables {
		last := 0
		for row := range table.Rows {
			if g := keygroup.Of(uint32(row.Hash), 100); row.Group != g || g < last {
				t.Fatalf("%s: a row of group %d is in %d, after %d", table.Name, g, row.Group, last)
			}
			last = row.Group
		}
	}
	fresh := New(Options{Callbacks: &operator.Callbacks{}})
	if err := fresh.Restore(&operator.Restored{Store: tablesOf(o.Tables)}, types); err != nil {
		t.Fatal(err)
	}
	if got := texts(fresh); !maps.Equal(got, want) {
		t.Errorf("%d timers were restored of %d", len(got), len(want))
	}
	if _, ok := fresh.NextProcessing(); !ok {
		t.Error("no callback for the processing-time timers")
	}
}

func TestNoTimersMakeNoTables(t *testing.T) {
	s := New(Options{Callbacks: &operator.Callbacks{}})
	s.Register(process.EventTime, []byte("k"), 1, nil, 5)
	o := operator.Snapshot{Groups: 4}
	if err := s.Freeze(&o, Types{Key: keyOf[string](t)}); err != nil {
		t.Fatal(err)
	}
	if got := tablesOf(o.Tables).Tables(); !slices.Equal(got, []string{"timers/event"}) {
		t.Errorf("tables %q", got)
	}
	for row := range o.Tables[0].Rows {
		if row.Namespace != nil || string(row.Key) != "k" || row.Value != nil {
			t.Errorf("row %+v", row)
		}
	}
}

func TestTimersOfOtherTypesAreRefused(t *testing.T) {
	s := New(Options{Callbacks: &operator.Callbacks{}})
	s.Register(process.EventTime, []byte("12345678"), 1, nil, 5)
	was := Types{Key: keyOf[int64](t)}
	for name, now := range map[string]Types{
		"key": {Key: keyOf[string](t)}, "namespace": {Key: was.Key, Namespace: keyOf[int64](t)},
	} {
		o := operator.Snapshot{Groups: 4}
		if err := s.Freeze(&o, was); err != nil {
			t.Fatal(err)
		}
		err := New(Options{Callbacks: &operator.Callbacks{}}).Restore(&operator.Restored{Store: tablesOf(o.Tables)}, now)
		if err == nil || !strings.Contains(err.Error(), name+" type") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	damaged := tablesOf{{
		TableInfo: statebackend.TableInfo{Name: "timers/event", Kind: "value", Key: was.Key.Schema()},
	}}
	if err := New(Options{}).Restore(&operator.Restored{Store: damaged}, was); err == nil || !strings.Contains(err.Error(), "timers/event") {
		t.Errorf("another kind: error %v", err)
	}
}
