package csv

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"time"
)

// column is a field of a struct as a column of a file.
type column struct {
	name   string
	field  string // path in Go, for messages
	typ    reflect.Type
	offset uintptr
}

// columnsOf lists the columns of a type in order. A type that is no struct is one column without a name.
func columnsOf(t reflect.Type) ([]column, error) {
	if t.Kind() != reflect.Struct || scalar(t) {
		return []column{{typ: t, field: t.String()}}, nil
	}
	var cs []column
	if err := walk(t, t.String(), 0, &cs); err != nil {
		return nil, err
	}
	if len(cs) == 0 {
		return nil, fmt.Errorf("type %s has no column", t)
	}
	seen := map[string]string{}
	for _, c := range cs {
		if other, ok := seen[c.name]; ok {
			return nil, fmt.Errorf("fields %s and %s are both column %q", other, c.field, c.name)
		}
		seen[c.name] = c.field
	}
	return cs, nil
}

func walk(t reflect.Type, path string, at uintptr, cs *[]column) error {
	for f := range t.Fields() {
		name, tagged := f.Tag.Lookup("csv")
		if name == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		here := path + "." + f.Name
		if f.Anonymous && !tagged && f.Type.Kind() == reflect.Struct && !scalar(f.Type) {
			if err := walk(f.Type, here, at+f.Offset, cs); err != nil {
				return err
			}
			continue
		}
		if !f.IsExported() {
			continue
		}
		if tagged && name == "" {
			return fmt.Errorf("field %s has an empty csv tag", here)
		}
		if !tagged {
			name = f.Name
		}
		*cs = append(*cs, column{name: name, field: here, typ: f.Type, offset: at + f.Offset})
	}
	return nil
}

// scalar tells whether a type is one field whatever its kind.
func scalar(t reflect.Type) bool {
	return t == reflect.TypeFor[time.Time]() ||
		reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) ||
		reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

func (c *column) refuse() error {
	return fmt.Errorf("field %s: type %s is no column of a csv file", c.field, c.typ)
}

// plan says what is read from where: the columns of a file and, for each, the field of the struct.
type plan struct {
	targets []target
	at      []int16 // per column of the file: number of its target, or -1
	last    int     // last column that is wanted
}

// compile makes the targets of a type, in the order of the struct.
func compile(t reflect.Type, o *options) ([]target, error) {
	cs, err := columnsOf(t)
	if err != nil {
		return nil, err
	}
	targets := make([]target, len(cs))
	var errs []error
	for i := range cs {
		targets[i], err = newTarget(&cs[i], o)
		errs = append(errs, err)
	}
	return targets, errors.Join(errs...)
}

// place makes the plan of files whose columns are known without reading them.
func place(targets []target, o *options) (*plan, error) {
	if o.names == nil && !o.placed {
		return order(targets, nil)
	}
	if o.names == nil {
		if len(o.positions) > len(targets) {
			return nil, fmt.Errorf("%d columns are to be read, the type has %d", len(o.positions), len(targets))
		}
		return order(targets[:len(o.positions)], o.positions)
	}
	var named []target
	var positions []int
	for i, name := range o.names {
		if name == "" && !o.placed {
			continue
		}
		t := byName(targets, name)
		if t == nil {
			return nil, fmt.Errorf("the type has no column %q", name)
		}
		named, positions = append(named, *t), append(positions, i)
	}
	if o.placed {
		positions = o.positions
	}
	if len(positions) != len(named) {
		return nil, fmt.Errorf("%d columns have names, %d positions", len(named), len(positions))
	}
	return order(named, positions)
}

// order makes the plan that reads the k-th target from the k-th position; nil: from the k-th column.
func order(targets []target, positions []int) (*plan, error) {
	p := &plan{targets: targets, last: -1}
	for k := range targets {
		at := k
		if positions != nil {
			at = positions[k]
		}
		if at >= 1<<15 {
			return nil, fmt.Errorf("column %d is behind the %d columns that a row may have", at, 1<<15)
		}
		for len(p.at) <= at {
			p.at = append(p.at, -1)
		}
		if p.at[at] >= 0 {
			return nil, fmt.Errorf("column %d has two fields", at)
		}
		p.at[at], p.last = int16(k), max(p.last, at)
	}
	if p.last < 0 {
		return nil, errNoColumn
	}
	return p, nil
}

// named makes the plan of a file with a header.
func named(targets []target, header []string) (*plan, error) {
	positions := make([]int, len(targets))
	for k := range targets {
		positions[k] = -1
		for i, name := range header {
			if name == targets[k].name {
				if positions[k] >= 0 {
					return nil, fmt.Errorf("the header has column %q twice", name)
				}
				positions[k] = i
			}
		}
		if positions[k] < 0 {
			return nil, fmt.Errorf("the header has no column %q", targets[k].name)
		}
	}
	return order(targets, positions)
}

func byName(targets []target, name string) *target {
	for i := range targets {
		if targets[i].name == name {
			return &targets[i]
		}
	}
	return nil
}
