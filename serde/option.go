package serde

import "reflect"

// Option changes how a type and the types inside it are compiled.
type Option func(*settings) error

// settings are the options of one compilation.
type settings struct {
	codecs map[reflect.Type]codec
	order  []reflect.Type
}

func newSettings(opts []Option) (*settings, error) {
	s := &settings{codecs: map[reflect.Type]codec{}}
	for _, o := range opts {
		if err := o(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}
