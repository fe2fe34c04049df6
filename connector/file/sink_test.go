package file_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/internal/vfs"
)

type wctx = filetest.WriterContext

// content is what a file holds, or the name of the error.
func content(m vfs.FS, name string) string {
	data, err := vfs.ReadFile(m, name)
	if errors.Is(err, fs.ErrNotExist) {
		return "(none)"
	}
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func names(t *testing.T, m vfs.FS, dir string) string {
	t.Helper()
	entries, err := m.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

func TestTextSinkWritesAFileOrAFolderOfNumberedFiles(t *testing.T) {
	m := vfs.NewMem()
	if err := filetest.Write(file.TextSink[string]("deep/down/out").On(m), &wctx{}, "a", "b"); err != nil {
		t.Fatal(err)
	}
	if got := content(m, "deep/down/out"); got != "a\nb\n" {
		t.Errorf("one subtask: %q", got)
	}
	for i := range 3 {
		err := filetest.Write(file.TextSink[int]("many").On(m), &wctx{Index: i, Number: 3}, i*10, i*10+1)
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"0\n1\n", "10\n11\n", "20\n21\n"} {
		if got := content(m, fmt.Sprint("many/", i+1)); got != want {
			t.Errorf("file %d: %q", i+1, got)
		}
	}
}

func TestTextSinkPrintsElementsLikeFmt(t *testing.T) {
	m := vfs.NewMem()
	type point struct{ X, Y int }
	check := func(want string, err error) {
		t.Helper()
		if got := content(m, "f"); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	check("true\n", filetest.Write(file.TextSink[bool]("f").On(m), &wctx{}, true))
	check("-5\n", filetest.Write(file.TextSink[int64]("f").On(m).Overwrite(), &wctx{}, -5))
	check("{1 2}\n", filetest.Write(file.TextSink[point]("f").On(m).Overwrite(), &wctx{}, point{1, 2}))
	check("0s\n", filetest.Write(file.TextSink[fmt.Stringer]("f").On(m).Overwrite(), &wctx{}, fmt.Stringer(zeroDuration{})))
	upper := file.TextEncodingFunc("||", func(dst []byte, s string) []byte { return append(dst, strings.ToUpper(s)...) })
	check("A||B||", filetest.Write(file.NewSink("f", upper).On(m).Overwrite(), &wctx{}, "a", "b"))
}

type zeroDuration struct{}

func (zeroDuration) String() string { return "0s" }

func TestAnExistingTargetIsNotOverwritten(t *testing.T) {
	m := disk(t, map[string]string{"file": "old", "dir/1": "old 1", "dir/4": "old 4"})
	sink := func(path string) *file.Sink[string] { return file.TextSink[string](path).On(m) }
	for _, err := range []error{
		filetest.Write(sink("file"), &wctx{}, "new"),
		filetest.Write(sink("file"), &wctx{Number: 2}, "new"),
		filetest.Write(sink("dir"), &wctx{}, "new"),
		filetest.Write(sink("dir"), &wctx{Number: 2}, "new"),
		sink("file").Prepare(1), sink("file").Prepare(2), sink("dir").Prepare(1), sink("dir").Prepare(8),
	} {
		if !errors.Is(err, file.ErrExists) || !strings.Contains(err.Error(), "file") && !strings.Contains(err.Error(), "dir") {
			t.Errorf("got %v", err)
		}
	}
	if content(m, "file") != "old" || content(m, "dir/1") != "old 1" || names(t, m, "dir") != "1 4" {
		t.Error("the target was changed")
	}
	if err := sink("nothing").Prepare(2); err != nil {
		t.Error(err)
	}
}

func TestOverwriteReplacesFilesAndFolders(t *testing.T) {
	m := disk(t, map[string]string{"file": "old", "dir/1": "old 1", "dir/4": "old 4", "dir/notes": "kept", "solo/2": "old"})
	sink := func(path string) *file.Sink[string] { return file.TextSink[string](path).On(m).Overwrite() }
	for i := range 2 {
		for _, path := range []string{"file", "dir"} {
			if err := filetest.Write(sink(path), &wctx{Index: i, Number: 2}, "new"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if content(m, "file/1")+content(m, "file/2") != "new\nnew\n" {
		t.Error("the file did not become a folder")
	}
	if got := names(t, m, "dir"); got != "1 2 notes" || content(m, "dir/1") != "new\n" {
		t.Errorf("the folder holds %s", got)
	}
	if err := filetest.Write(sink("solo"), &wctx{}, "new"); err != nil || content(m, "solo") != "new\n" {
		t.Errorf("a folder of numbered files did not become a file: %v", err)
	}
	if err := filetest.Write(sink("dir"), &wctx{}, "new"); err == nil || !strings.Contains(err.Error(), "notes") {
		t.Errorf("a folder with other files was removed: %v", err)
	}
	if content(m, "dir/1") != "new\n" {
		t.Error("files were removed before the folder was looked at")
	}
}

func TestAFullDiskIsAnErrorAndLeavesWholeRecords(t *testing.T) {
	rows := make([]string, 20_000)
	for i := range rows {
		rows[i] = fmt.Sprint("row ", i)
	}
	whole := strings.Join(rows, "\n") + "\n"
	for _, space := range []int{0, 1, 70_000, len(whole) / 2, len(whole) - 1} {
		mem := vfs.NewMem()
		full := vfs.NewFaulty(mem)
		full.Space(int64(space))
		err := filetest.Write(file.TextSink[string]("out").On(full), &wctx{}, rows...)
		if !errors.Is(err, vfs.ErrNoSpace) || !strings.Contains(err.Error(), "write out") {
			t.Errorf("space %d: %v", space, err)
		}
		got := content(mem, "out")
		if !strings.HasPrefix(whole, got) || got != "" && !strings.HasSuffix(got, "\n") {
			t.Errorf("space %d: %d bytes left, the last of them %q", space, len(got), got[max(0, len(got)-10):])
		}
	}
}

func TestAWriteErrorIsNotForgotten(t *testing.T) {
	for _, op := range []vfs.Op{vfs.OpWrite, vfs.OpSync, vfs.OpClose, vfs.OpSyncDir} {
		bad := vfs.NewFaulty(vfs.NewMem())
		w, err := file.TextSink[string]("out").On(bad).Writer(&wctx{})
		if err != nil {
			t.Fatal(err)
		}
		bad.Fail(op, 1, syscall.EIO)
		_ = w.Write("x", connector.ElementContext{})
		for range 2 {
			if err := w.Flush(true); !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "out") {
				t.Errorf("%s: flush: %v", op, err)
			}
		}
		if op == vfs.OpWrite {
			if err := w.Write("y", connector.ElementContext{}); !errors.Is(err, syscall.EIO) {
				t.Errorf("%s: write after the error: %v", op, err)
			}
		}
		if err := w.Close(); err != nil {
			t.Errorf("%s: close: %v", op, err)
		}
	}
}

func TestAnElementThatCantBeEncodedNamesTheFile(t *testing.T) {
	e := file.Encoding[int]{Open: func() func([]byte, int) ([]byte, error) {
		return func(dst []byte, _ int) ([]byte, error) { return append(dst, "half"...), syscall.EDOM }
	}}
	m := vfs.NewMem()
	err := filetest.Write(file.NewSink("out", e).On(m), &wctx{}, 1)
	if !errors.Is(err, syscall.EDOM) || !strings.Contains(err.Error(), "out") || content(m, "out") != "" {
		t.Errorf("got %v, file %q", err, content(m, "out"))
	}
	if err := file.NewSink("out", file.Encoding[int]{Err: syscall.EDOM}).Prepare(1); !errors.Is(err, syscall.EDOM) {
		t.Errorf("got %v", err)
	}
	if err := file.TextSink[int]("").Check(); err == nil {
		t.Error("an empty path is no error")
	}
}

func TestARestartedWriterGoesOnBehindTheLastWholeRecord(t *testing.T) {
	for left, want := range map[string]string{
		"":                                   "head\nnew\n",
		"a\nb\n":                             "a\nb\nnew\n",
		"a\nb\nhal":                          "a\nb\nnew\n",
		"hal":                                "head\nnew\n",
		strings.Repeat("x", 70000):           "head\nnew\n",
		"a\n" + strings.Repeat("x", 200_000): "a\nnew\n",
		"(none)":                             "head\nnew\n",
	} {
		m := vfs.NewMem()
		if left != "(none)" {
			put(t, m, "out", left)
		}
		e := file.TextEncoding[string]("\n")
		e.Begin = "head\n"
		if err := filetest.Write(file.NewSink("out", e).On(m), &wctx{AttemptNow: 1}, "new"); err != nil {
			t.Fatal(err)
		}
		if got := content(m, "out"); got != want {
			t.Errorf("after %d bytes: %q, want %q", len(left), got[max(0, len(got)-20):], want)
		}
	}
}

// A job that goes on from a snapshot, in whatever process, goes on where it has written, and removes nothing of it.
func TestASinkGoesOnInTheFilesOfItsJob(t *testing.T) {
	for _, overwrite := range []bool{false, true} {
		m := vfs.NewMem()
		one, many := file.TextSink[int]("one").On(m), file.TextSink[int]("many").On(m)
		if overwrite {
			one, many = one.Overwrite(), many.Overwrite()
		}
		write := func(s *file.Sink[int], of int, restored bool) error {
			var errs []error
			for i := range of {
				errs = append(errs, filetest.Write(s, &wctx{Index: i, Number: of, RestoredJob: restored}, 10*of+i))
			}
			return errors.Join(errs...)
		}
		for of, s := range map[int]*file.Sink[int]{1: one, 3: many} {
			if err := errors.Join(write(s, of, false), write(s, of, true)); err != nil {
				t.Error(err)
			}
		}
		if err := write(many, 2, true); err != nil { // at another parallelism
			t.Error(err)
		}
		if got := content(m, "one"); got != "10\n10\n" {
			t.Errorf("the file holds %q", got)
		}
		if got := content(m, "many/1") + content(m, "many/2") + content(m, "many/3"); got != "30\n30\n20\n31\n31\n21\n32\n32\n" {
			t.Errorf("the folder's files hold %q", got)
		}
		if err := write(one, 2, true); err == nil || !strings.Contains(err.Error(), "go on with one: it is a file, as the job wrote it, and at parallelism 2 it would be a folder") {
			t.Errorf("a file in the place of a folder: %v", err)
		}
		if err := write(many, 1, true); err == nil || !strings.Contains(err.Error(), "keep the sink's parallelism") {
			t.Errorf("a folder in the place of a file: %v", err)
		}
	}
}

func TestWhatWasFlushedSurvivesACrash(t *testing.T) {
	m := vfs.NewMem()
	sink := file.TextSink[string]("new/folder/out").On(m)
	w, err := sink.Writer(&wctx{})
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Write("a", connector.ElementContext{})
	if err := w.Flush(false); err != nil {
		t.Fatal(err)
	}
	m.Crash()
	if got := content(m, "new/folder/out"); got != "a\n" {
		t.Errorf("after a crash behind the checkpoint: %q", got)
	}
	if err := filetest.Write(sink, &wctx{AttemptNow: 1}, "b"); err != nil {
		t.Fatal(err)
	}
	m.Crash()
	if got := content(m, "new/folder/out"); got != "a\nb\n" {
		t.Errorf("after a crash behind the end: %q", got)
	}
}

// TestSubtasksMakeTheFolderTogether runs on the machine's files, where the subtasks are in each other's way.
func TestSubtasksMakeTheFolderTogether(t *testing.T) {
	const n = 8
	for round := range 20 {
		dir := filepath.Join(t.TempDir(), "out")
		if round%2 == 0 {
			if err := os.WriteFile(dir, []byte("a file in the way"), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		var wg sync.WaitGroup
		errs := make([]error, n)
		for i := range n {
			wg.Go(func() {
				errs[i] = filetest.Write(file.TextSink[int](dir).Overwrite(), &wctx{Index: i, Number: n}, i)
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		got, err := filetest.Collect(file.New(numbers(), dir), 1, 16)
		slices.Sort(got)
		if err != nil || len(got) != n {
			t.Fatalf("got %v, %v", got, err)
		}
	}
}
