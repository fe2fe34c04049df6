package serde

import (
	"fmt"
	"reflect"
	"unsafe"
)

// Key is a Handle of a type whose values can be keys: it knows their canonical form, which decides which keys are equal,
// where they live and how they are written in snapshots. It is immutable and may be shared by all goroutines.
type Key struct {
	*Handle
	Width  uintptr // bytes of every canonical key; 0: keys are text
	Direct bool    // Go memory is the canonical form: no copy is made
	form   keyForm
	parts  []keyPart
}

type keyForm uint8

const (
	formMemory    keyForm = iota // fixed width, Go memory itself
	formString                   // a string's own bytes
	formPacked                   // fixed width, packed from parts
	formComposite                // varying width, composed from parts
)

// maxKeyParts bounds the fields of a key type after arrays and nested structs are spread out.
const maxKeyParts = 1024

// KeyOf compiles the key type K. The error names the path of the field that cannot be part of a key.
func KeyOf[K any](opts ...Option) (*Key, error) { return KeyOfType(reflect.TypeFor[K](), opts...) }

// KeyOfType compiles the key type t. Pointers, interfaces, slices, maps, channels and functions are refused, since their
// identity differs between processes, unless the type has MarshalBinary and UnmarshalBinary or a codec was given: then
// two keys are the same exactly if their bytes are.
func KeyOfType(t reflect.Type, opts ...Option) (*Key, error) {
	s, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	c := newCompiler(t, s)
	parts, err := c.keyParts(nil, t, 0, "")
	if err != nil {
		return nil, err
	}
	h, err := compileHandle(t, s)
	if err != nil {
		return nil, err
	}
	k := &Key{Handle: h, parts: parts}
	k.choose()
	return k, nil
}

// choose picks the cheapest form for the parts.
func (k *Key) choose() {
	k.form = formComposite
	if len(k.parts) == 1 && k.parts[0].op == keyString && k.Size == unsafe.Sizeof("") {
		k.form, k.Direct = formString, true
		return
	}
	width, direct := uintptr(0), true
	for i := range k.parts {
		p := &k.parts[i]
		w := p.width()
		if w == 0 {
			return
		}
		direct = direct && p.op <= keyBool && p.off == width && (!bigEndian || p.unit == 1)
		width += w
	}
	if width == 0 {
		return
	}
	k.Width = width
	if direct && width == k.Size {
		k.form, k.Direct = formMemory, true
		return
	}
	k.form = formPacked
}

// Decode makes the Go value of a canonical key at v. It shares no memory with the bytes. Bytes that are not a canonical
// key of the type are an error.
func (k *Key) Decode(canon []byte, v unsafe.Pointer) error {
	alone := len(k.parts) == 1
	rest := canon
	for i := range k.parts {
		p := &k.parts[i]
		n, err := p.read(rest, unsafe.Add(v, p.off), alone)
		if err != nil {
			return fmt.Errorf("serde: decode key of type %s: %w", k.Name, err)
		}
		rest = rest[n:]
	}
	if len(rest) > 0 {
		return fmt.Errorf("serde: decode key of type %s: %d bytes too many", k.Name, len(rest))
	}
	return nil
}
