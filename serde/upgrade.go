package serde

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"
)

// Upgrade brings values of the type Old, which snapshots of earlier versions of a program hold, to the type New, where that is
// more than schemas can do by themselves: f makes one of the other when it is read. It holds wherever New occurs in the type
// that is compiled. Upgrades to Old make a chain with it, and several to one New are several pasts. A schema that is exactly
// that of a past is read by its upgrades; any other is read as New if that is possible, and else by f from an Old that has
// changed as schemas may. f is called by many goroutines; its error is that of reading. Keys are not upgraded.
func Upgrade[Old, New any](f func(Old) (New, error)) Option {
	from, to := reflect.TypeFor[Old](), reflect.TypeFor[New]()
	return func(s *settings) error {
		if f == nil {
			return fmt.Errorf("serde: upgrade of %s to %s: the function is nil", from, to)
		}
		for _, u := range s.upgrades[to] {
			if u.from == from {
				return fmt.Errorf("serde: upgrade of %s to %s: given twice", from, to)
			}
		}
		if s.upgrades == nil {
			s.upgrades = map[reflect.Type][]upgrade{}
		}
		s.upgrades[to] = append(s.upgrades[to], upgrade{from: from, codec: func(old codec) codec { return &upgraded[Old, New]{old: old, f: f} }})
		return nil
	}
}

// upgrade is a way from another type.
type upgrade struct {
	from  reflect.Type
	codec func(old codec) codec // reads with the codec of from
}

// upgraded reads a value of another type.
type upgraded[Old, New any] struct {
	readOnly
	old codec
	f   func(Old) (New, error)
}

func (u *upgraded[Old, New]) least() int { return u.old.least() }

func (u *upgraded[Old, New]) read(src []byte, v unsafe.Pointer, depth int) (int, error) {
	old := new(Old)
	n, err := u.old.read(src, unsafe.Pointer(old), depth)
	if err != nil {
		return n, err
	}
	now, err := u.f(*old)
	if err != nil {
		return n, fmt.Errorf("upgrade a value: %w", err)
	}
	*(*New)(v) = now
	return n, nil
}

// checkUpgrades compiles the types of the past.
func (s *settings) checkUpgrades() error {
	for to, all := range s.upgrades {
		for _, u := range all {
			if _, err := newCompiler(u.from, s).codecOf(u.from, ""); err != nil {
				return fmt.Errorf("upgrade to %s: %w", to, err)
			}
		}
	}
	return nil
}

// upgradeOf finds the way from an old schema to a type that has upgrades.
func (e *evolution) upgradeOf(all []upgrade, old enclosed, t reflect.Type, path string) (codec, error) {
	pair := evolutionPair{old.Schema, t}
	if e.upgrading[pair] {
		return nil, e.mismatch(old.Schema, t, path)
	}
	if e.upgrading == nil {
		e.upgrading = map[evolutionPair]bool{}
	}
	e.upgrading[pair] = true
	defer delete(e.upgrading, pair)
	text := old.String()
	if e.schema(t, nil).String() == text {
		return e.sameOf(old, t, path)
	}
	if chain := e.exactly(t, text, nil); chain != nil {
		cd, err := e.sameOf(old, chain[len(chain)-1].from, path)
		if err != nil {
			return nil, err
		}
		for _, u := range slices.Backward(chain) {
			cd = u.codec(cd)
		}
		return cd, nil
	}
	cd, err := e.sameOf(old, t, path)
	if err == nil {
		return cd, nil
	}
	for _, u := range all {
		if cd, err := e.codecOf(old.Schema, u.from, path, old.outer); err == nil {
			return u.codec(cd), nil
		}
	}
	return nil, err
}

// exactly gives the upgrades to t, the last one first, that begin with a type of a schema; nil if there are none.
func (e *evolution) exactly(t reflect.Type, text string, passed []reflect.Type) []upgrade {
	passed = append(passed, t)
	for _, u := range e.upgrades[t] {
		if e.schema(u.from, nil).String() == text {
			return []upgrade{u}
		}
	}
	for _, u := range e.upgrades[t] {
		if slices.Contains(passed, u.from) {
			continue
		}
		if rest := e.exactly(u.from, text, passed); rest != nil {
			return append([]upgrade{u}, rest...)
		}
	}
	return nil
}
