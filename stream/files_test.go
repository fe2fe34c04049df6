package stream_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/connector/csv"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/jsonl"
	"github.com/flott-dev/flott/stream"
)

type trade struct {
	Symbol string  `csv:"symbol" json:"symbol"`
	Price  float64 `csv:"price" json:"price"`
	Count  int     `csv:"count" json:"count"`
}

// folder makes files and returns the folder that they are in.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func sorted[T any](xs []T) (out []string) {
	for _, x := range xs {
		out = append(out, fmt.Sprint(x))
	}
	slices.Sort(out)
	return out
}

func TestReadTextFileReadsLines(t *testing.T) {
	dir := folder(t, map[string]string{"a.txt": "one\ntwo\r\n", "b.txt": "three", "sub/c.txt": "four\n", ".hidden": "five\n"})
	for name, c := range map[string]struct {
		path string
		opts []stream.ReadOption
		want string
	}{
		"a file":     {filepath.Join(dir, "a.txt"), nil, "[one two]"},
		"a folder":   {dir, nil, "[one three two]"},
		"a pattern":  {filepath.Join(dir, "*.txt"), []stream.ReadOption{stream.SplitSize(3)}, "[one three two]"},
		"recursive":  {dir, []stream.ReadOption{stream.Recursive()}, "[four one three two]"},
		"hidden":     {dir, []stream.ReadOption{stream.Hidden()}, "[five one three two]"},
		"a filter":   {dir, []stream.ReadOption{stream.OnlyFiles(func(p string, _ fs.FileInfo) bool { return strings.HasSuffix(p, "b.txt") })}, "[three]"},
		"a URL":      {"file://" + dir + "/sub/*.txt", nil, "[four]"},
		"no folder":  {dir, []stream.ReadOption{stream.Recursive(), stream.OnlyFolders(func(string, fs.FileInfo) bool { return false })}, "[one three two]"},
		"of a size":  {dir, []stream.ReadOption{stream.OnlyFiles(func(_ string, i fs.FileInfo) bool { return i.Size() > 5 })}, "[one two]"},
		"in Latin-1": {filepath.Join(dir, "b.txt"), []stream.ReadOption{stream.InCharset(file.Latin1)}, "[three]"},
	} {
		env := stream.NewEnv().SetParallelism(3)
		var g gather[string]
		env.ReadTextFile(c.path, c.opts...).ForEach(g.add)
		execute(t, env)
		if got := fmt.Sprint(sorted(g.xs)); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestMissingFileNamesThePath(t *testing.T) {
	env := stream.NewEnv()
	env.ReadTextFile(filepath.Join(t.TempDir(), "nothing.txt")).Discard()
	err := executeFailing(t, env, "nothing.txt")
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestWatchedFolderGoesOn(t *testing.T) {
	dir := folder(t, map[string]string{"a": "first\n"})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	env := stream.NewEnv().SetParallelism(2)
	var g gather[string]
	env.ReadTextFile(dir, stream.Watch(time.Millisecond)).ForEach(func(line string) {
		g.add(line)
		switch line {
		case "first": // a file that comes later, whole from the beginning
			if err := os.WriteFile(filepath.Join(dir, ".b"), []byte("second\n"), 0o644); err == nil {
				err = os.Rename(filepath.Join(dir, ".b"), filepath.Join(dir, "b"))
				if err != nil {
					t.Error(err)
				}
			}
		case "second":
			cancel()
		}
	})
	if _, err := env.Execute(ctx, "watch"); !errors.Is(err, stream.ErrCanceled) {
		t.Errorf("error %v", err)
	}
	if !slices.Equal(g.xs, []string{"first", "second"}) {
		t.Errorf("lines %q", g.xs)
	}
}

const trades = "symbol,price,count\nA,1.5,2\nB,x,3\nC,2.5\nD,3.5,4\n"

func TestReadCSVReadsStructs(t *testing.T) {
	dir := folder(t, map[string]string{"t.csv": "symbol,price,count\nA,1.5,2\n\"B,b\",2.5,3\n"})
	env := stream.NewEnv().SetParallelism(2)
	var g gather[trade]
	env.ReadCSV[trade](filepath.Join(dir, "t.csv"), csv.Header()).ForEach(g.add)
	execute(t, env)
	if got := fmt.Sprint(sorted(g.xs)); got != "[{A 1.5 2} {B,b 2.5 3}]" {
		t.Errorf("got %s", got)
	}
}

func TestBadCSVRowFailsWithItsPlaceOrGoesToASideOutput(t *testing.T) {
	path := filepath.Join(folder(t, map[string]string{"t.csv": trades}), "t.csv")
	env := stream.NewEnv()
	env.ReadCSV[trade](path, csv.Header()).Discard()
	executeFailing(t, env, "t.csv", "line 3", "price")

	env = stream.NewEnv().SetParallelism(2)
	var good gather[trade]
	var bad gather[stream.BadRecord]
	rows := env.ReadCSV[trade](path, csv.Header())
	rows.ForEach(good.add)
	stream.BadRecords(rows).ForEach(bad.add)
	execute(t, env)
	if got := fmt.Sprint(sorted(good.xs)); got != "[{A 1.5 2} {D 3.5 4}]" {
		t.Errorf("good rows %s", got)
	}
	slices.SortFunc(bad.xs, func(a, b stream.BadRecord) int { return int(a.Line - b.Line) })
	if len(bad.xs) != 2 || bad.xs[0].Line != 3 || bad.xs[0].Record != "B,x,3" || bad.xs[1].Line != 4 ||
		!strings.Contains(bad.xs[0].Cause, "price") || !strings.HasSuffix(bad.xs[0].Path, "t.csv") {
		t.Errorf("bad rows %+v", bad.xs)
	}

	env = stream.NewEnv()
	var kept gather[trade]
	env.ReadFile(csv.Format[trade](csv.Header()), path, stream.SkipBadRecords()).ForEach(kept.add)
	execute(t, env)
	if len(kept.xs) != 2 {
		t.Errorf("kept %v", kept.xs)
	}
}

func TestReadJSONLinesReadsValues(t *testing.T) {
	path := filepath.Join(folder(t, map[string]string{"t.jsonl": `{"symbol":"A","price":1.5,"count":2}` + "\n{}\n[1\n"}), "t.jsonl")
	env := stream.NewEnv().SetParallelism(2)
	var g gather[trade]
	var bad gather[stream.BadRecord]
	rows := env.ReadJSONLines[trade](path)
	rows.ForEach(g.add)
	stream.BadRecords(rows).ForEach(bad.add)
	execute(t, env)
	if got := fmt.Sprint(sorted(g.xs)); got != "[{ 0 0} {A 1.5 2}]" || len(bad.xs) != 1 || bad.xs[0].Line != 3 {
		t.Errorf("got %s, bad %+v", got, bad.xs)
	}
}

// TestOptionsOfFormatsAndFilesGoTogether reads a folder in a folder with options of both kinds.
func TestOptionsOfFormatsAndFilesGoTogether(t *testing.T) {
	dir := folder(t, map[string]string{
		"a.csv": "A;1.5;2\n", "sub/b.csv": "B;cheap;2\nC;2.5;3\n", "sub/c.txt": "no row\n",
		"x.json": `{"symbol":"X","other":1}` + "\n" + `{"symbol":"Y"}` + "\n", "sub/old.json": `{"symbol":"Z"}` + "\n",
	})
	long := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(dir, "sub/old.json"), long, long); err != nil {
		t.Fatal(err)
	}
	ends := func(suffix string) stream.ReadOption {
		return stream.OnlyFiles(func(path string, info fs.FileInfo) bool {
			return strings.HasSuffix(path, suffix) && info.ModTime().After(long)
		})
	}
	env := stream.NewEnv().SetParallelism(2)
	var rows, values gather[trade]
	env.ReadCSV[trade](dir, csv.Comma(";"), stream.Recursive(), ends(".csv"), stream.SkipBadRecords()).ForEach(rows.add)
	env.ReadJSONLines[trade](dir, stream.Recursive(), jsonl.Options(json.RejectUnknownMembers(true)), ends(".json"),
		jsonl.Option{}, stream.SkipBadRecords()).ForEach(values.add)
	execute(t, env)
	if got := fmt.Sprint(sorted(rows.xs), sorted(values.xs)); got != "[{A 1.5 2} {C 2.5 3}] [{Y 0 0}]" {
		t.Errorf("got %s", got)
	}
}

// ownOption pretends to be an option.
type ownOption struct{}

func (ownOption) ReadsCSV()       {}
func (ownOption) ReadsJSONLines() {}

func TestForeignOptionsAreMistakesOfTheProgram(t *testing.T) {
	env := stream.NewEnv()
	env.ReadCSV[trade]("t.csv", ownOption{}).Discard()
	env.ReadJSONLines[trade]("t.json", nil, ownOption{}).Discard()
	executeFailing(t, env, "files_test.go", "type stream_test.ownOption is neither a csv.Option nor a stream.ReadOption",
		"type <nil> is neither a jsonl.Option", "type stream_test.ownOption is neither a jsonl.Option")
}

func TestSourceWithoutBadRecordsSaysSo(t *testing.T) {
	env := stream.NewEnv()
	s := env.FromSource(counting{start: func(int) int64 { return 0 }}, "counting")
	s.Discard()
	stream.BadRecords(s).Discard()
	executeFailing(t, env, "counting", "no side outputs")
}

// serve sends text to the first client and returns the port.
func serve(t *testing.T, handle func(c net.Conn)) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		handle(c)
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return l.Addr().(*net.TCPAddr).Port
}

func TestSocketTextStreamReadsLinesUntilTheServerCloses(t *testing.T) {
	port := serve(t, func(c net.Conn) { fmt.Fprint(c, "to|be|or") })
	env := stream.NewEnv().SetParallelism(2)
	var g gather[string]
	env.SocketTextStream("127.0.0.1", port, stream.SocketDelimiter("|"), stream.SocketRetry(0)).ForEach(g.add).Parallelism(1)
	execute(t, env)
	if !slices.Equal(g.xs, []string{"to", "be", "or"}) {
		t.Errorf("got %q", g.xs)
	}
}

func TestUnreachableSocketNamesTheAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().(*net.TCPAddr)
	l.Close()
	env := stream.NewEnv()
	env.SocketTextStream("127.0.0.1", addr.Port).Discard()
	executeFailing(t, env, "Socket Stream", addr.String())
}

func TestWriteToSocketSendsWhatEncodeMakes(t *testing.T) {
	var got []string
	received := make(chan struct{})
	port := serve(t, func(c net.Conn) {
		defer close(received)
		for sc := bufio.NewScanner(c); sc.Scan(); {
			got = append(got, sc.Text())
		}
	})
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(1, 2, 3).WriteToSocket("127.0.0.1", port, func(x int) []byte { return fmt.Appendln(nil, x) })
	execute(t, env)
	<-received
	if !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("received %q", got)
	}
	env.FromElements(1).WriteToSocket("127.0.0.1", 1, func(int) ([]byte, error) { return nil, errors.New("no code") })
	if _, err := env.Execute(context.Background(), "refused"); err == nil {
		t.Error("nobody listens, but the job did not fail")
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A plain sink has no part in checkpoints, but its file belongs to the job: a job that is stopped with a savepoint and goes on in
// another environment writes on at its end.
func TestWriteAsTextGoesOnWithTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, saved := filepath.Join(t.TempDir(), "out"), t.TempDir()
		const n = 300
		start := func(mode stream.WriteMode, opts ...stream.Option) *stream.Job {
			env := stream.NewEnv(opts...)
			env.FromGenerator(n, func(i int64) int64 { return i }, 1000).UID("numbers").WriteAsText(path, mode).UID("out").Parallelism(1)
			job, err := env.ExecuteAsync(t.Context(), "writing")
			if err != nil {
				t.Fatal(err)
			}
			return job
		}
		job := start(stream.NoOverwrite)
		for _, mode := range []stream.WriteMode{stream.NoOverwrite, stream.Overwrite} {
			time.Sleep(100 * time.Millisecond)
			at, err := job.StopWithSavepoint(t.Context(), saved, false)
			if err != nil {
				t.Fatal(err)
			}
			job = start(mode, stream.WithSavepoint(at))
		}
		if _, err := job.Wait(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Fields(string(b))
		slices.SortFunc(lines, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
		for i, line := range lines {
			if line != fmt.Sprint(i) {
				t.Fatalf("line %d is %q", i, line)
			}
		}
		if len(lines) != n {
			t.Errorf("%d lines", len(lines))
		}
	})
}

func TestWriteAsTextWritesAFileOrAFolder(t *testing.T) {
	dir := t.TempDir()
	one, many := filepath.Join(dir, "one"), filepath.Join(dir, "many")
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements("a", "b").WriteAsText(one, stream.NoOverwrite)
	execute(t, env)
	if got := read(t, one); got != "a\nb\n" {
		t.Errorf("file %q", got)
	}
	env.SetParallelism(2)
	env.FromSequence(1, 10).WriteAsText(many, stream.NoOverwrite)
	execute(t, env)
	if lines := strings.Fields(read(t, filepath.Join(many, "1")) + read(t, filepath.Join(many, "2"))); len(lines) != 10 {
		t.Errorf("lines %q", lines)
	}
	env.FromElements("c").WriteAsText(one, stream.NoOverwrite).Parallelism(1)
	executeFailing(t, env, "one", "exists")
	env.FromElements("c").WriteAsText(one, stream.Overwrite).Parallelism(1)
	execute(t, env)
	if got := read(t, one); got != "c\n" {
		t.Errorf("file %q", got)
	}
	env.FromElements("c").WriteAsText(one, stream.WriteMode(7))
	executeFailing(t, env, "files_test.go:", "write mode 7")
}

func TestWriteAsCSVAndJSONLinesAreReadBack(t *testing.T) {
	dir := t.TempDir()
	all := []trade{{"A", 1.5, 2}, {"B,b\n", -1, 0}}
	env := stream.NewEnv().SetParallelism(1)
	s := env.FromSlice(all)
	s.WriteAsCSV(filepath.Join(dir, "t.csv"), stream.NoOverwrite, csv.Header(), csv.Comma(";"))
	s.WriteAsJSONLines(filepath.Join(dir, "t.jsonl"), stream.NoOverwrite)
	execute(t, env)
	if got := read(t, filepath.Join(dir, "t.csv")); !strings.HasPrefix(got, "symbol;price;count\nA;1.5;2\n") {
		t.Errorf("CSV %q", got)
	}
	var fromCSV, fromJSON gather[trade]
	env.ReadCSV[trade](filepath.Join(dir, "t.csv"), csv.Header(), csv.Comma(";")).ForEach(fromCSV.add)
	env.ReadJSONLines[trade](filepath.Join(dir, "t.jsonl")).ForEach(fromJSON.add)
	execute(t, env)
	if !slices.Equal(fromCSV.xs, all) || !slices.Equal(fromJSON.xs, all) {
		t.Errorf("read back %v and %v", fromCSV.xs, fromJSON.xs)
	}
}

// notes is an output format that notes its calls.
type notes struct {
	g    *gather[string]
	fail string
}

func (n notes) note(call string) error {
	n.g.add(call)
	if call == n.fail {
		return errors.New("failed at " + call)
	}
	return nil
}

func (n notes) Open(subtask, parallelism int) error {
	return n.note(fmt.Sprintf("open %d of %d", subtask, parallelism))
}
func (n notes) WriteRecord(x int) error  { return n.note(fmt.Sprint("write ", x)) }
func (n notes) Close() error             { return n.note("close") }
func (n notes) TryCleanupOnError() error { return n.note("clean up") }

func TestOutputFormatIsOpenedWrittenAndClosed(t *testing.T) {
	for fail, want := range map[string]string{
		"":            "open 0 of 1, write 1, write 2, close",
		"write 2":     "open 0 of 1, write 1, write 2, clean up, close",
		"open 0 of 1": "open 0 of 1, clean up, close",
		"close":       "open 0 of 1, write 1, write 2, close",
	} {
		env := stream.NewEnv().SetParallelism(1)
		var g gather[string]
		env.FromElements(1, 2).WriteUsingOutputFormat(func() notes { return notes{&g, fail} })
		if fail == "" {
			execute(t, env)
		} else {
			executeFailing(t, env, "Output Format", "failed at "+fail)
		}
		if got := strings.Join(g.xs, ", "); got != want {
			t.Errorf("failing at %q: %s, want %s", fail, got, want)
		}
	}
}
