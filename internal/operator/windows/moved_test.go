package windows

import (
	"encoding/binary"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/window"
)

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

func (r tables) Tables() (all []string) {
	for _, t := range r {
		all = append(all, t.Name)
	}
	return all
}

// files are a snapshot with files of a backend.
type files struct{ tables }

func (files) Files() []statebackend.RestoredFileSet {
	return []statebackend.RestoredFileSet{{FileSet: statebackend.FileSet{Format: "pebble/1"}}}
}

func rowsAre(rows ...statebackend.Row) iter.Seq2[*statebackend.Row, error] {
	return func(yield func(*statebackend.Row, error) bool) {
		for i := range rows {
			if !yield(&rows[i], nil) {
				return
			}
		}
	}
}

func int64s(all ...int64) (b []byte) {
	for _, x := range all {
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	}
	return b
}

func movedOf(tb testing.TB, store statebackend.Restored) *Moved {
	tb.Helper()
	return &Moved{
		Restored: &operator.Restored{Store: store}, K: kernelsOf[int64](tb), Key: kit.KeyOf(tb, func(x int64) int64 { return x }), Lateness: 10,
	}
}

// infos are the tables that windows may be in, by name.
func infos(tb testing.TB) map[string]statebackend.TableInfo {
	tb.Helper()
	m := movedOf(tb, nil)
	key, acc := m.Key.Schema(), m.K.Acc.Schema()
	plain, tangled, whole, err := SliceTables(key, acc)
	kit.Must(tb, err)
	sessions, err := SessionTable(key, acc)
	kit.Must(tb, err)
	all := map[string]statebackend.TableInfo{}
	for _, info := range []statebackend.TableInfo{plain, tangled, whole, sessions} {
		all[info.Name] = info
	}
	at, err := serde.KeyOf[int64]()
	kit.Must(tb, err)
	cell, err := serde.Of[mergingCell]()
	kit.Must(tb, err)
	pair, err := serde.Of[inFlight]()
	kit.Must(tb, err)
	for _, info := range []statebackend.TableInfo{
		{Name: ContentsTable, Kind: "value", Namespace: plain.Namespace, Value: acc},
		{Name: AccumulatorsTable, Kind: "value", Namespace: plain.Namespace, Value: acc},
		{Name: PendingTable, Kind: "list", Namespace: plain.Namespace, Value: acc},
		{Name: MergingTable, Kind: "value", Value: cell.Schema()},
		{Name: ManyMergingTable, Kind: "list", Value: pair.Schema()},
		{Name: "timers/event", Kind: statebackend.TimerKind, Namespace: plain.Namespace, MapKey: at.Schema()},
	} {
		info.Key = key
		all[info.Name] = info
	}
	return all
}

func sliding() window.SlidingAssigner {
	return window.Sliding(20*time.Millisecond, 10*time.Millisecond)
}

// each visits the windows of a snapshot by the driver that has written them, and says what they are.
func (m *Moved) each(tb testing.TB, merges bool) (all []string, err error) {
	visit := func(k *Kept) error {
		all = append(all, fmt.Sprintf("%d%v%v%d", binary.LittleEndian.Uint64(k.Key), k.Window, k.Fired, *(*int64)(k.Acc)))
		return nil
	}
	switch {
	case Has(m.Restored, SessionsTable):
		err = m.FromSessions(visit)
	case Has(m.Restored, SlicesTable, TangledTable, WholeTable):
		err = m.FromSlices(sliding(), sliding().Grid(), visit)
	default:
		err = m.FromGeneral(merges, kit.TypeOf[int64](tb), visit)
	}
	return all, err
}

func TestWindowsOfOtherDriversAreSeen(t *testing.T) {
	all := infos(t)
	table := func(name string, rows ...statebackend.Row) statebackend.FrozenTable {
		return statebackend.FrozenTable{TableInfo: all[name], Rows: rowsAre(rows...)}
	}
	row := func(group int, namespace, mapKey, value []byte) statebackend.Row {
		return statebackend.Row{Group: group, Key: int64s(7), Namespace: namespace, MapKey: mapKey, Value: value}
	}
	session := func(fired byte, acc int64) []byte { return append([]byte{fired}, int64s(acc)...) }
	for name, c := range map[string]struct {
		store  tables
		merges bool
		want   string
	}{
		"slices": {
			tables{table(SlicesTable, row(1, int64s(0, 10), int64s(5), int64s(100)), row(1, int64s(10, 20), int64s(5), int64s(101)), row(3, int64s(10, 20), int64s(5), int64s(102)))},
			false,
			"7[-10,10)false100 7[0,20)false101 7[10,30)false101 7[0,20)false102 7[10,30)false102",
		},
		"slices after windows": {
			tables{table(SlicesTable, row(1, int64s(0, 10), int64s(15), int64s(100))), table(WholeTable, row(1, int64s(0, 20), int64s(15), int64s(99)))},
			false,
			"7[-10,10)true100 7[0,20)false100",
		},
		"tangled slices": {
			tables{table(TangledTable, row(1, int64s(10, 20), int64s(15, 1), int64s(100)), row(1, int64s(0, 10), int64s(15, 2), int64s(99)))},
			false,
			"7[-10,10)true99 7[0,20)false99 7[10,30)false100",
		},
		"sessions": {
			tables{table(SessionsTable, row(1, int64s(0, 10), nil, session(1, 100)), row(1, int64s(20, 30), nil, session(0, 101)))},
			true,
			"7[0,10)true100 7[20,30)false101",
		},
		"contents": {tables{
			table("timers/event", row(2, int64s(0, 20), int64s(19), nil), row(2, int64s(0, 20), int64s(29), nil), row(2, int64s(-10, 10), int64s(19), nil)),
			table(ContentsTable, row(2, int64s(0, 20), nil, int64s(100)), row(2, int64s(-10, 10), nil, int64s(101))),
		}, false, "7[0,20)false100 7[-10,10)true101"},
		"contents of windows that merge": {tables{
			table(MergingTable, row(2, nil, nil, int64s(1, 0, 40, 0, 20, 0, 0, 0, 0)), row(3, nil, nil, int64s(3, 0, 0, 0, 0, 0, 0, 0, 0))),
			table(ManyMergingTable, row(3, nil, nil, int64s(1, 2, 1, 2)), row(3, nil, nil, int64s(3, 4, 5, 6))),
			table(ContentsTable, row(2, int64s(0, 20), nil, int64s(100)), row(3, int64s(5, 6), nil, int64s(101))),
		}, true, "7[0,40)true100 7[3,4)true101"},
		"elements that wait": {tables{
			table(AccumulatorsTable, row(2, int64s(0, 20), nil, int64s(1))), table(PendingTable, row(2, int64s(0, 20), nil, int64s(2)), row(3, int64s(0, 20), nil, int64s(3))),
			table(ContentsTable, row(2, int64s(0, 20), nil, nil), row(3, int64s(0, 20), nil, nil)),
		}, false, "7[0,20)true2 7[0,20)true3"},
	} {
		got, err := movedOf(t, c.store).each(t, c.merges)
		if text := strings.Join(got, " "); err != nil || text != c.want {
			t.Errorf("%s: got %s, error %v\nwant %s", name, text, err, c.want)
		}
	}
}

func TestWindowsThatWouldLoseStateAreRefused(t *testing.T) {
	all := infos(t)
	contents := statebackend.FrozenTable{TableInfo: all[ContentsTable], Rows: rowsAre()}
	named := func(name string) statebackend.FrozenTable {
		return statebackend.FrozenTable{TableInfo: statebackend.TableInfo{Name: name}, Rows: rowsAre()}
	}
	early := statebackend.FrozenTable{TableInfo: all["timers/event"], Rows: rowsAre(statebackend.Row{Key: int64s(1), Namespace: int64s(0, 20), MapKey: int64s(5)})}
	for want, m := range map[string]*Moved{
		`of a trigger`:                movedOf(t, tables{contents, named("trigger count")}),
		`those of a trigger`:          movedOf(t, tables{contents, named("timers/processing")}),
		`a timer of a trigger for 5`:  movedOf(t, tables{contents, early}),
		`all elements`:                movedOf(t, tables{contents, named("window arrivals")}),
		`"seen", which is not of the`: movedOf(t, tables{contents, named("seen")}),
		`files of a state backend`:    movedOf(t, files{tables{contents}}),
		`windows that merge`:          movedOf(t, tables{contents, {TableInfo: all[MergingTable], Rows: rowsAre()}}),
	} {
		if _, err := m.each(t, false); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "another UID") {
			t.Errorf("%s: got %v", want, err)
		}
	}
	m := movedOf(t, tables{contents})
	m.Restored.Lists = []checkpoint.List{{Name: ForgetsList, Items: [][]byte{{1}}}}
	if _, err := m.each(t, false); err == nil || !strings.Contains(err.Error(), "taken timers back") {
		t.Errorf("got %v", err)
	}
}

// FuzzMoved reads rows of any bytes in any of the tables: what is malformed is an error.
func FuzzMoved(f *testing.F) {
	names := []string{
		SlicesTable, TangledTable, WholeTable, SessionsTable, ContentsTable, AccumulatorsTable, PendingTable, MergingTable, ManyMergingTable, "timers/event",
	}
	for i := range names {
		f.Add(uint16(1<<i), true, int64s(0, 10, 5, 0, 1))
	}
	f.Add(uint16(0b1110010000), true, int64s(0, 20, 19, 0, 20, 0, 20, 0, 0))
	f.Fuzz(func(t *testing.T, which uint16, merges bool, data []byte) {
		all := infos(t)
		var store tables
		for i, name := range names {
			if which>>i&1 == 0 {
				continue
			}
			info := all[name]
			r := statebackend.Row{Group: len(data) % 3, Key: int64s(1), Value: data}
			if info.Namespace != nil {
				r.Namespace = data[:min(16, len(data))]
				r.Value = data[len(r.Namespace):]
			}
			if info.MapKey != nil {
				r.MapKey = data[:min(len(data), 8+8*(i%2))]
			}
			store = append(store, statebackend.FrozenTable{TableInfo: info, Rows: rowsAre(r)})
		}
		_, _ = movedOf(t, store).each(t, merges)
	})
}
