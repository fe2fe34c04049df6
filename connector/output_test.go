package connector

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
)

// noting is an output that writes down what its driver is told.
func noting(t *testing.T) (out *Output[int64], col *frame.Column, log *[]string) {
	t.Helper()
	typ, err := frame.TypeOf[int64]()
	if err != nil {
		t.Fatal(err)
	}
	col, log = frame.NewColumn(typ, 10), &[]string{}
	out = NewOutput[int64](col, func(m frame.Mark) error {
		*log = append(*log, fmt.Sprint(m.Kind, " ", m.Value, " after ", col.Len()))
		return nil
	})
	return out, col, log
}

func TestOutputTellsItsDriverTheSplits(t *testing.T) {
	out, col, log := noting(t)
	out.OnSplit(func(name string, over bool) error {
		*log = append(*log, fmt.Sprint(name, " over ", over, " after ", col.Len()))
		return nil
	})
	out.Split("") // a name like any other
	out.Split("")
	out.Emit(1)
	out.Split("a")
	out.Split("a")
	out.Watermark(5)
	out.EndSplit("b") // another one
	out.Split("a")
	out.EndSplit("a")
	out.Split("a")
	out.Idle()
	want := []string{
		" over false after 0", "a over false after 1", "watermark 5 after 1", "b over true after 1", "a over true after 1",
		"a over false after 1", "idle 0 after 1",
	}
	if !slices.Equal(*log, want) {
		t.Errorf("got  %q\nwant %q", *log, want)
	}
}

func TestOutputWithoutSplitsIgnoresThem(t *testing.T) {
	out, _, log := noting(t)
	out.Split("a")
	out.EndSplit("a")
	if len(*log) != 0 || out.Err() != nil {
		t.Errorf("got %q, %v", *log, out.Err())
	}
}

func TestOutputKeepsTheFirstError(t *testing.T) {
	out, _, log := noting(t)
	own := errors.New("own")
	out.OnSplit(func(string, bool) error { return own })
	out.Split("a")
	out.OnSplit(func(string, bool) error { return errors.New("another") })
	out.Split("b")
	out.Watermark(5)
	if !errors.Is(out.Err(), own) || len(*log) != 0 {
		t.Errorf("error %v, and then %q", out.Err(), *log)
	}
}
