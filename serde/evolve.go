package serde

import (
	"fmt"
	"reflect"
	"unsafe"
)

// Reader decodes values that were encoded under an older schema of their type.
type Reader struct {
	handle *Handle
	codec  codec
}

// Reader compiles the way from an old schema to the type. Struct fields are matched by name: fields that are gone are
// skipped, new ones get their zero value, the order does not matter. Types of a closed set are matched by name as well. A whole
// number may have become one that holds all values of the old kind, a float32 a float64. All else must have the same kind, or
// an Upgrade. The error names the path of the first field that does not fit.
func (h *Handle) Reader(old *Schema) (*Reader, error) {
	if old.String() == h.schema.String() {
		return &Reader{handle: h, codec: h.codec}, nil
	}
	e := &evolution{compiler: newCompiler(h.Type, h.settings), met: map[evolutionPair]*later{}}
	cd, err := e.codecOf(old, h.Type, "", nil)
	if err != nil {
		return nil, err
	}
	return &Reader{handle: h, codec: cd}, nil
}

// Read decodes one value from the front of src into the memory at v and reports how many bytes it took, like
// Handle.Read.
func (r *Reader) Read(src []byte, v unsafe.Pointer) (int, error) {
	n, err := r.codec.read(src, v, maxDepth)
	if err != nil {
		return n, fmt.Errorf("serde: decode %s from its old schema: %w", r.handle.Name, err)
	}
	return n, nil
}

// Plain reports whether Read only copies: an encoding is the Go memory of its value.
func (r *Reader) Plain() bool { return isPlain(r.codec, r.handle.Size) }

// evolution compiles codecs that only read.
type evolution struct {
	*compiler
	met       map[evolutionPair]*later
	upgrading map[evolutionPair]bool // upgrades that are being looked for
}

type evolutionPair struct {
	old *Schema
	typ reflect.Type
}

// enclosed is a schema with those around it, which recursions refer to.
type enclosed struct {
	*Schema
	outer []*Schema
}

// resolve follows a recursion.
func resolve(s *Schema, outer []*Schema) enclosed {
	for s.Kind == Recursion {
		at := len(outer) - s.Len
		s, outer = outer[at], outer[:at]
	}
	return enclosed{s, outer}
}

// inside gives the schemas around a part of e.
func (e enclosed) inside() []*Schema { return append(e.outer[:len(e.outer):len(e.outer)], e.Schema) }

func (e *evolution) mismatch(old *Schema, t reflect.Type, path string) error {
	return e.refuse(path, "the snapshot has %s, the program %s", old, e.schema(t, nil))
}

func (e *evolution) codecOf(s *Schema, t reflect.Type, path string, outer []*Schema) (codec, error) {
	old := resolve(s, outer)
	if all := e.upgrades[t]; all != nil {
		return e.upgradeOf(all, old, t, path)
	}
	return e.sameOf(old, t, path)
}

// sameOf finds the way from an old schema to a type that has changed as schemas may.
func (e *evolution) sameOf(old enclosed, t reflect.Type, path string) (codec, error) {
	how, err := e.manner(t, path)
	if err != nil {
		return nil, err
	}
	switch how {
	case byUser, byMarshaler, byProto:
		if old.Kind != Custom || old.Name != t.Name() {
			return nil, e.mismatch(old.Schema, t, path)
		}
		return e.framedOf(t, how), nil
	case byTime:
		if old.Kind != Time {
			return nil, e.mismatch(old.Schema, t, path)
		}
		return instant{}, nil
	case byReference:
		return e.reference(old, t, path)
	}
	switch t.Kind() {
	case reflect.Array:
		if old.Kind != Array || old.Len != t.Len() {
			return nil, e.mismatch(old.Schema, t, path)
		}
		elem, err := e.codecOf(old.Elem, t.Elem(), path+"[]", old.inside())
		return &array{n: t.Len(), size: t.Elem().Size(), codec: elem}, err
	case reflect.Struct:
		return e.structOf(old, t, path)
	}
	if now := scalarKind(t.Kind()); old.Kind != now {
		if w := widening(old.Kind, now, t.Size()); w != nil {
			return w, nil
		}
		return nil, e.mismatch(old.Schema, t, path)
	}
	return e.compiler.codecOf(t, path)
}

func (e *evolution) structOf(old enclosed, t reflect.Type, path string) (codec, error) {
	if old.Kind != Struct {
		return nil, e.mismatch(old.Schema, t, path)
	}
	fields := map[string]reflect.StructField{}
	for i := range t.NumField() {
		if f := t.Field(i); f.Name != "_" {
			fields[fieldName(f)] = f
		}
	}
	out := &evolved{}
	for _, o := range old.Fields {
		f, ok := fields[o.Name]
		if !ok {
			out.fields = append(out.fields, evolvedField{codec: skip{resolve(o.Schema, old.inside())}})
			continue
		}
		delete(fields, o.Name)
		cd, err := e.codecOf(o.Schema, f.Type, joinPath(path, f.Name), old.inside())
		if err != nil {
			return nil, err
		}
		out.fields = append(out.fields, evolvedField{off: f.Offset, codec: cd})
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.Name != "_" && fields[fieldName(f)].Name == f.Name {
			out.fresh = append(out.fresh, f)
		}
	}
	return out, nil
}

// reference compiles the types that can close a circle.
func (e *evolution) reference(old enclosed, t reflect.Type, path string) (codec, error) {
	pair := evolutionPair{old.Schema, t}
	if l, ok := e.met[pair]; ok {
		return l, nil
	}
	l := &later{}
	e.met[pair] = l
	var err error
	switch {
	case t.Kind() == reflect.Pointer && old.Kind == Pointer:
		p := &pointer{elem: t.Elem()}
		p.codec, err = e.codecOf(old.Elem, t.Elem(), path, old.inside())
		l.codec = p
	case t.Kind() == reflect.Slice && old.Kind == Slice:
		s := &slice{typ: t, size: t.Elem().Size(), plain: !holdsPointers(t.Elem())}
		s.codec, err = e.codecOf(old.Elem, t.Elem(), path+"[]", old.inside())
		l.codec = s
	case t.Kind() == reflect.Map && old.Kind == Map:
		m := &mapping{typ: t}
		if m.key, err = e.codecOf(old.Key, t.Key(), path+"[key]", old.inside()); err == nil {
			m.val, err = e.codecOf(old.Elem, t.Elem(), path+"[]", old.inside())
		}
		l.codec = m
	case t.Kind() == reflect.Interface && old.Kind == Interface:
		l.codec, err = e.setOf(old, t, path)
	default:
		err = e.mismatch(old.Schema, t, path)
	}
	return l.codec, err
}

// setOf brings the types of a closed set into the old order.
func (e *evolution) setOf(old enclosed, t reflect.Type, path string) (codec, error) {
	set := e.sets[t].copy()
	set.members = nil
	for _, o := range old.Fields {
		found := false
		for _, m := range e.sets[t].members {
			if found = memberName(m.typ) == o.Name; !found {
				continue
			}
			var err error
			m.codec, err = e.codecOf(o.Schema, m.typ, fmt.Sprintf("%s.(%s)", path, m.typ), old.inside())
			if err != nil {
				return nil, err
			}
			set.members = append(set.members, m)
			break
		}
		if !found {
			return nil, e.refuse(path, "the snapshot has type %s, which is not in the set of %s", o.Name, t)
		}
	}
	return set, nil
}

// readOnly completes a codec that only reads.
type readOnly struct{}

const errReadOnly = decodeError("an old schema is only read")

func (readOnly) append(dst []byte, _ unsafe.Pointer, _ int) ([]byte, error) { return dst, errReadOnly }
func (readOnly) equal(_, _ unsafe.Pointer, _ int) bool                      { return false }
func (readOnly) clone(_, _ unsafe.Pointer, _ int) error                     { return errReadOnly }

// evolved reads a struct from the fields that it once had.
type evolved struct {
	readOnly
	fields []evolvedField
	fresh  []reflect.StructField // that it did not have
}

type evolvedField struct {
	off   uintptr
	codec codec
}

func (s *evolved) least() int {
	n := 0
	for i := range s.fields {
		n += s.fields[i].codec.least()
	}
	return n
}

func (s *evolved) read(src []byte, v unsafe.Pointer, depth int) (int, error) {
	for i := range s.fresh {
		f := &s.fresh[i]
		reflect.NewAt(f.Type, unsafe.Add(v, f.Offset)).Elem().SetZero()
	}
	pos := 0
	for i := range s.fields {
		f := &s.fields[i]
		n, err := f.codec.read(src[pos:], unsafe.Add(v, f.off), depth)
		pos += n
		if err != nil {
			return pos, err
		}
	}
	return pos, nil
}
