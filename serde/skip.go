package serde

import "unsafe"

// skip reads over a value that the program no longer has.
type skip struct{ enclosed }

func (s skip) append(dst []byte, _ unsafe.Pointer, _ int) ([]byte, error) { return dst, errReadOnly }
func (s skip) equal(_, _ unsafe.Pointer, _ int) bool                      { return false }
func (s skip) clone(_, _ unsafe.Pointer, _ int) error                     { return errReadOnly }
func (s skip) least() int                                                 { return s.Schema.least() }

// skipDepth is how much deeper than a codec skip nests: it counts structs and arrays as well.
const skipDepth = 8

func (s skip) read(src []byte, _ unsafe.Pointer, depth int) (int, error) {
	return s.skip(src, skipDepth*depth)
}

// least is the number of bytes that every encoding under the schema has at least.
func (s *Schema) least() int {
	switch s.Kind {
	case Bool, Int8, Uint8, String, Slice, Pointer, Map, Interface, Custom, Recursion:
		return 1
	case Int16, Uint16:
		return 2
	case Int32, Uint32, Float32:
		return 4
	case Int64, Uint64, Float64, Complex64:
		return 8
	case Complex128, Time:
		return 16
	case Array:
		return s.Len * s.Elem.least()
	}
	n := 0
	for _, f := range s.Fields {
		n += f.Schema.least()
	}
	return n
}

// part is a schema inside s.
func (e enclosed) part(s *Schema) enclosed { return resolve(s, e.inside()) }

// skip gives the number of bytes of the value at the front of src.
func (e enclosed) skip(src []byte, depth int) (int, error) {
	if depth == 0 {
		return 0, errDepth
	}
	switch e.Kind {
	case String, Custom:
		n, used, err := readLen(src, 1)
		return used + n, err
	case Pointer:
		if len(src) == 0 {
			return 0, errTruncated
		}
		if src[0] == 0 {
			return 1, nil
		}
		n, err := e.part(e.Elem).skip(src[1:], depth-1)
		return 1 + n, err
	case Slice, Map:
		return e.skipMany(src, depth)
	case Array:
		if e.Elem.least() == 0 {
			return 0, nil
		}
		return e.skipItems(src, e.Len, depth, e.Elem)
	case Interface:
		tag, used, err := readUvarint(src)
		if err != nil || tag == 0 {
			return used, err
		}
		if tag > uint64(len(e.Fields)) {
			return used, errCount
		}
		n, err := e.part(e.Fields[tag-1].Schema).skip(src[used:], depth-1)
		return used + n, err
	case Struct:
		pos := 0
		for _, f := range e.Fields {
			n, err := e.part(f.Schema).skip(src[pos:], depth-1)
			pos += n
			if err != nil {
				return pos, err
			}
		}
		return pos, nil
	}
	n := e.Schema.least()
	if len(src) < n {
		return 0, errTruncated
	}
	return n, nil
}

// skipMany skips a slice or a map.
func (e enclosed) skipMany(src []byte, depth int) (int, error) {
	count, pos, err := readUvarint(src)
	if err != nil || count == 0 {
		return pos, err
	}
	items := []*Schema{e.Elem}
	least := e.Elem.least()
	if e.Kind == Map {
		items = []*Schema{e.Key, e.Elem}
		least += e.Key.least()
	}
	if least == 0 && e.Kind == Map {
		if count > 2 {
			return pos, errMapKey
		}
		return pos, nil
	}
	n, err := checkCount(count-1, max(least, 1), len(src)-pos)
	if err != nil {
		return pos, err
	}
	if least == 0 {
		return pos + n, nil
	}
	used, err := e.skipItems(src[pos:], n, depth, items...)
	return pos + used, err
}

func (e enclosed) skipItems(src []byte, count, depth int, items ...*Schema) (int, error) {
	pos := 0
	parts := make([]enclosed, len(items))
	for i, s := range items {
		parts[i] = e.part(s)
	}
	for range count {
		for _, p := range parts {
			n, err := p.skip(src[pos:], depth-1)
			pos += n
			if err != nil {
				return pos, err
			}
		}
	}
	return pos, nil
}
