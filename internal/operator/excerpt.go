package operator

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// excerptLen is how many bytes of a value are shown.
	excerptLen = 200
	// excerptDepth is how many pointers are followed: values may lead back to themselves.
	excerptDepth = 4
	// excerptKeys is how large a map may be that is shown: its keys are sorted.
	excerptKeys = 64
)

// Excerpt renders a value for an error message, in 200 bytes at most and the sign that there is more: as the format %+v does,
// but texts are quoted and pointers followed. A value with String, Error or Format is shown by that, so that a type says what
// may be read of it in logs. However large the value, it costs little.
func Excerpt(v any) string { return excerptOf(reflect.ValueOf(v)) }

func excerptOf(v reflect.Value) string {
	var e excerpt
	e.value(v, excerptDepth)
	text := strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(string(e))
	if len(text) <= excerptLen {
		return text
	}
	n := excerptLen
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "..."
}

// excerpt is a text under way. Nobody adds to it once it is full.
type excerpt []byte

func (e *excerpt) full() bool { return len(*e) > excerptLen }

// Write implements io.Writer.
func (e *excerpt) Write(b []byte) (int, error) {
	*e = append(*e, b[:min(len(b), max(0, excerptLen+utf8.UTFMax-len(*e)))]...)
	return len(b), nil
}

func (e *excerpt) text(s string) { *e = append(*e, s...) }

// value adds a value.
func (e *excerpt) value(v reflect.Value, depth int) {
	if e.full() {
		return
	}
	if !v.IsValid() {
		e.text("<nil>")
		return
	}
	if v.CanInterface() {
		switch x := v.Interface().(type) {
		case fmt.Formatter, fmt.Stringer, error:
			fmt.Fprintf(e, "%+v", x)
			return
		}
	}
	switch v.Kind() {
	case reflect.String:
		e.quote(v.String())
	case reflect.Pointer, reflect.Interface:
		e.behind(v, depth)
	case reflect.Slice, reflect.Array:
		e.list(v, depth)
	case reflect.Map:
		e.entries(v, depth)
	case reflect.Struct:
		e.fields(v, depth)
	case reflect.Chan, reflect.Func, reflect.UnsafePointer:
		e.text("(" + v.Type().String() + ")")
	default:
		fmt.Fprint(e, v) // a number or bool, as what v holds
	}
}

// quote adds the beginning of a text.
func (e *excerpt) quote(s string) {
	*e = strconv.AppendQuote(*e, s[:min(len(s), excerptLen+utf8.UTFMax)])
}

// behind follows a pointer or interface.
func (e *excerpt) behind(v reflect.Value, depth int) {
	switch {
	case v.IsNil():
		e.text("<nil>")
		return
	case depth == 0:
		e.text("(" + v.Type().String() + ")")
		return
	case v.Kind() == reflect.Pointer:
		e.text("&")
	}
	e.value(v.Elem(), depth-1)
}

func (e *excerpt) list(v reflect.Value, depth int) {
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
		b := v.Bytes()
		e.quote(string(b[:min(len(b), excerptLen+utf8.UTFMax)]))
		return
	}
	e.text("[")
	for i := 0; i < v.Len() && !e.full(); i++ {
		if i > 0 {
			e.text(" ")
		}
		e.value(v.Index(i), depth)
	}
	e.text("]")
}

func (e *excerpt) fields(v reflect.Value, depth int) {
	e.text("{")
	for i := 0; i < v.NumField() && !e.full(); i++ {
		if i > 0 {
			e.text(" ")
		}
		e.text(v.Type().Field(i).Name + ":")
		e.value(v.Field(i), depth)
	}
	e.text("}")
}

func (e *excerpt) entries(v reflect.Value, depth int) {
	if v.Len() > excerptKeys {
		e.text(fmt.Sprintf("map[%d entries]", v.Len()))
		return
	}
	type entry struct {
		key   string
		value reflect.Value
	}
	var all []entry
	for it := v.MapRange(); it.Next(); {
		var key excerpt
		key.value(it.Key(), depth)
		all = append(all, entry{string(key), it.Value()})
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	e.text("map[")
	for i := 0; i < len(all) && !e.full(); i++ {
		if i > 0 {
			e.text(" ")
		}
		e.text(all[i].key + ":")
		e.value(all[i].value, depth)
	}
	e.text("]")
}
