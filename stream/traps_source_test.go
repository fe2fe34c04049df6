package stream_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/connector/csv"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/stream"
)

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// readSorted gives the elements of a source at a parallelism, sorted by their printed form.
func readSorted[T any](t *testing.T, src *file.Source[T], parallelism int) []string {
	t.Helper()
	env := stream.NewEnv().SetParallelism(parallelism)
	var got gather[string]
	env.FromSource(src, "files").ForEach(func(x T) { got.add(fmt.Sprintf("%q", any(x))) })
	execute(t, env)
	slices.Sort(got.xs)
	return got.xs
}

// B040: a watched folder gives every file once, whatever its time of change.
func TestB040WatchedFolderTakesOlderAndEqualTimes(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, second int) {
		t.Helper()
		hidden := filepath.Join(dir, "."+name)
		writeText(t, hidden, name+"\n")
		at := time.Date(2024, 3, 1, 12, 0, second, 0, time.UTC)
		if err := errors.Join(os.Chtimes(hidden, at, at), os.Rename(hidden, filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
	}
	put("b", 10)
	env := stream.NewEnv().SetParallelism(2)
	lines := make(chan string, 10)
	env.FromSource(file.Lines(dir).Watch(time.Millisecond), "folder").ForEach(func(s string) { lines <- s })
	job := start(t, env)
	for _, next := range []struct {
		name   string
		second int
	}{{"a", 5}, {"c", 10}, {"d", 11}} {
		before := receive(t, job, lines)
		if len(lines) != 0 {
			t.Errorf("%q came together with %q", before, <-lines)
		}
		put(next.name, next.second)
	}
	if got := receive(t, job, lines); got != "d" {
		t.Errorf("the last file is %q", got)
	}
	job.Cancel()
	if _, err := job.Wait(); !errors.Is(err, stream.ErrCanceled) {
		t.Errorf("a watched folder ended with %v", err)
	}
	if len(lines) != 0 {
		t.Errorf("%q came again", <-lines)
	}
}

// B042: each line belongs to one split, wherever CR and LF fall.
func TestB042CarriageReturnsOnSplitEdges(t *testing.T) {
	const text = "a\r\nbb\r\nccc"
	path := filepath.Join(t.TempDir(), "lines.txt")
	writeText(t, path, text)
	for size := range len(text) {
		for _, parallelism := range []int{1, 4} {
			got := readSorted(t, file.Lines(path).SplitSize(int64(size+1)), parallelism)
			if !slices.Equal(got, []string{`"a"`, `"bb"`, `"ccc"`}) {
				t.Errorf("splits of %d bytes, parallelism %d: %q", size+1, parallelism, got)
			}
		}
	}
}

// B043: false starts of a long delimiter are part of the record, and so is what follows the last delimiter.
func TestB043FalseStartsOfADelimiter(t *testing.T) {
	const text = "x$$$@y$$@$$@z"
	path := filepath.Join(t.TempDir(), "records")
	writeText(t, path, text)
	for size := range len(text) {
		got := readSorted(t, file.New(file.Text{Delimiter: "$$@"}, path).SplitSize(int64(size+1)), 2)
		if !slices.Equal(got, []string{`""`, `"x$"`, `"y"`, `"z"`}) {
			t.Errorf("splits of %d bytes: %q", size+1, got)
		}
	}
}

type note struct {
	ID   int    `csv:"id"`
	Text string `csv:"text"`
}

// B044: line breaks and doubled quotes in a quoted field belong to it, at any split size.
func TestB044LineBreaksInQuotes(t *testing.T) {
	dir := t.TempDir()
	path, open := filepath.Join(dir, "notes.csv"), filepath.Join(dir, "open.csv")
	writeText(t, path, "id,text\n1,\"a\nb\r\nc\"\n2,\"say \"\"hi\"\"\"\n3,plain\n")
	writeText(t, open, "id,text\n1,plain\n2,\"never closed\n3,x\n")
	want := []string{`{'\x01' "a\nb\r\nc"}`, `{'\x02' "say \"hi\""}`, `{'\x03' "plain"}`}
	for _, size := range []int64{8, 13, 1 << 20} {
		for _, parallelism := range []int{1, 4} {
			src := file.New(csv.Format[note](csv.Header()), path).SplitSize(size)
			if got := readSorted(t, src, parallelism); !slices.Equal(got, want) {
				t.Errorf("splits of %d bytes, parallelism %d: %q", size, parallelism, got)
			}
		}
	}
	env := stream.NewEnv().SetParallelism(1)
	env.FromSource(file.New(csv.Format[note](csv.Header()), open), "notes").Discard()
	if err := executeFailing(t, env, `operator "notes"`, "open.csv", "line 3"); !errors.Is(err, csv.ErrQuote) {
		t.Errorf("got %v", err)
	}
}

type item struct {
	A, B string
	N    *int
}

// B046: empty fields are fields, short rows and numbers out of range are errors or counted.
func TestB046EmptyFieldsShortRowsLargeNumbers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "items.csv")
	writeText(t, path, "aaa,bbb,\naaa,bbb,,\n1,2\nx,y,99999999999999999999999\n\"q,q\",z,7\nlast,cell,")
	strict := file.New(csv.Format[item](), path)
	env := stream.NewEnv().SetParallelism(1)
	env.FromSource(strict, "items").Discard()
	if err := executeFailing(t, env, path, "line 3"); !errors.Is(err, csv.ErrFieldCount) {
		t.Errorf("short row: %v", err)
	}
	large := filepath.Join(dir, "large.csv")
	writeText(t, large, "a,b,1\nx,y,99999999999999999999999\n")
	env.FromSource(file.New(csv.Format[item](), large), "items").Discard()
	if err := executeFailing(t, env, large, "line 2", "column 3"); !errors.Is(err, csv.ErrRange) {
		t.Errorf("large number: %v", err)
	}

	var good gather[string]
	env.FromSource(strict.SkipBad(), "items").ForEach(func(x item) {
		n := "none"
		if x.N != nil {
			n = fmt.Sprint(*x.N)
		}
		good.add(strings.Join([]string{x.A, x.B, n}, " "))
	})
	job := start(t, env)
	finish(t, job)
	if want := []string{"aaa bbb none", "aaa bbb none", "q,q z 7", "last cell none"}; !slices.Equal(good.xs, want) {
		t.Errorf("rows %q, want %q", good.xs, want)
	}
	if got := metricsOf(t, job, "items").User[file.BadRecords]; fmt.Sprint(got) != "[2]" {
		t.Errorf("skipped rows are counted as %v", got)
	}

	quoted := filepath.Join(dir, "quoted.csv")
	writeText(t, quoted, "1,\"skipped, \"\"and\nlong\"\"\",x\n")
	type ends struct {
		First int
		Last  string
	}
	got := readSorted(t, file.New(csv.Format[ends](csv.Positions(0, 2)), quoted), 1)
	flotttest.Equal(t, got, []string{`{'\x01' "x"}`})
}

// metricsOf are the figures of the operator called name.
func metricsOf(t *testing.T, job *stream.Job, name string) stream.OperatorMetrics {
	t.Helper()
	for _, m := range job.Metrics() {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("no operator %q in the metrics", name)
	return stream.OperatorMetrics{}
}
