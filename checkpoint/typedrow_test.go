package checkpoint

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// span is a window.
type span struct{ Start, End int64 }

// withWindows adds a state in windows, which expires, to a draft.
func withWindows(t *testing.T, o *DraftOperator) {
	t.Helper()
	if err := o.SetValues("window", func(yield func(string, int64) bool) { _ = yield("a", 7) && yield("b", 8) }); err != nil {
		t.Fatal(err)
	}
	w, err := serde.KeyOf[span]()
	if err != nil {
		t.Fatal(err)
	}
	s := o.states["window"]
	s.info.Namespace, s.info.TTL = w.Schema(), &statebackend.TTL{Millis: 1000}
	for i := range s.all {
		x := span{int64(i) * 10, int64(i)*10 + 10}
		if s.all[i].namespace, err = s.canon(w, unsafe.Pointer(&x)); err != nil {
			t.Fatal(err)
		}
		s.all[i].at = int64(100 + i)
	}
}

func texts[K, N, M, V any](t *testing.T, rows iter.Seq2[Row[K, N, M, V], error]) string {
	t.Helper()
	var all []string
	for r, err := range rows {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(r))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestRowsOfEveryKindAreRead(t *testing.T) {
	d := someDraft(t, 2)
	withWindows(t, d.Operator("totals"))
	s := written(t, d, vfs.NewMem(), "/sp/one")
	for _, c := range []struct{ got, want string }{
		{texts(t, s.Rows[string, span, struct{}, int64]("totals", "window")), "{a {0 10} {} 7 100} {b {10 20} {} 8 101}"},
		{texts(t, s.Rows[string, struct{}, struct{}, totalV2]("totals", "total")), "{key0 {} {} {n 0 0} 0} {key1 {} {} {n 1 0} 0}"},
		{texts(t, s.Rows[string, struct{}, struct{}, int64]("totals", "seen")), "{a {} {} 1 0} {a {} {} 2 0} {a {} {} 3 0} {b {} {} 9 0}"},
		{texts(t, s.Rows[int32, struct{}, string, float64]("totals", "prices")), "{7 {}  2 0} {7 {} eggs 1.5 0} {8 {} milk 1 0}"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
	for range s.Rows[string, struct{}, struct{}, int64]("totals", "seen") {
		break // early
	}
}

func TestRowsOfOtherTypesAreRefused(t *testing.T) {
	d := someDraft(t, 2)
	withWindows(t, d.Operator("totals"))
	s := written(t, d, vfs.NewMem(), "/sp/one")
	refused := func(want string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	refused("the snapshot has the namespace type struct{Start int64;End int64}, the program string", firstError(s.Rows[string, string, struct{}, int64]("totals", "window")))
	refused("the snapshot has the namespace type struct{Start int64;End int64}, the program struct{}", firstError(s.Rows[string, struct{}, struct{}, int64]("totals", "window")))
	refused("it has no map key: ask for struct{}, not string", firstError(s.Rows[string, span, string, int64]("totals", "window")))
	refused("the snapshot has int64, the program string", firstError(s.Rows[string, span, struct{}, string]("totals", "window")))
	refused("chan", firstError(s.Rows[string, span, struct{}, chan int]("totals", "window")))
	refused(`there is no such state, but "`, firstError(s.Rows[string, span, struct{}, int64]("totals", "windows")))
	refused("has no operator", firstError(s.Rows[string, span, struct{}, int64]("nobody", "window")))
}

func firstError[R any](rows iter.Seq2[R, error]) error {
	for _, err := range rows {
		return err
	}
	return nil
}
