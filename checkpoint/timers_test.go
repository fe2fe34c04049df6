package checkpoint

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/process"
)

// keyTimer is a timer of a key.
type keyTimer struct {
	key string
	process.Timer
}

func event(key string, ms int64) keyTimer {
	return keyTimer{key, process.Timer{Domain: process.EventTime, Millis: ms}}
}

func processing(key string, ms int64) keyTimer {
	return keyTimer{key, process.Timer{Domain: process.ProcessingTime, Millis: ms}}
}

func eachTimer(all ...keyTimer) iter.Seq2[string, process.Timer] {
	return func(yield func(string, process.Timer) bool) {
		for _, t := range all {
			if !yield(t.key, t.Timer) {
				return
			}
		}
	}
}

// timersOf are the timers of an operator in the order of domain, key and time.
func timersOf(t *testing.T, s *Snapshot, operator string) (all []keyTimer) {
	t.Helper()
	for e, err := range s.Timers[string](operator) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, keyTimer{e.Key, e.Value})
	}
	slices.SortFunc(all, func(a, b keyTimer) int {
		return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.key, b.key), cmp.Compare(a.Millis, b.Millis))
	})
	return all
}

func TestDraftedTimersAreReadAgain(t *testing.T) {
	mem := vfs.NewMem()
	d := someDraft(t, 3)
	o := d.Operator("totals")
	err := o.SetTimers(eachTimer(event("a", 5), event("b", -1), event("a", 7), event("a", 5), processing("", 1<<40)))
	if err != nil {
		t.Fatal(err)
	}
	s := written(t, d, mem, "/sp/one")
	want := []keyTimer{event("a", 5), event("a", 7), event("b", -1), processing("", 1<<40)}
	if got := timersOf(t, s, "totals"); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	for range s.Timers[string]("totals") {
		break // early
	}
	// In the place of those that were there; no timers of one kind are none.
	d = s.Draft()
	o = d.Operator("totals")
	if err := o.SetTimers(eachTimer(event("c", 9))); err != nil {
		t.Fatal(err)
	}
	o.MaxParallelism = 16
	again := written(t, d, mem, "/sp/two")
	if got := timersOf(t, again, "totals"); !slices.Equal(got, []keyTimer{event("c", 9)}) {
		t.Errorf("got %v", got)
	}
	restored, _, err := again.Restore(mem, "totals", 0, 1, 16)
	if err != nil {
		t.Fatal(err)
	}
	table, ok := restored.Table("timers/event")
	if !ok {
		t.Fatal("there is no table of timers")
	}
	for row, err := range table.Rows {
		if err != nil || row.Group != keygroup.Of(uint32(row.Hash), 16) {
			t.Errorf("%+v, %v", row, err)
		}
	}
}

func TestTimersThatDoNotFitAreRefused(t *testing.T) {
	mem := vfs.NewMem()
	d := someDraft(t, 3)
	if err := d.Operator("totals").SetTimers(eachTimer(event("a", 5))); err != nil {
		t.Fatal(err)
	}
	s := written(t, d, mem, "/sp/one")
	for what, operator := range map[string]string{"the snapshot has the key type string, the program int64": "totals", "has no operator \"nobody\", but": "nobody"} {
		n := 0
		for _, err := range s.Timers[int64](operator) {
			if n++; err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("got %v, want %q", err, what)
			}
		}
		if n != 1 {
			t.Errorf("%d entries", n)
		}
	}
	if got := timersOf(t, written(t, someDraft(t, 1), mem, "/sp/none"), "totals"); got != nil {
		t.Errorf("timers of an operator without: %v", got)
	}
	err := d.Operator("totals").SetTimers(eachTimer(keyTimer{"a", process.Timer{Domain: 7}}))
	if err == nil || !strings.Contains(err.Error(), "no kind of time") {
		t.Errorf("got %v", err)
	}
}

func TestMissingStateNamesWhatIsThere(t *testing.T) {
	s := written(t, someDraft(t, 3), vfs.NewMem(), "/sp/one")
	for _, err := range s.Values[string, totalV1]("totals", "sum") {
		if want := `there is no such state, but "prices", "seen", "total"`; err == nil || !strings.Contains(sortedNames(err), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := s.Items[string]("totals", "rule"); err == nil || !strings.Contains(err.Error(), `there is no such list, but "rules"`) {
		t.Errorf("got %v", err)
	}
	d := s.Draft()
	d.Operator("totals").Drop("seen")
	err := d.Operator("totals").Update("sum", func(_ string, x totalV1) (totalV1, bool) { return x, true })
	if err == nil || !strings.Contains(err.Error(), `of operator "totals"`) || strings.Contains(err.Error(), "seen") || !strings.Contains(err.Error(), `"total"`) {
		t.Errorf("got %v", err)
	}
	err = NewDraft("job").Operator("o").Update("sum", func(_ string, x totalV1) (totalV1, bool) { return x, true })
	if err == nil || !strings.Contains(err.Error(), "there is no such state, nor any other") {
		t.Errorf("got %v", err)
	}
}

// sortedNames is the error with the names behind "but " in order.
func sortedNames(err error) string {
	text, names, _ := strings.Cut(err.Error(), "but ")
	list := strings.Split(names, ", ")
	slices.Sort(list)
	return fmt.Sprint(text, "but ", strings.Join(list, ", "))
}
