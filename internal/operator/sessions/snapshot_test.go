package sessions

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// again is a harness that begins with the state of another one.
func (j job) again(t testing.TB, h *harness) *harness {
	t.Helper()
	o := j.operator(t)
	next := &harness{t: t, op: o, driver: o, rt: kit.Runtime()}
	next.rt.Restored = kit.Take(t, h.op).Restored()
	next.connect(j)
	return next
}

func TestSessionsOfEveryKernelAreRestored(t *testing.T) {
	for _, kernel := range []string{"polynomial", "wide", "sum", "concat"} {
		for _, key := range []string{"", "text", "wide"} {
			j := job{gap: static(10), domain: process.EventTime, agg: kernel, key: key}
			whole, h := j.open(t), j.open(t)
			for i, ts := range []int64{1, 50, 5, 30, 100, 47} {
				for _, x := range []*harness{whole, h} {
					x.push(ts, event{Key: int64(i % 2), Text: fmt.Sprint(ts)})
				}
				h = j.again(t, h)
			}
			for _, x := range []*harness{whole, h} {
				x.watermark(1000)
			}
			if got, want := h.Take(), whole.Take(); got != want || !strings.Contains(want, "watermark 1000") {
				t.Errorf("%s by %q: %s, want %s", kernel, key, got, want)
			}
		}
	}
}

// TestSessionsThatHaveFiredDoNotFireAgain, but for late elements, and go when their time is over.
func TestSessionsThatHaveFiredDoNotFireAgain(t *testing.T) {
	j := job{gap: static(10), domain: process.EventTime, lateness: 50}
	h := j.open(t)
	h.at(1, 5)
	h.watermark(20)
	h.Want(t, "1 [1,15) [1 5]@14", "watermark 20")
	h = j.again(t, h)
	h.watermark(20)
	h.Want(t, "watermark 20")
	h.at(7)
	h.Want(t, "1 [1,17) [1 5 7]@16")
	h = j.again(t, h)
	h.watermark(30)
	h.watermark(67)
	h.at(7)
	h.Want(t, "watermark 30", "watermark 67")

	less := job{gap: static(10), domain: process.EventTime}
	h = j.open(t)
	h.at(1)
	h.watermark(20)
	h = less.again(t, h)
	h.watermark(30)
	h.Want(t, "watermark 30")
}

func TestSessionsOfProcessingTimeRingAfterARestore(t *testing.T) {
	j := job{gap: static(10), domain: process.ProcessingTime}
	h := j.open(t)
	h.clock(100)
	h.at(0)
	h = j.again(t, h)
	h.clock(200)
	h.Want(t, "1 [100,110) [0]@109")
}

// tables are a snapshot's.
type tables []statebackend.FrozenTable

func (r tables) Table(name string) (statebackend.FrozenTable, bool) {
	for _, t := range r {
		if t.Name == name {
			return t, true
		}
	}
	return statebackend.FrozenTable{}, false
}

func (r tables) Tables() []string { return nil }

func TestSessionsThatCannotBeReadAreRefused(t *testing.T) {
	j := job{gap: static(10), domain: process.EventTime, agg: "sum"}
	info, err := j.operator(t).info()
	kit.Must(t, err)
	good := statebackend.Row{Key: make([]byte, 8), Namespace: append(make([]byte, 8), 9, 0, 0, 0, 0, 0, 0, 0), Value: make([]byte, 9)}
	with := func(change func(i *statebackend.TableInfo, r *statebackend.Row)) tables {
		i, r := info, good
		change(&i, &r)
		return tables{{TableInfo: i, Rows: func(yield func(*statebackend.Row, error) bool) {
			for range 2 {
				if !yield(&r, nil) {
					return
				}
			}
		}}}
	}
	for want, store := range map[string]tables{
		"key type":               with(func(i *statebackend.TableInfo, _ *statebackend.Row) { i.Key = &serde.Schema{Kind: serde.String} }),
		"what its sessions hold": with(func(i *statebackend.TableInfo, _ *statebackend.Row) { i.Value = nil }),
		"keep the function": with(func(i *statebackend.TableInfo, _ *statebackend.Row) {
			i.Value = &serde.Schema{Kind: serde.Struct, Fields: []serde.Field{i.Value.Fields[0], {Name: "Accumulator", Schema: &serde.Schema{Kind: serde.String}}}}
		}),
		"malformed":          with(func(_ *statebackend.TableInfo, r *statebackend.Row) { r.Namespace = r.Namespace[:15] }),
		"is malformed":       with(func(_ *statebackend.TableInfo, r *statebackend.Row) { r.Key = r.Key[:7] }),
		"row is malformed":   with(func(_ *statebackend.TableInfo, r *statebackend.Row) { r.Value = append([]byte{2}, r.Value[1:]...) }),
		"a row is malformed": with(func(*statebackend.TableInfo, *statebackend.Row) {}), // twice
		"holds list":         {{TableInfo: statebackend.TableInfo{Name: "window contents", Kind: "list"}}},
		`the table "slices"`: {{TableInfo: statebackend.TableInfo{Name: "slices"}}},
	} {
		op, rt := j.operator(t), kit.Runtime()
		rt.Restored = &operator.Restored{Store: store}
		kit.Record(t, op.Output(""), rt)
		if err := op.Open(rt); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "main.go:12") {
			t.Errorf("%s: error %v", want, err)
		}
		kit.Must(t, op.Close())
	}
}
