package stream

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/fields"
	"github.com/flott-dev/flott/internal/operator/keyed"
	"github.com/flott-dev/flott/serde"
)

// KeyByFields partitions the stream by fields of its elements, named by paths: "Sensor", "Place.City" for a field of a
// field, "*" for the whole element. Names are those of the Go fields; where there is none of that name, capitals don't
// matter, and f0, f1 ... (_1, _2 ...) are positions. K is the field's type or, for several fields, a struct of their types
// in that order. What does not fit is a build error; elements are taken apart by offset, without reflection.
func (s *Stream[T]) KeyByFields[K comparable](paths ...string) *KeyedStream[T, K] {
	found, err := findPaths(s.c.typ, paths)
	return keyByFields[T, K](s.c, found, err)
}

// KeyByPositions is KeyByFields with positions, from 0, of the element's fields.
func (s *Stream[T]) KeyByPositions[K comparable](positions ...int) *KeyedStream[T, K] {
	found, err := findPositions(s.c.typ, positions)
	return keyByFields[T, K](s.c, found, err)
}

func findPaths(t *frame.Type, paths []string) (found []fields.Field, err error) {
	if len(paths) == 0 {
		return nil, fmt.Errorf("type %s: no field is named", t.Name)
	}
	for _, p := range paths {
		f, err := fields.Find(t.Handle.Type, p)
		if err != nil {
			return nil, err
		}
		found = append(found, f)
	}
	return found, nil
}

func findPositions(t *frame.Type, positions []int) (found []fields.Field, err error) {
	if len(positions) == 0 {
		return nil, fmt.Errorf("type %s: no position is given", t.Name)
	}
	for _, i := range positions {
		f, err := fields.At(t.Handle.Type, i)
		if err != nil {
			return nil, err
		}
		found = append(found, f)
	}
	return found, nil
}

// keyByFields keys by what was found; err is why it wasn't.
func keyByFields[T, K any](c *core, found []fields.Field, err error) *KeyedStream[T, K] {
	copier := &fields.Copier{}
	if err == nil {
		copier, err = fields.NewCopier(found, reflect.TypeFor[K]())
	}
	if err != nil {
		c.env.report(fmt.Errorf("key by fields: %w", err))
	}
	return keyBy[T, K](c, func() func(*frame.Run) serde.Column {
		buf := make([]K, frame.MaxLen)
		col := column(buf, 0)
		return func(r *frame.Run) serde.Column {
			col.N = r.N
			copier.Copy(col.P, col.Stride, r.P, r.Type.Size, r.N)
			return col
		}
	})
}

// Tie says which of several elements that compare equal MinBy and MaxBy keep.
type Tie uint8

const (
	// KeepFirst keeps the earliest. It is the default.
	KeepFirst Tie = iota
	// KeepLast keeps the latest.
	KeepLast
)

// SumField emits, for each element, the first element of its key with the field at path replaced by its running total
// over the key. Integers wrap around as in Go. See KeyByFields for paths.
func (s *KeyedStream[T, K]) SumField(path string) *Stream[T] {
	return &Stream[T]{s.c.changeField("Sum", s.key, path, sumField)}
}

// MinField emits, for each element, the first element of its key with the field at path replaced by the smallest so far.
// The other fields are those of the first element, not those of the element that had the smallest: see MinByField.
// Numbers, strings, bools and times have an order; a NaN is greater than every number.
func (s *KeyedStream[T, K]) MinField(path string) *Stream[T] {
	return &Stream[T]{s.c.changeField("Min", s.key, path, minField)}
}

// MaxField is MinField for the largest.
func (s *KeyedStream[T, K]) MaxField(path string) *Stream[T] {
	return &Stream[T]{s.c.changeField("Max", s.key, path, maxField)}
}

// MinByField emits, for each element, the element of its key whose field at path is the smallest so far. tie says which
// one of equals, KeepFirst unless given.
func (s *KeyedStream[T, K]) MinByField(path string, tie ...Tie) *Stream[T] {
	return &Stream[T]{s.c.chooseField("Min By", s.key, path, -1, tie)}
}

// MaxByField is MinByField for the largest.
func (s *KeyedStream[T, K]) MaxByField(path string, tie ...Tie) *Stream[T] {
	return &Stream[T]{s.c.chooseField("Max By", s.key, path, 1, tie)}
}

func sumField(f fields.Field) (func(acc, x unsafe.Pointer), error) { return f.Adder() }

func minField(f fields.Field) (func(acc, x unsafe.Pointer), error) { return extremeField(f, -1) }

func maxField(f fields.Field) (func(acc, x unsafe.Pointer), error) { return extremeField(f, 1) }

// extremeField takes a field over if it compares as sign does with what was kept.
func extremeField(f fields.Field, sign int) (func(acc, x unsafe.Pointer), error) {
	o, err := f.Order()
	return func(acc, x unsafe.Pointer) {
		if o.Compare(x, acc) == sign {
			o.Assign(acc, x)
		}
	}, err
}

func (c *core) changeField(name string, key *operator.Key, path string, rule func(fields.Field) (func(acc, x unsafe.Pointer), error)) *core {
	typ := c.typ
	f, err := fields.Find(typ.Handle.Type, path)
	var change func(acc, x unsafe.Pointer)
	if err == nil {
		change, err = rule(f)
	}
	if err != nil {
		c.env.report(fmt.Errorf("aggregate a field: %w", err))
	}
	return c.applyKeyed(name, key, typ, func() operator.Operator { return keyed.Change(typ, key, change) })
}

func (c *core) chooseField(name string, key *operator.Key, path string, sign int, tie []Tie) *core {
	typ := c.typ
	f, err := fields.Find(typ.Handle.Type, path)
	var o fields.Order
	if err == nil {
		o, err = f.Order()
	}
	if err != nil {
		c.env.report(fmt.Errorf("aggregate by a field: %w", err))
	}
	last := c.tie(tie) == KeepLast
	choose := func(acc, x unsafe.Pointer) bool {
		d := o.Compare(x, acc)
		return d == sign || last && d == 0
	}
	return c.applyKeyed(name, key, typ, func() operator.Operator { return keyed.Choose(typ, key, choose) })
}

func (c *core) tie(tie []Tie) Tie {
	switch {
	case len(tie) == 0:
		return KeepFirst
	case len(tie) > 1 || tie[0] > KeepLast:
		c.env.report(fmt.Errorf("choose between equal elements by %v: give KeepFirst or KeepLast", tie))
	}
	return tie[0]
}

// project is the stream of elements that a copier makes.
func (c *core) project(out *frame.Type, found []fields.Field, err error) *core {
	copier := &fields.Copier{}
	if err == nil {
		copier, err = fields.NewCopier(found, out.Handle.Type)
	}
	if err != nil {
		c.env.report(fmt.Errorf("project to %s: %w", out.Name, err))
	}
	in := c.typ
	return c.apply("Projection", out, func() operator.Operator { return fields.Project(in, out, copier) })
}
