package operatortest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
)

// Recorder is the end of a chain. It writes down elements as "value" or "value@timestamp" and marks as "watermark 7",
// "idle", "end"; and as every consumer may, it overwrites the memory of runs that are not shared.
type Recorder struct {
	Got    []string // since the last Want or Take
	Values []string // all elements, without timestamps
	Runs   []int    // the lengths of all runs
	Fail   error    // answer of Push, if not nil

	typ *frame.Type
}

// Record connects an output to a new recorder.
func Record(t testing.TB, out *operator.Output, rt *operator.Runtime) *Recorder {
	t.Helper()
	s := &Recorder{typ: out.Type}
	Must(t, out.Connect(s, rt))
	return s
}

// Type implements operator.Input.
func (s *Recorder) Type() *frame.Type { return s.typ }

// Push implements operator.Input.
func (s *Recorder) Push(r *frame.Run) error {
	s.Runs = append(s.Runs, r.N)
	for i := range r.N {
		text := fmt.Sprint(r.Type.Box(r.At(i)))
		s.Values = append(s.Values, text)
		if ts := r.Time(i); ts != frame.NoTime {
			text += fmt.Sprintf("@%d", ts)
		}
		s.Got = append(s.Got, text)
	}
	if !r.Shared {
		for i := range r.N {
			reflect.NewAt(r.Type.Handle.Type, r.At(i)).Elem().SetZero()
		}
		clear(r.Times)
	}
	return s.Fail
}

// Mark implements operator.Input.
func (s *Recorder) Mark(m frame.Mark) error {
	text := m.Kind.String()
	if m.Kind != frame.Idle && m.Kind != frame.Active && m.Kind != frame.End {
		text += fmt.Sprintf(" %d", m.Value)
	}
	s.Got = append(s.Got, text)
	return nil
}

// Take gives what came since the last call.
func (s *Recorder) Take() string {
	got := strings.Join(s.Got, ", ")
	s.Got = nil
	return got
}

// Want compares what came since the last call.
func (s *Recorder) Want(t testing.TB, texts ...string) {
	t.Helper()
	if !slices.Equal(s.Got, texts) {
		t.Fatalf("got %q, want %q", s.Got, texts)
	}
	s.Got = nil
}

// Null drops what comes, without an allocation.
type Null struct{ Of *frame.Type }

// Type implements operator.Input.
func (n Null) Type() *frame.Type { return n.Of }

// Push implements operator.Input.
func (Null) Push(*frame.Run) error { return nil }

// Mark implements operator.Input.
func (Null) Mark(frame.Mark) error { return nil }
