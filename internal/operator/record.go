package operator

import (
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
)

// Record tells after a failure what the operator at work had at hand, as in "at element {...}". If that can't be known it says
// how long the run was; "" if the operator was at none. The run's memory must be what it was during the call.
func (s *Scope) Record() (text string) {
	if s.At == nil || s.Ctx != nil && s.Ctx.Err() != nil { // what fails because it is cancelled is no record's fault
		return ""
	}
	defer func() { // in the middle of a panic a driver's state may be anything
		if recover() != nil {
			text = ""
		}
	}()
	if s.At.AtHand != nil {
		if text := s.At.AtHand(s.Run); text != "" {
			return text
		}
	}
	switch r := s.Run; {
	case r == nil:
		return ""
	case r.N == 1:
		text = "in a run of 1 element"
	default:
		text = fmt.Sprintf("in a run of %d elements", r.N)
	}
	if i, ok := s.Run.Culprit(); ok {
		return AtHand(NamedElement(s.Run, i))
	}
	return text
}

// AtHand is what Runtime.AtHand answers if all this is at hand: texts of Named and its like, of which "" are left out.
func AtHand(named ...string) string {
	var parts []string
	for _, n := range named {
		if n != "" {
			parts = append(parts, n)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return atHand + strings.Join(parts, ", ")
}

const (
	atHand = "at "
	// stamped begins the timestamp of an element.
	stamped = " (timestamp "
)

// NamesRecord reports whether a text of Scope.Record names what was at hand, and not only the run.
func NamesRecord(text string) bool { return strings.HasPrefix(text, atHand) }

// WithoutTimestamps is a text of Scope.Record without the timestamps of elements, by which the same element may differ from one
// attempt of its task to the next.
func WithoutTimestamps(text string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, stamped)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, text, _ = strings.Cut(after, ")")
	}
}

// Named is a key or window with what it is; "" if its type has only one value.
func Named(what string, v any) string { return named(what, reflect.ValueOf(v)) }

// NamedAt is Named of the value at p.
func NamedAt(what string, h *serde.Handle, p unsafe.Pointer) string {
	return named(what, reflect.NewAt(h.Type, p).Elem())
}

func named(what string, v reflect.Value) string {
	if v.Type().Size() == 0 {
		return ""
	}
	return what + " " + excerptOf(v)
}

// NamedElement is element i of a run, with its timestamp.
func NamedElement(r *frame.Run, i int) string {
	text := "element " + Excerpt(r.Type.Box(r.At(i)))
	if t := r.Time(i); t != frame.NoTime {
		text += fmt.Sprintf("%s%d)", stamped, t)
	}
	return text
}

// NamedKey is a key by its canonical encoding.
func NamedKey(k *serde.Key, canonical []byte) string {
	p := k.New()
	if err := k.Decode(canonical, p); err != nil {
		return fmt.Sprintf("key %x", canonical)
	}
	return NamedAt("key", k.Handle, p)
}

// NamedTimer is a timer by its time, ms.
func NamedTimer(d process.Domain, at int64) string { return fmt.Sprintf("%s timer %d", d, at) }
