package serde

import (
	"fmt"
	"unsafe"
)

// Column is a run of N Go values of one type, Stride bytes apart.
type Column struct {
	P      unsafe.Pointer // the first value
	N      int            // how many
	Stride uintptr        // bytes from one value to the next
}

// At is the address of value i.
func (c *Column) At(i int) unsafe.Pointer { return unsafe.Add(c.P, uintptr(i)*c.Stride) }

// Canon is the canonical form of a run of keys: either fixed-width bytes, or text. Two keys are the same key exactly if
// their canonical bytes are equal. It is a view of the key column or of the scratch that it was made with, and valid
// until either changes.
type Canon struct {
	Width  uintptr        // > 0: each key is Width bytes at P + i*Stride
	P      unsafe.Pointer // Width > 0 only
	Stride uintptr        // Width > 0 only
	Text   []string       // Width == 0: canonical bytes as strings (the key's own memory for string keys)
	N      int            // how many
}

func (c *Canon) at(i int) unsafe.Pointer { return unsafe.Add(c.P, uintptr(i)*c.Stride) }

// Bytes is a view of the canonical bytes of key i; it must not be changed.
func (c *Canon) Bytes(i int) []byte {
	if c.Width > 0 {
		return bytesAt(c.at(i), c.Width)
	}
	s := c.Text[i]
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

// KeyScratch is the memory that canonical forms are made in. One subtask owns it; every call of Canon with it ends the
// validity of the form made before. The zero value is ready.
type KeyScratch struct {
	packed []byte   // fixed width: the packed keys; text: the bytes behind the strings
	ends   []int    // where each composite key ends in packed
	text   []string // the strings of a run
}

// NaNKeyError says that a key of a run holds a NaN, which equals no key and so cannot be one.
type NaNKeyError struct {
	Index int    // position in the run
	Type  string // the key type
}

// Error names the element and the key type.
func (e *NaNKeyError) Error() string {
	return fmt.Sprintf("serde: key %d of the run: NaN in a key of type %s", e.Index, e.Type)
}

// KeyError says that the codec of a user's key type failed for one key of a run.
type KeyError struct {
	Index int    // position in the run
	Type  string // the key type
	Err   error  // what the codec said
}

// Error names the element, the key type and the cause.
func (e *KeyError) Error() string {
	return fmt.Sprintf("serde: key %d of the run: encode key of type %s: %v", e.Index, e.Type, e.Err)
}

// Unwrap gives the codec's error.
func (e *KeyError) Unwrap() error { return e.Err }

// Canon makes the canonical form of a column of keys. It fails with a *NaNKeyError or a *KeyError at the first key that
// has none. It does not allocate once the scratch has grown to the run's size, except in MarshalBinary of user types.
func (k *Key) Canon(col Column, s *KeyScratch) (Canon, error) {
	switch {
	case k.form == formMemory:
		return Canon{Width: k.Width, P: col.P, Stride: col.Stride, N: col.N}, nil
	case k.form == formString:
		return Canon{Text: s.strings(col), N: col.N}, nil
	case k.form == formPacked:
		return k.pack(col, s)
	}
	return k.compose(col, s)
}

// strings views a column of strings; only a column with other fields between them is copied.
func (s *KeyScratch) strings(col Column) []string {
	if col.Stride == unsafe.Sizeof("") {
		return unsafe.Slice((*string)(col.P), col.N)
	}
	s.text = s.text[:0]
	for i := range col.N {
		s.text = append(s.text, *(*string)(col.At(i)))
	}
	return s.text
}

// pack copies fixed-width keys field by field, each field for the whole column.
func (k *Key) pack(col Column, s *KeyScratch) (Canon, error) {
	size := int(k.Width) * col.N
	if cap(s.packed) < size {
		s.packed = make([]byte, size)
	}
	s.packed = s.packed[:cap(s.packed)]
	out := Canon{Width: k.Width, P: unsafe.Pointer(unsafe.SliceData(s.packed)), Stride: k.Width, N: col.N}
	if col.N == 0 {
		return out, nil
	}
	to := uintptr(0)
	for i := range k.parts {
		p := &k.parts[i]
		bad := p.pack(unsafe.Add(out.P, to), k.Width, unsafe.Add(col.P, p.off), col.Stride, col.N)
		if bad >= 0 {
			return Canon{}, &NaNKeyError{Index: bad, Type: k.Name}
		}
		to += p.width()
	}
	return out, nil
}

// compose writes keys of varying width one after the other and then makes strings of them.
func (k *Key) compose(col Column, s *KeyScratch) (Canon, error) {
	buf, ends := s.packed[:0], s.ends[:0]
	for i := range col.N {
		v := col.At(i)
		for j := range k.parts {
			var err error
			p := &k.parts[j]
			if buf, err = p.appendTo(buf, unsafe.Add(v, p.off), len(k.parts) == 1); err != nil {
				return Canon{}, k.keyError(i, err)
			}
		}
		ends = append(ends, len(buf))
	}
	s.packed, s.ends, s.text = buf, ends, s.text[:0]
	start := 0
	for _, end := range ends {
		part := buf[start:end]
		s.text = append(s.text, unsafe.String(unsafe.SliceData(part), len(part)))
		start = end
	}
	return Canon{Text: s.text, N: col.N}, nil
}

func (k *Key) keyError(i int, err error) error {
	if err == errNaN {
		return &NaNKeyError{Index: i, Type: k.Name}
	}
	return &KeyError{Index: i, Type: k.Name, Err: err}
}
