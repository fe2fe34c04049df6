package state_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/state"
)

type note struct {
	Lines []string
	Tags  map[string]int
}

// TestValueEqualsMap runs a per-element function with random accesses over runs with repeated keys, in all layouts.
func TestValueEqualsMap(t *testing.T) {
	t.Run("fixed", func(t *testing.T) {
		testValue(t, func(r *rand.Rand) profile { return profile{r.Int64(), 1, 2} }, func(p *profile) { p.Count++ })
	})
	t.Run("text", func(t *testing.T) {
		testValue(t, func(r *rand.Rand) user { return user{fmt.Sprint(r.Int()), r.Int64()} }, func(u *user) { u.Name += "!" })
	})
	t.Run("encoded", func(t *testing.T) {
		testValue(t, func(r *rand.Rand) note { return note{Lines: make([]string, 1+r.IntN(5))} },
			func(n *note) { n.Lines = append(n.Lines, "x") })
	})
}

func testValue[V any](t *testing.T, value func(*rand.Rand) V, change func(*V)) {
	s := newSubtask[int64](t)
	v := state.NewValue[V](s, "v")
	r := rand.New(rand.NewPCG(1, 2))
	want := map[int64]V{}
	var zero V
	for range 300 {
		keys := make([]int64, 1+r.IntN(600))
		domain := 1 + r.Int64N(3000)
		for i := range keys {
			keys[i] = r.Int64N(domain)
		}
		deletes := r.IntN(3) == 0
		s.each(keys, func(k int64) {
			old, has := want[k]
			switch op := r.IntN(8); {
			case op == 0:
				if got := v.Get(); !reflect.DeepEqual(got, old) {
					t.Fatalf("key %d: Get gives %v, want %v", k, got, old)
				}
			case op == 1:
				if got, ok := v.Lookup(); ok != has || !reflect.DeepEqual(got, old) {
					t.Fatalf("key %d: Lookup gives %v %v, want %v %v", k, got, ok, old, has)
				}
			case op == 2:
				if v.Exists() != has {
					t.Fatalf("key %d: Exists is %v", k, !has)
				}
			case op < 5 && deletes:
				v.Clear()
				delete(want, k)
			case op < 6:
				v.Update(change)
				if !has {
					old = zero
				}
				change(&old)
				want[k] = old
			default:
				x := value(r)
				v.Set(x)
				want[k] = x
			}
		})
		s.check()
	}
}

func TestGetGivesTheCallersOwnValue(t *testing.T) {
	s := newSubtask[string](t)
	v := state.NewValue[note](s, "note")
	s.begin("a")
	mine := note{Lines: []string{"one"}, Tags: map[string]int{"x": 1}}
	v.Set(mine)
	mine.Lines[0], mine.Tags["x"] = "changed", 2
	got := v.Get()
	got.Lines[0] = "changed, too"
	delete(got.Tags, "x")
	if again := v.Get(); again.Lines[0] != "one" || again.Tags["x"] != 1 {
		t.Errorf("state followed the user's memory: %v", again)
	}
	v.Update(func(n *note) { n.Lines[0] = "two" })
	if again := v.Get(); again.Lines[0] != "two" {
		t.Errorf("Update did not change: %v", again)
	}
	s.check()
}

func TestDefaultIsTheStartOfUpdate(t *testing.T) {
	s := newSubtask[int64](t)
	n := state.NewValue[int64](s, "n", state.Default(int64(100)))
	u := state.NewValue[user](s, "u", state.Default(user{Name: "nobody"}))
	s.begin(1)
	if _, ok := n.Lookup(); ok || n.Exists() || n.Get() != 100 || u.Get().Name != "nobody" {
		t.Error("an absent value is not the default")
	}
	n.Update(func(x *int64) { *x++ })
	u.Update(func(u *user) { u.Count = 7 })
	if n.Get() != 101 || u.Get() != (user{"nobody", 7}) {
		t.Errorf("got %v and %v", n.Get(), u.Get())
	}
	n.Clear()
	if n.Get() != 100 {
		t.Error("a cleared value is not the default")
	}
	s.check()
}

func TestKeysDoNotShareState(t *testing.T) {
	s := newSubtask[string](t)
	v := state.NewValue[int64](s, "v")
	s.each([]string{"", "a", "b", "a", ""}, func(k string) { v.Update(func(n *int64) { *n = *n*10 + 1 }) })
	got := map[string]int64{}
	s.each([]string{"", "a", "b", "c"}, func(k string) { got[k] = v.Get() })
	if want := map[string]int64{"": 11, "a": 11, "b": 1, "c": 0}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	s.check()
}

func TestReducingFoldsFromTheFirstElement(t *testing.T) {
	s := newSubtask[int64](t)
	longest := state.NewReducing(s, "longest", func(a, b string) string {
		if len(b) > len(a) {
			return b
		}
		return a
	})
	product := state.NewReducing(s, "product", func(a, b int64) int64 { return a * b })
	keys := make([]int64, 100)
	s.each(keys, func(int64) {
		product.Add(-1)
		longest.Add(strings.Repeat("x", s.run.Index))
	})
	s.begin(0, 1)
	if product.Get() != 1 || len(longest.Get()) != 99 || !product.Exists() {
		t.Errorf("got %d and %q", product.Get(), longest.Get())
	}
	s.run.Index = 1
	if _, ok := product.Lookup(); ok || longest.Exists() {
		t.Error("a key without elements has a value")
	}
	s.run.Index = 0
	product.Clear()
	product.Add(5)
	if product.Get() != 5 {
		t.Errorf("after Clear: %d", product.Get())
	}
	s.check()
}

func TestAggregatingKeepsAnyAccumulator(t *testing.T) {
	s := newSubtask[int64](t)
	identity := func(x int64) int64 { return x }
	mean := state.NewAggregating(s, "mean", agg.Avg(identity))
	all := state.NewAggregating(s, "all", agg.Collect[int64]())
	distinct := state.NewAggregating(s, "distinct", agg.CountDistinct(identity))
	last := state.NewAggregating(s, "last", agg.Last(func(x int64) string { return fmt.Sprint(x) }))
	keys := make([]int64, 40)
	s.each(keys, func(int64) {
		x := int64(s.run.Index % 4)
		mean.Add(x)
		all.Add(x)
		distinct.Add(x)
		last.Add(x)
	})
	s.begin(0, 1)
	if mean.Get() != 1.5 || len(all.Get()) != 40 || distinct.Get() != 4 || last.Get() != "3" {
		t.Errorf("got %v %v %v %v", mean.Get(), all.Get(), distinct.Get(), last.Get())
	}
	s.run.Index = 1
	if out, ok := mean.Lookup(); ok || out != 0 || all.Exists() {
		t.Error("a key without elements has a result")
	}
	s.check()
}

func TestListKeepsElementsInOrder(t *testing.T) {
	s := newSubtask[string](t)
	l := state.NewList[note](s, "l")
	s.begin("a", "b")
	if l.Get() != nil || l.Exists() || l.Len() != 0 {
		t.Error("a new list is not empty")
	}
	lines := []string{"one"}
	l.Add(note{Lines: lines})
	lines[0] = "changed"
	l.AddAll([]note{{Lines: []string{"two"}}, {}})
	got := l.Get()
	if len(got) != 3 || got[0].Lines[0] != "one" || got[1].Lines[0] != "two" || l.Len() != 3 {
		t.Errorf("got %v", got)
	}
	for n := range l.All() {
		if n.Lines[0] != "one" {
			t.Error("All begins elsewhere")
		}
		break
	}
	s.run.Index = 1
	if l.Exists() {
		t.Error("keys share a list")
	}
	s.run.Index = 0
	l.Set([]note{{Lines: []string{"only"}}})
	if got := l.Get(); len(got) != 1 || got[0].Lines[0] != "only" {
		t.Errorf("after Set: %v", got)
	}
	l.Set(nil)
	if l.Exists() {
		t.Error("an empty Set left elements")
	}
	s.check()
}

func TestMapIteratesInOrderOfInsertion(t *testing.T) {
	s := newSubtask[int64](t)
	m := state.NewMap[string, int64](s, "m")
	s.begin(1, 2)
	for i, k := range []string{"z", "", "a"} {
		m.Put(k, int64(i))
	}
	m.Update("a", func(n *int64) { *n += 10 })
	m.Update("new", func(n *int64) { *n = 5 })
	m.Put("z", 100)
	if keys, values := slices.Collect(m.Keys()), slices.Collect(m.Values()); !slices.Equal(keys, []string{"z", "", "a", "new"}) ||
		!slices.Equal(values, []int64{100, 1, 12, 5}) {
		t.Errorf("got %q %v", keys, values)
	}
	if _, ok := m.Lookup("none"); ok || m.Contains("none") || !m.Contains("") || m.Get("a") != 12 || m.Len() != 4 {
		t.Error("lookups")
	}
	for k := range m.All() {
		m.Remove(k)
	}
	if m.Exists() {
		t.Error("entries are left")
	}
	s.check()
}

func TestMapOfEncodedValuesIsCopied(t *testing.T) {
	s := newSubtask[int64](t)
	m := state.NewMap[profile, note](s, "m")
	s.begin(1)
	n := note{Lines: []string{"one"}}
	m.Put(profile{Count: 1}, n)
	n.Lines[0] = "changed"
	m.Update(profile{Count: 1}, func(n *note) { n.Lines = append(n.Lines, "two") })
	if got := m.Get(profile{Count: 1}); !slices.Equal(got.Lines, []string{"one", "two"}) {
		t.Errorf("got %v", got)
	}
	m.Clear()
	if m.Len() != 0 {
		t.Error("not cleared")
	}
	s.check()
}

func TestStateExpires(t *testing.T) {
	s := newSubtask[int64](t)
	ttl := state.TTL(state.TTLConfig{After: 9500 * time.Microsecond}) // rounded up to 10 ms
	v := state.NewValue[int64](s, "v", ttl)
	r := state.NewReducing(s, "r", func(a, b int64) int64 { return a + b }, ttl)
	l := state.NewList[string](s, "l", ttl)
	m := state.NewMap[string, string](s, "m", ttl)
	kept := state.NewValue[int64](s, "kept", state.TTL(state.TTLConfig{
		After: 10 * time.Millisecond, Update: state.OnReadAndWrite, Visibility: state.ReturnExpiredIfNotCleanedUp,
	}))
	s.begin(1)
	v.Set(1)
	r.Add(1)
	l.Add("x")
	m.Put("k", "v")
	kept.Set(1)
	s.now = 9
	if v.Get() != 1 || r.Get() != 1 || l.Len() != 1 || m.Get("k") != "v" || kept.Get() != 1 {
		t.Error("expired early")
	}
	s.now = 10
	r.Add(5)
	v.Update(func(n *int64) { *n += 7 })
	if v.Get() != 7 || r.Get() != 5 || l.Exists() || m.Contains("k") {
		t.Error("expired state was used")
	}
	s.now = 18
	if kept.Get() != 1 {
		t.Error("a read did not renew")
	}
	s.now = 40
	if kept.Get() != 1 || kept.Exists() {
		t.Error("want the expired value once more")
	}
	s.check()
}

func TestAccessWithoutAKeyFails(t *testing.T) {
	accesses := func(s *subtask[int64]) map[string]func() {
		v := state.NewValue[int64](s, "the state")
		text := state.NewValue[user](s, "the state, text")
		l := state.NewList[int64](s, "the state, list")
		m := state.NewMap[int64, int64](s, "the state, map")
		r := state.NewReducing(s, "the state, reducing", func(a, b int64) int64 { return a + b })
		a := state.NewAggregating(s, "the state, aggregating", agg.Count[int64]())
		return map[string]func(){
			"Get": func() { v.Get() }, "Set": func() { v.Set(1) }, "Update": func() { v.Update(func(*int64) { t.Error("called") }) },
			"Clear": v.Clear, "Exists": func() { v.Exists() }, "Get text": func() { text.Get() }, "Set text": func() { text.Set(user{}) },
			"Update text": func() { text.Update(func(*user) { t.Error("called") }) },
			"Add":         func() { l.Add(1) }, "AddAll": func() { l.AddAll(nil) }, "Get list": func() { l.Get() }, "Len": func() { l.Len() },
			"All": func() {
				for range l.All() {
				}
			},
			"Put": func() { m.Put(1, 1) }, "Lookup": func() { m.Lookup(1) }, "Contains": func() { m.Contains(1) }, "Remove": func() { m.Remove(1) },
			"Update map": func() { m.Update(1, func(*int64) { t.Error("called") }) },
			"Map.All": func() {
				for range m.All() {
				}
			},
			"Reducing.Add": func() { r.Add(1) }, "Reducing.Get": func() { r.Get() },
			"Aggregating.Add": func() { a.Add(1) }, "Aggregating.Get": func() { a.Get() },
		}
	}
	keyed := newSubtask[int64](t)
	for name, f := range accesses(keyed) {
		keyed.begin(1)
		keyed.run.Index = state.None
		f()
		var want *state.NoKeyContextError
		if err := keyed.run.Take(); !errors.As(err, &want) || !strings.Contains(err.Error(), "the state") || !strings.Contains(err.Error(), "no key context") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	unkeyed := newSubtask[int64](t)
	unkeyed.unkeyed = true
	for name, f := range accesses(unkeyed) {
		unkeyed.run.Index = 0
		f()
		var want *state.NotKeyedError
		if err := unkeyed.run.Take(); !errors.As(err, &want) || !strings.Contains(err.Error(), "the state") || !strings.Contains(err.Error(), "not a keyed stream") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestDeclarationsAreChecked(t *testing.T) {
	for _, c := range []struct {
		want    string
		declare func(s *subtask[int64])
	}{
		{`"bad"`, func(s *subtask[int64]) { state.NewValue[chan int](s, "bad") }},
		{"key", func(s *subtask[int64]) { state.NewMap[*int, int](s, "bad") }},
		{"default", func(s *subtask[int64]) { state.NewValue[int64](s, "bad", state.Default(1)) }},
		{"positive", func(s *subtask[int64]) { state.NewList[int64](s, "bad", state.TTL(state.TTLConfig{})) }},
		{"without a name", func(s *subtask[int64]) { state.NewValue[int64](s, "") }},
		{"declared twice", func(s *subtask[int64]) {
			state.NewValue[int64](s, "bad")
			state.NewValue[int32](s, "bad")
		}},
		{"declared twice", func(s *subtask[int64]) {
			state.NewValue[int64](s, "bad")
			state.NewList[int64](s, "bad")
		}},
		{"declared twice", func(s *subtask[int64]) {
			state.NewValue[int64](s, "bad")
			state.NewValue[int64](s, "bad", state.TTL(state.TTLConfig{After: time.Second}))
		}},
	} {
		s := newSubtask[int64](t)
		c.declare(s)
		if len(s.errs) != 1 || !strings.Contains(s.errs[0].Error(), c.want) {
			t.Errorf("got %v, want an error about %q", s.errs, c.want)
		}
	}
	s := newSubtask[int64](t)
	a, b := state.NewValue[int64](s, "same"), state.NewValue[int64](s, "same")
	s.begin(1)
	a.Set(5)
	if b.Get() != 5 {
		t.Error("two handles of one declaration differ")
	}
	s.check()
}

func TestHandlesAllocateNothing(t *testing.T) {
	s := newSubtask[int64](t)
	n := state.NewValue[int64](s, "n")
	u := state.NewValue[user](s, "u")
	r := state.NewReducing(s, "r", func(a, b int64) int64 { return a + b })
	m := state.NewMap[int64, int64](s, "m")
	keys := make([]int64, 512)
	for i := range keys {
		keys[i] = int64(i % 100)
	}
	f := func(k int64) {
		n.Set(n.Get() + 1)
		n.Update(func(x *int64) { *x++ })
		x := u.Get()
		x.Count++
		u.Set(x)
		r.Add(k)
		m.Update(k%3, func(x *int64) { *x++ })
		if k%10 == 0 {
			n.Clear()
		}
	}
	run := func() { s.each(keys, f) }
	for range 10 {
		run()
	}
	if got := testing.AllocsPerRun(50, run); got != 0 {
		t.Errorf("%v allocations per run", got)
	}
	s.check()
}
