package operatortest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
)

// Snapshot takes a snapshot of an operator, which must have state, for its own rows to be read. Whoever takes it releases it.
func Snapshot(t testing.TB, op operator.Operator) *operator.Snapshot {
	t.Helper()
	s := &operator.Snapshot{Groups: 16}
	Must(t, op.(operator.Snapshotter).Snapshot(s))
	return s
}

// Opening is a snapshot that is open while its operator goes on, with the rows that it must have. Begin and End belong to the
// goroutine that drives the operator.
type Opening struct {
	snapshot *operator.Snapshot
	want     []string
	sorted   bool
	reader   host.Spawner
	begun    bool
	got      []string // set by the reader
	err      error
}

// TakeOpen takes a snapshot of an operator that stays open. Another one of the same moment is read at once, to compare with;
// sorted says that rows have no order.
func TakeOpen(t testing.TB, op operator.Operator, sorted bool) *Opening {
	t.Helper()
	now := Snapshot(t, op)
	o := &Opening{snapshot: Snapshot(t, op), sorted: sorted}
	var err error
	o.want, err = o.texts(now)
	Must(t, err)
	now.Release()
	return o
}

// Rows is the number of rows that the snapshot must have.
func (o *Opening) Rows() int { return len(o.want) }

// texts are the rows of a snapshot.
func (o *Opening) texts(s *operator.Snapshot) (all []string, err error) {
	for _, f := range s.Stores {
		for _, t := range f.Tables() {
			for row, err := range t.Rows {
				if err != nil {
					return nil, err
				}
				all = append(all, fmt.Sprintf("%s %d %x %x %x %x", t.Name, row.Group, row.Key, row.Namespace, row.MapKey, row.Value))
			}
		}
	}
	if o.sorted {
		slices.Sort(all)
	}
	return all, nil
}

// Begin begins to read on a goroutine of its own; false if it has begun already.
func (o *Opening) Begin() bool {
	if o.begun {
		return false
	}
	o.begun = true
	o.reader.Go(func() {
		o.got, o.err = o.texts(o.snapshot)
		o.snapshot.Release()
	})
	return true
}

// End compares what is read, now or since Begin, or gives the snapshot up if nothing was read yet and giveUp says so.
func (o *Opening) End(t testing.TB, giveUp bool) {
	t.Helper()
	if giveUp && !o.begun {
		o.snapshot.Release()
		return
	}
	o.Begin()
	o.reader.Wait()
	Must(t, o.err)
	if !slices.Equal(o.got, o.want) {
		t.Fatalf("%d rows, want %d\n%.3000s\nwant\n%.3000s", len(o.got), len(o.want), strings.Join(o.got, "\n"), strings.Join(o.want, "\n"))
	}
}
