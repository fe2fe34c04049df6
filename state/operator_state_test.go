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
	items, err := b.AppendItems(nil)
	if err != nil {
		t.Fatal(err)
	}
	b.Put("later", note{})
	c := d.Open(func(err error) { t.Error(err) })
	c.Put("before", note{})
	if err := c.RestoreItems(items, d.Schema()); err != nil {
		t.Fatal(err)
	}
	b.Remove("later")
	if got, want := maps.Collect(c.All()), maps.Collect(b.All()); !reflect.DeepEqual(got, want) || c.Len() != 30 {
		t.Errorf("got %v, want %v", got, want)
	}
	last := len(items) - 1
	for n := range items[last] {
		cut := append(items[:last:last], items[last][:n])
		if err := d.Open(func(error) {}).RestoreItems(cut, nil); err == nil {
			t.Fatalf("%d of %d bytes were accepted", n, len(items[last]))
		}
	}
	if err := c.RestoreItems([][]byte{append(items[0], 0)}, nil); err == nil {
		t.Error("a byte too many was accepted")
	}
}

// TestOperatorSnapshotsAreOfTheMoment is trap B024: what is changed after the barrier, behind pointers too, is not in the
// snapshot.
func TestOperatorSnapshotsAreOfTheMoment(t *testing.T) {
	type counter struct{ N *int64 }
	d := state.NewBroadcast[string, counter]("counters")
	ld := state.NewOperatorList[counter]("list", state.Union)
	b, l := d.Open(func(err error) { t.Error(err) }), ld.Open(func(err error) { t.Error(err) })
	n := int64(7)
	b.Put("a", counter{&n})
	l.Add(counter{&n})
	entries, err := b.AppendItems(nil)
	if err != nil {
		t.Fatal(err)
	}
	elements, err := l.AppendItems(nil)
	if err != nil {
		t.Fatal(err)
	}
	n = 8
	b.Put("a", counter{&n})
	b.Put("b", counter{&n})
	l.Set([]counter{{&n}, {&n}})
	if err := b.RestoreItems(entries, nil); err != nil || b.Len() != 1 || *b.Get("a").N != 7 {
		t.Errorf("broadcast state of %d entries: %v %v", b.Len(), b.Get("a"), err)
	}
	if err := l.RestoreItems(elements, nil); err != nil || l.Len() != 1 {
		t.Errorf("list of %d elements: %v", l.Len(), err)
	}
	for x := range l.All() {
		if *x.N != 7 {
			t.Errorf("element %d", *x.N)
		}
	}
}

// What a list gives is the caller's: changing it changes nothing.
func TestOperatorListsShareNoMemory(t *testing.T) {
	l := state.NewOperatorList[[]int]("list", state.Split).Open(func(err error) { t.Error(err) })
	x, xs := []int{1}, [][]int{{2}, {3}}
	l.Add(x)
	x[0] = -1
	for range 2 {
		for y := range l.All() {
			if y[0] != 1 {
				t.Errorf("the list has %v", y)
			}
			y[0] = -1
		}
	}
	l.Set(xs)
	xs[0][0], xs[1] = -1, nil
	if got := slices.Collect(l.All()); !reflect.DeepEqual(got, [][]int{{2}, {3}}) {
		t.Errorf("the list has %v", got)
	}
}

func TestOperatorStateEvolves(t *testing.T) {
	type old struct {
		N int32
		S string
	}
	type new struct {
		S    string
		Tags []string
		N    int32
	}
	type unlike struct{ N string }
	fail := func(err error) { t.Error(err) }
	b := state.NewBroadcast[string, old]("rules")
	was := b.Open(fail)
	long := strings.Repeat("x", 10_000) // longer than the blocks that items are packed into
	for i := range int32(1000) {
		was.Put(fmt.Sprint(i), old{i, long[:i*i%9999]})
	}
	items, err := was.AppendItems(nil)
	if err != nil {
		t.Fatal(err)
	}
	is := state.NewBroadcast[string, new]("rules").Open(fail)
	if err := is.RestoreItems(items, b.Schema()); err != nil {
		t.Fatal(err)
	}
	for i := range int32(1000) {
		if got := is.Get(fmt.Sprint(i)); got.N != i || got.S != long[:i*i%9999] || got.Tags != nil {
			t.Fatalf("entry %d became %d, %d bytes", i, got.N, len(got.S))
		}
	}
	list := state.NewOperatorList[old]("list", state.Split)
	l := list.Open(fail)
	l.Add(old{5, "five"})
	elements, err := l.AppendItems(nil)
	if err != nil {
		t.Fatal(err)
	}
	next := state.NewOperatorList[new]("list", state.Split).Open(fail)
	if err := next.RestoreItems(elements, list.Schema()); err != nil {
		t.Fatal(err)
	}
	for x := range next.All() {
		if !reflect.DeepEqual(x, new{N: 5, S: "five"}) {
			t.Errorf("got %+v", x)
		}
	}
	for want, err := range map[string]error{
		`broadcast state "rules": serde: type state_test.unlike: field N: the snapshot has int32, the program string`: state.NewBroadcast[string, unlike]("rules").Open(fail).RestoreItems(items, b.Schema()),
		"key type string, the program int64":                            state.NewBroadcast[int64, old]("rules").Open(fail).RestoreItems(items, b.Schema()),
		"not a key and a value":                                         state.NewBroadcast[string, old]("rules").Open(fail).RestoreItems(items, list.Schema().Fields[0].Schema),
		`operator state "list": serde: type state_test.unlike: field N`: state.NewOperatorList[unlike]("list", state.Split).Open(fail).RestoreItems(elements, list.Schema()),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %q", err, want)
		}
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
	items, err := l.AppendItems(nil)
	if err == nil {
		err = restored.RestoreItems(items, d.Schema())
	}
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
	if l.Len() != 0 || restored.RestoreItems([][]byte{{}}, nil) == nil {
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
	seed, err := b.AppendItems(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed[0], seed[1])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f}, []byte{})
	f.Fuzz(func(t *testing.T, one, two []byte) {
		c := d.Open(func(err error) { t.Error(err) })
		if c.RestoreItems([][]byte{one, two}, nil) != nil {
			return
		}
		again, err := c.AppendItems(nil)
		if err != nil {
			t.Fatal(err)
		}
		e := d.Open(func(err error) { t.Error(err) })
		if err := e.RestoreItems(again, nil); err != nil || e.Len() != c.Len() {
			t.Errorf("a restored state does not survive its own snapshot: %v", err)
		}
	})
}
