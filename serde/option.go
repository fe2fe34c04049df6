package serde

import (
	"fmt"
	"reflect"
	"unsafe"
)

// Option changes how a type and the types inside it are compiled.
type Option func(*settings) error

// settings are the options of one compilation.
type settings struct {
	user   map[reflect.Type]*framed // WithCodec
	sets   map[reflect.Type]*ifaces // OneOf
	protos []protoRule              // Proto

	upgrades map[reflect.Type][]upgrade // Upgrade, by the type that they lead to
}

func newSettings(opts []Option) (*settings, error) {
	s := &settings{user: map[reflect.Type]*framed{}, sets: map[reflect.Type]*ifaces{}}
	for _, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("serde: an option is nil")
		}
		if err := o(s); err != nil {
			return nil, err
		}
	}
	return s, s.checkUpgrades()
}

// WithCodec gives the type T, wherever it occurs, an encoding of its own. The function append adds the encoding of a value to a slice;
// read decodes one value from the front of a slice, which it must not keep, and reports how many bytes it took. The
// encoding is stored with its length, so that a pair that reads another number of bytes than it writes fails at once.
// Both functions are called by many goroutines. As part of a key, values are equal exactly if their encodings are.
func WithCodec[T any](append func([]byte, T) ([]byte, error), read func([]byte) (T, int, error)) Option {
	t := reflect.TypeFor[T]()
	return func(s *settings) error {
		if append == nil || read == nil {
			return fmt.Errorf("serde: codec of %s: a function is nil", t)
		}
		if _, ok := s.user[t]; ok {
			return fmt.Errorf("serde: codec of %s: given twice", t)
		}
		s.user[t] = &framed{
			name: t.String(),
			put:  func(dst []byte, v unsafe.Pointer) ([]byte, error) { return append(dst, *(*T)(v)) },
			take: func(src []byte, v unsafe.Pointer) (int, error) {
				x, n, err := read(src)
				if err == nil {
					*(*T)(v) = x
				}
				return n, err
			},
			assign: assignOf(t, func(dst, src unsafe.Pointer) { *(*T)(dst) = *(*T)(src) }),
		}
		return nil
	}
}

// assignOf gives assign if a plain assignment makes a deep copy of a value of type t, and nil otherwise.
func assignOf(t reflect.Type, assign func(dst, src unsafe.Pointer)) func(dst, src unsafe.Pointer) {
	if _, ok := stringOffsets(t, 0, nil); ok {
		return assign
	}
	return nil
}

// OneOf closes the set of types that the interface type I holds, wherever I occurs: the types of the prototypes, whose
// values do not matter (a nil pointer will do). A value is encoded as the position of its type and the value, so new
// types go to the end. A value of any other type is an error when it is encoded; a nil interface is legal.
func OneOf[I any](prototypes ...I) Option {
	t := reflect.TypeFor[I]()
	return func(s *settings) error {
		if t.Kind() != reflect.Interface {
			return fmt.Errorf("serde: set of %s: it is no interface type", t)
		}
		if _, ok := s.sets[t]; ok {
			return fmt.Errorf("serde: set of %s: given twice", t)
		}
		set := &ifaces{
			name: t.String(),
			typeOf: func(v unsafe.Pointer) unsafe.Pointer {
				x := any(*(*I)(v))
				return (*iface)(unsafe.Pointer(&x)).typ
			},
			store: func(v unsafe.Pointer, e iface) {
				if e.typ == nil {
					clear(unsafe.Slice((*I)(v), 1))
					return
				}
				*(*I)(v) = e.value().(I)
			},
		}
		for _, p := range prototypes {
			if err := set.add(any(p)); err != nil {
				return err
			}
		}
		if len(set.members) == 0 {
			return fmt.Errorf("serde: set of %s: it is empty", t)
		}
		s.sets[t] = set
		return nil
	}
}

// Proto says how protocol buffer messages are encoded: serde.Proto(proto.Marshal, proto.Unmarshal), where M becomes
// proto.Message. It holds for every type whose pointer is an M. A message is stored with its length. Messages can't
// be keys, since their encoding is not canonical.
func Proto[M any](marshal func(M) ([]byte, error), unmarshal func([]byte, M) error) Option {
	t := reflect.TypeFor[M]()
	return func(s *settings) error {
		if t.Kind() != reflect.Interface {
			return fmt.Errorf("serde: messages as %s: it is no interface type", t)
		}
		if marshal == nil || unmarshal == nil {
			return fmt.Errorf("serde: messages as %s: a function is nil", t)
		}
		s.protos = append(s.protos, protoRule{message: t, codec: func(elem reflect.Type) *framed {
			ptr := typeWord(reflect.Zero(reflect.PointerTo(elem)).Interface())
			return &framed{
				name: elem.String(),
				put: func(dst []byte, v unsafe.Pointer) ([]byte, error) {
					b, err := marshal(iface{ptr, v}.value().(M))
					return append(dst, b...), err
				},
				take: func(src []byte, v unsafe.Pointer) (int, error) {
					return len(src), unmarshal(src, iface{ptr, v}.value().(M))
				},
			}
		}})
		return nil
	}
}

// protoRule makes codecs for the types whose pointers implement message.
type protoRule struct {
	message reflect.Type
	codec   func(elem reflect.Type) *framed
}
