package stream_test

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

// noteTeller tells the note of a key when a timer of the key fires.
type noteTeller struct{ note *state.Value[string] }

func newNoteTeller(rt *process.Runtime) *noteTeller {
	return &noteTeller{state.NewValue[string](rt, "note")}
}

func (*noteTeller) ProcessElement(*process.KeyedContext[string], string, *process.Collector[string]) error {
	return nil
}

func (r *noteTeller) OnTimer(ctx *process.KeyedContext[string], t process.Timer, out *process.Collector[string]) error {
	out.Collect(fmt.Sprintf("%s at %d: %s", ctx.Key(), t.Millis, r.note.Get()))
	return nil
}

// A job begins with timers and state that were made for it.
func TestJobBeginsWithDraftedTimers(t *testing.T) {
	at := filepath.Join(t.TempDir(), "first")
	draft := checkpoint.NewDraft("reminders")
	o := draft.Operator("remind")
	if err := o.SetValues("note", maps.All(map[string]string{"ada": "call", "bob": "write"})); err != nil {
		t.Fatal(err)
	}
	err := o.SetTimers(func(yield func(string, process.Timer) bool) {
		for i := range int64(3) {
			if !yield("ada", process.Timer{Millis: 5 + i}) || !yield("bob", process.Timer{Millis: 7}) {
				return
			}
		}
		yield("ada", process.Timer{Domain: process.ProcessingTime, Millis: 1})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := draft.Write(t.Context(), nil, at); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	env := stream.NewEnv(stream.WithSavepoint(at)).SetParallelism(3)
	env.FromElements("x").KeyBy(func(x string) string { return x }).Process(newNoteTeller).UID("remind").PrintTo(&out).Parallelism(1)
	if _, err := env.Execute(t.Context(), "reminders"); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	lines = slices.DeleteFunc(lines, func(s string) bool { return s == "ada at 1: call" }) // is due, and may come before the end or not
	slices.Sort(lines)
	if want := []string{"ada at 5: call", "ada at 6: call", "ada at 7: call", "bob at 7: write"}; !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
}
