package broadcast

import (
	"bytes"
	"fmt"

	"github.com/flott-dev/flott/statebackend"
)

// tables is the store that a function's state is bound to: it remembers what was declared, so that the broadcast side can
// find all keys of a state by its name.
type tables struct {
	statebackend.Store
	byName map[string]ranger
}

// ranger is a table of any kind.
type ranger interface {
	Range(f func(*statebackend.Entry) bool) error
}

func (s *tables) Table(spec statebackend.TableSpec) (statebackend.Table, error) {
	t, err := s.Store.Table(spec)
	if err == nil {
		s.byName[spec.Name] = t
	}
	return t, err
}

func (s *tables) List(spec statebackend.TableSpec) (statebackend.ListTable, error) {
	t, err := s.Store.List(spec)
	if err == nil {
		s.byName[spec.Name] = t
	}
	return t, err
}

func (s *tables) Map(spec statebackend.TableSpec) (statebackend.MapTable, error) {
	t, err := s.Store.Map(spec)
	if err == nil {
		s.byName[spec.Name] = t
	}
	return t, err
}

// found are the keys of a state in one piece of memory.
type found struct {
	hashes []uint64
	bytes  []byte
	ends   []int // of each key in bytes
}

func (k *found) at(i int) []byte {
	from := 0
	if i > 0 {
		from = k.ends[i-1]
	}
	return k.bytes[from:k.ends[i]:k.ends[i]]
}

func (k *found) add(key []byte, hash uint64) {
	if n := len(k.hashes); n > 0 && k.hashes[n-1] == hash && bytes.Equal(k.at(n-1), key) {
		return // another element of the same list or map: they come together
	}
	k.bytes = append(k.bytes, key...)
	k.ends = append(k.ends, len(k.bytes))
	k.hashes = append(k.hashes, hash)
}

// keys collects the keys that have something in a state.
func (s *tables) keys(name string) (*found, error) {
	t := s.byName[name]
	if t == nil {
		return nil, fmt.Errorf("apply to keyed state %q: the function has declared no such state", name)
	}
	k := &found{}
	err := t.Range(func(e *statebackend.Entry) bool {
		k.add(e.Key, e.Hash)
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("apply to keyed state %q: %w", name, err)
	}
	return k, nil
}
