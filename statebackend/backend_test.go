package statebackend

import (
	"math"
	"strings"
	"testing"

	"github.com/flott-dev/flott/serde"
)

func specOf[V any](t *testing.T, name string) TableSpec {
	h, err := serde.Of[V]()
	if err != nil {
		t.Fatal(err)
	}
	return TableSpec{Name: name, Value: h}
}

func keyOf[K any](t *testing.T) *serde.Key {
	k, err := serde.KeyOf[K]()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestSpecsAreChecked(t *testing.T) {
	for want, change := range map[string]func(*TableSpec){
		"without a name": func(s *TableSpec) { s.Name = "" },
		"no value type":  func(s *TableSpec) { s.Value = nil },
		"not both":       func(s *TableSpec) { s.List, s.MapKey = true, keyOf[int64](t) },
		"positive":       func(s *TableSpec) { s.TTL = &TTL{} },
	} {
		s := specOf[int64](t, "n")
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		change(&s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %q", err, want)
		}
	}
}

func TestSpecsAreEqualByTypesAndSettings(t *testing.T) {
	a, b := specOf[int64](t, "n"), specOf[int64](t, "n")
	a.TTL, b.TTL = &TTL{Millis: 5}, &TTL{Millis: 5}
	a.Namespace, b.Namespace = keyOf[int64](t), keyOf[int64](t)
	if !a.Equal(&b) || a.Kind() != "value" {
		t.Error("equal specs differ")
	}
	for name, change := range map[string]func(*TableSpec){
		"name":         func(s *TableSpec) { s.Name = "m" },
		"type":         func(s *TableSpec) { *s = specOf[int32](t, "n"); s.TTL, s.Namespace = a.TTL, a.Namespace },
		"kind":         func(s *TableSpec) { s.List = true },
		"map key":      func(s *TableSpec) { s.MapKey = keyOf[string](t) },
		"no namespace": func(s *TableSpec) { s.Namespace = nil },
		"namespace":    func(s *TableSpec) { s.Namespace = keyOf[string](t) },
		"no ttl":       func(s *TableSpec) { s.TTL = nil },
		"ttl":          func(s *TableSpec) { s.TTL = &TTL{Millis: 5, OnRead: true} },
	} {
		c := b
		change(&c)
		if a.Equal(&c) || c.Equal(&a) {
			t.Errorf("specs with another %s are equal", name)
		}
	}
}

func TestExpiryIsAtTheEndOfTheTime(t *testing.T) {
	for _, c := range []struct {
		at, ttl, now int64
		want         bool
	}{
		{0, 10, 9, false},
		{0, 10, 10, true},
		{-5, 10, 4, false},
		{-5, 10, 5, true},
		{5, math.MaxInt64, math.MaxInt64, false}, // the sum is beyond time
		{math.MaxInt64 - 1, 1, math.MaxInt64, true},
	} {
		if got := (&TTL{Millis: c.ttl}).Expired(c.at, c.now); got != c.want {
			t.Errorf("written at %d for %d ms, at %d: expired is %v", c.at, c.ttl, c.now, got)
		}
	}
}
