package checkpoint

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"unsafe"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// draftState is a state of a draft: rows in memory, or a list.
type draftState struct {
	info    statebackend.TableInfo
	types   *types
	all     []draftRow
	entry   int  // the list or map that is being added
	strict  bool // a key comes in one entry
	unique  bool // rows that say the same are one
	memory  []byte
	from    int // where what is being appended begins
	scratch serde.KeyScratch
	list    *List
}

// draftRow is a row.
type draftRow struct {
	key, namespace, mapKey, value []byte
	at                            int64
	hash                          uint64
	group, entry                  int
}

// newDraftState makes a state of the types of a program.
func newDraftState(name string, t *types) (*draftState, error) {
	spec := t.spec(name)
	if t.err == nil {
		t.err = spec.Check()
	}
	if t.err != nil {
		return nil, fmt.Errorf("state %q: %w", name, t.err)
	}
	s := &draftState{types: t, strict: true}
	s.info = statebackend.TableInfo{Name: name, Kind: spec.Kind(), Key: t.key.Schema(), Value: t.value.Schema()}
	if t.mapKey != nil {
		s.info.MapKey = t.mapKey.Schema()
	}
	return s, nil
}

// draftBlock is the size of the blocks of memory that hold rows.
const draftBlock = 256 << 10

// room is where bytes are appended to.
func (s *draftState) room() []byte {
	if cap(s.memory)-len(s.memory) < draftBlock/8 {
		s.memory = make([]byte, 0, draftBlock)
	}
	s.from = len(s.memory)
	return s.memory
}

// taken gives what was appended.
func (s *draftState) taken() []byte { return s.memory[s.from:len(s.memory):len(s.memory)] }

// keep copies bytes; nil stays nil.
func (s *draftState) keep(b []byte) []byte {
	if b == nil {
		return nil
	}
	s.memory = append(s.room(), b...)
	return s.taken()
}

// next begins another list or map.
func (s *draftState) next() { s.entry++ }

// add adds a row. Without lists and maps each is an entry of its own.
func (s *draftState) add(key, mapKey, value unsafe.Pointer) (err error) {
	if s.info.Kind == "value" {
		s.next()
	}
	row := draftRow{entry: s.entry}
	if row.key, err = s.canon(s.types.key, key); err != nil {
		return fmt.Errorf("state %q: %w", s.info.Name, err)
	}
	if s.types.mapKey != nil {
		if row.mapKey, err = s.canon(s.types.mapKey, mapKey); err != nil {
			return fmt.Errorf("state %q: %w", s.info.Name, err)
		}
	}
	if s.memory, err = s.types.value.Append(s.room(), value); err != nil {
		return fmt.Errorf("state %q: %w", s.info.Name, err)
	}
	row.value = s.taken()
	s.all = append(s.all, row)
	return nil
}

// canon gives the canonical bytes of one key, never nil.
func (s *draftState) canon(k *serde.Key, key unsafe.Pointer) ([]byte, error) {
	c, err := k.Canon(serde.Column{P: key, N: 1, Stride: k.Type.Size()}, &s.scratch)
	if err != nil {
		return nil, err
	}
	s.memory = append(s.room(), c.Bytes(0)...)
	return s.taken(), nil
}

// take copies rows.
func (s *draftState) take(rows iter.Seq2[*statebackend.Row, error]) error {
	for r, err := range rows {
		if err != nil {
			return err
		}
		s.all = append(s.all, draftRow{
			key: s.keep(r.Key), namespace: s.keep(r.Namespace), mapKey: s.keep(r.MapKey), value: s.keep(r.Value), at: r.At,
		})
	}
	return nil
}

// sort puts the rows in the order of their key groups, those of one key together.
func (s *draftState) sort(seed uint64, maxParallelism int) error {
	layout, err := layoutOf(&s.info)
	if err != nil {
		return err
	}
	hasher := (&serde.Key{Width: uintptr(layout.key.width)}).Hasher(seed)
	for i := range s.all {
		r := &s.all[i]
		r.hash = hasher.One(r.key)
		r.group = keygroup.Of(uint32(r.hash), maxParallelism)
	}
	slices.SortStableFunc(s.all, func(a, b draftRow) int {
		order := cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.hash, b.hash), bytes.Compare(a.key, b.key))
		if order == 0 && s.unique {
			order = bytes.Compare(a.mapKey, b.mapKey)
		}
		return order
	})
	if s.unique {
		s.all = slices.CompactFunc(s.all, func(a, b draftRow) bool { return bytes.Equal(a.key, b.key) && bytes.Equal(a.mapKey, b.mapKey) })
	}
	for i := 1; s.strict && i < len(s.all); i++ {
		if a, b := &s.all[i-1], &s.all[i]; a.entry != b.entry && bytes.Equal(a.key, b.key) {
			return errors.New("a key comes twice")
		}
	}
	return nil
}

// rows gives the rows of some key groups, which must be sorted.
func (s *draftState) rows(groups keygroup.Range) iter.Seq2[*statebackend.Row, error] {
	return func(yield func(*statebackend.Row, error) bool) {
		at, _ := slices.BinarySearchFunc(s.all, groups.First, func(r draftRow, first int) int { return cmp.Compare(r.group, first) })
		var row statebackend.Row
		for _, r := range s.all[at:] {
			if r.group > groups.Last {
				return
			}
			row = statebackend.Row{
				Group: r.group, Key: r.key, Hash: r.hash, Namespace: r.namespace, MapKey: r.mapKey, At: r.at, Value: r.value,
			}
			if !yield(&row, nil) {
				return
			}
		}
	}
}
