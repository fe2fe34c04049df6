package state_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/state"
)

func TestBroadcastHasValueSemanticsAndOrder(t *testing.T) {
	d := state.NewBroadcast[string, note]("rules")
	if d.Err() != nil {
		t.Fatal(d.Err())
	}
	b := d.Open(func(err error) { t.Error(err) })
	n := note{Lines: []string{"one"}}
	b.Put("z", n)
	b.Put("a", note{})
	b.Put("m", note{})
	n.Lines[0] = "changed"
	got := b.Get("z")
	got.Lines[0] = "changed, too"
	b.Put("a", note{Lines: []string{"new"}})
	if v := b.Get("z"); v.Lines[0] != "one" || b.Get("a").Lines[0] != "new" || b.Len() != 3 {
		t.Errorf("got %v %v", v, b.Get("a"))
	}
	keys := func() (out []string) {
		for k := range b.All() {
			out = append(out, k)
		}
		return out
	}
	if !slices.Equal(keys(), []string{"z", "a", "m"}) {
		t.Errorf("order %v", keys())
	}
	b.Remove("a")
	b.Remove("none")
	b.Put("a", note{})
	if !slices.Equal(keys(), []string{"z", "m", "a"}) || !b.View().Contains("a") || b.View().Len() != 3 {
		t.Errorf("order after remove and put: %v", keys())
	}
	b.Clear()
	if b.Len() != 0 || b.Contains("z") || keys() != nil {
		t.Error("not cleared")
	}
}

func TestBroadcastMayChangeWhileIterated(t *testing.T) {
	b := state.NewBroadcast[int, int]("b").Open(func(err error) { t.Error(err) })
	for i := range 50 {
		b.Put(i, i)
	}
	var seen []int
	for k := range b.All() {
		seen = append(seen, k)
		b.Remove(k)
		b.Remove(k + 1)
		if k == 48 {
			b.Put(100, 0)
		}
	}
	if len(seen) != 26 || seen[25] != 100 || b.Len() != 0 {
		t.Errorf("saw %v, %d are left", seen, b.Len())
	}
}

func TestBroadcastKeysAreCanonical(t *testing.T) {
	b := state.NewBroadcast[time.Time, int]("b").Open(func(err error) { t.Error(err) })
	at := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	b.Put(at, 1)
	b.Put(at.In(time.FixedZone("", 3600)), 2)
	if b.Len() != 1 || b.Get(at) != 2 {
		t.Errorf("%d entries for one instant", b.Len())
	}
}

func TestBroadcastSnapshotRoundTrip(t *testing.T) {
	d := state.NewBroadcast[string, note]("rules")
	b := d.Open(func(err error) { t.Error(err) })
	for i := range 100 {
		b.Put(fmt.Sprint(i), note{Tags: map[string]int{"n": i}})
	}
	for i := range 70 {
		b.Remove(fmt.Sprint(i))
	}
	bytes, err := b.AppendSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	b.Put("later", note{})
	c := d.Open(func(err error) { t.Error(err) })
	c.Put("before", note{})
	if err := c.RestoreSnapshot(bytes); err != nil {
		t.Fatal(err)
	}
	b.Remove("later")
	if got, want := maps.Collect(c.All()), maps.Collect(b.All()); !reflect.DeepEqual(got, want) || c.Len() != 30 {
		t.Errorf("got %v, want %v", got, want)
	}
	for n := range bytes {
		if err := d.Open(func(error) {}).RestoreSnapshot(bytes[:n]); err == nil {
			t.Fatalf("%d of %d bytes were accepted", n, len(bytes))
		}
	}
	if err := c.RestoreSnapshot(append(bytes, 0)); err == nil {
		t.Error("a byte too many was accepted")
	}
}

func TestOperatorListSnapshotsSingleElements(t *testing.T) {
	d := state.NewOperatorList[note]("pending", state.Split)
	l := d.Open(func(err error) { t.Error(err) })
	n := note{Lines: []string{"one"}}
	l.Add(n)
	n.Lines[0] = "changed"
	l.Add(note{})
	for x := range l.All() {
		l.Add(x) // not shown to this iteration
	}
	if l.Len() != 4 {
		t.Fatalf("%d elements", l.Len())
	}
	restored := d.Open(func(err error) { t.Error(err) })
	err := l.Snapshot(func(item []byte) error { return restored.RestoreItem(item) })
	if err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Collect(restored.All()), slices.Collect(l.All()); !reflect.DeepEqual(got, want) || got[0].Lines[0] != "one" {
		t.Errorf("got %v, want %v", got, want)
	}
	l.Set(slices.Collect(l.All())[:1])
	if l.Len() != 1 {
		t.Error("Set")
	}
	l.Clear()
	if l.Len() != 0 || restored.RestoreItem([]byte{}) == nil {
		t.Error("Clear, or an element without bytes was accepted")
	}
	if d.Redistribution().String() != "split" || state.Union.String() != "union" || d.Name() != "pending" {
		t.Error("names")
	}
}

func TestOperatorStateDeclarationsAreChecked(t *testing.T) {
	ttl := state.TTL(state.TTLConfig{After: time.Second})
	for want, err := range map[string]error{
		"chan":         state.NewBroadcast[string, chan int]("b").Err(),
		"*int":         state.NewBroadcast[*int, int]("b").Err(),
		"time to live": state.NewBroadcast[string, int]("b", ttl).Err(),
		"default":      state.NewOperatorList[int]("l", state.Union, state.Default(1)).Err(),
		"func":         state.NewOperatorList[func()]("l", state.Union).Err(),
	} {
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "state") {
			t.Errorf("got %v, want an error about %q", err, want)
		}
	}
}

func FuzzBroadcastRestore(f *testing.F) {
	d := state.NewBroadcast[string, note]("rules")
	b := d.Open(func(err error) { f.Error(err) })
	b.Put("a", note{Lines: []string{"x"}, Tags: map[string]int{"n": 1}})
	b.Put("b", note{})
	seed, err := b.AppendSnapshot(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, src []byte) {
		c := d.Open(func(err error) { t.Error(err) })
		if c.RestoreSnapshot(src) != nil {
			return
		}
		again, err := c.AppendSnapshot(nil)
		if err != nil {
			t.Fatal(err)
		}
		e := d.Open(func(err error) { t.Error(err) })
		if err := e.RestoreSnapshot(again); err != nil || e.Len() != c.Len() {
			t.Errorf("a restored state does not survive its own snapshot: %v", err)
		}
	})
}
