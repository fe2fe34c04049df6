package file_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
)

func numbers() file.Delimited[int] {
	return file.Delimited[int]{Decode: func(rec []byte) (int, error) { return strconv.Atoi(string(rec)) }}
}

func TestABadRecordNamesItsLineInEverySplit(t *testing.T) {
	m := disk(t, map[string]string{"f": "1\n2\nthree\n4\n5\nsix\n7\n"})
	for _, size := range []int64{1, 3, 5, 100} {
		_, err := filetest.Collect(file.New(numbers(), "f").On(m).SplitSize(size), 1, 2)
		at, ok := errors.AsType[*file.Error](err)
		if !ok || at.Path != "f" || at.Line != 3 || at.Offset != 4 || !errors.Is(err, strconv.ErrSyntax) {
			t.Errorf("split size %d: %v", size, err)
		}
	}
}

func TestBadRecordsAreSkippedCountedAndReported(t *testing.T) {
	m := disk(t, map[string]string{"f": "1\n2\nthree\n4\n5\nsix\n7\n"})
	for _, size := range []int64{1, 3, 5, 100} {
		var bad []string
		src := file.New(numbers(), "f").On(m).SplitSize(size).OnBad(func(b file.Bad) {
			bad = append(bad, fmt.Sprint(b.Path, " ", b.Line, " ", b.Offset, " ", b.Record))
		})
		d, err := filetest.Start(src, 1, 2, nil)
		if err == nil {
			err = d.Run()
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(d.Out[0]); got != "[1 2 4 5 7]" {
			t.Errorf("split size %d: %s", size, got)
		}
		if !slices.Equal(bad, []string{"f 3 4 three", "f 6 14 six"}) || d.Counts[file.BadRecords] != 2 {
			t.Errorf("split size %d: bad %q, counted %d", size, bad, d.Counts[file.BadRecords])
		}
	}
}

func TestTheEngineCanTakeBadRecordsAsASideOutput(t *testing.T) {
	var bad []int64
	src := file.New(numbers(), "f").On(disk(t, map[string]string{"f": "1\ntwo\n3\n"}))
	d, err := filetest.Start(src, 1, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.Reader(0).(interface{ ReportBad(f func(file.Bad)) }).ReportBad(func(b file.Bad) { bad = append(bad, b.Line) })
	if err := d.Run(); err != nil || fmt.Sprint(d.Out[0], bad) != "[1 3] [2]" {
		t.Errorf("got %v, bad %v, %v", d.Out[0], bad, err)
	}
	if _, err := filetest.Collect(src, 1, 2); err == nil {
		t.Error("the source itself became lenient")
	}
}

func TestTooLongLinesAreErrors(t *testing.T) {
	m := disk(t, map[string]string{"f": "short\n" + strings.Repeat("x", 300<<10) + "\n"})
	_, err := filetest.Collect(file.New(file.Text{MaxLine: 1000}, "f").On(m), 1, 8)
	at, ok := errors.AsType[*file.Error](err)
	if !ok || at.Offset != 6 || !errors.Is(err, file.ErrTooLong) {
		t.Errorf("got %v", err)
	}
}
