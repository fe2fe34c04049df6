package file_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/internal/vfs"
)

// disk makes a file system with the given files.
func disk(t testing.TB, files map[string]string) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem()
	for name, text := range files {
		put(t, m, name, text)
	}
	return m
}

func put(t testing.TB, m vfs.FS, name, text string) {
	t.Helper()
	if i := strings.LastIndexByte(name, '/'); i > 0 {
		if err := m.MkdirAll(name[:i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := vfs.WriteFile(m, name, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// numbered is a text of n lines of different lengths.
func numbered(n int) (text string, lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf("%d %s", i, strings.Repeat("x", i%17)))
	}
	return strings.Join(lines, "\n") + "\n", lines
}

func TestLinesReadsEveryLineOnceAtAnyParallelismAndSplitSize(t *testing.T) {
	a, want := numbered(100)
	b, more := numbered(70)
	m := disk(t, map[string]string{"d/a.txt": a, "d/b.txt": strings.TrimSuffix(b, "\n"), "d/empty": ""})
	want = append(want, more...)
	slices.Sort(want)
	for _, parallelism := range []int{1, 2, 4} {
		for _, size := range []int64{1, 8, 100, 1 << 20} {
			got, err := filetest.Collect(file.Lines("d").On(m).SplitSize(size), parallelism, 7)
			slices.Sort(got)
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("parallelism %d, split size %d: %d lines, want %d; %v", parallelism, size, len(got), len(want), err)
			}
		}
	}
}

func TestLinesGoOnExactlyFromASnapshotAfterEveryStep(t *testing.T) {
	text, want := numbered(60)
	slices.Sort(want)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	for name, content := range map[string]string{"f.txt": text, "f.gz": packed.String()} {
		src := file.Lines(name).On(disk(t, map[string]string{name: content})).SplitSize(100)
		for crash := 0; ; crash++ {
			d, err := filetest.Start(src, 2, 3, nil)
			if err != nil {
				t.Fatal(err)
			}
			steps, on := 0, true
			for ; on && steps < crash; steps++ {
				if on, err = d.Step(); err != nil {
					t.Fatal(err)
				}
			}
			state, err := d.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			got := slices.Concat(d.Out...)
			if _, err := d.Step(); err != nil { // lost with the crash
				t.Fatal(err)
			}
			if d, err = filetest.Start(src, 3, 4, state); err != nil {
				t.Fatal(err)
			}
			if err := d.Run(); err != nil {
				t.Fatal(err)
			}
			got = append(got, slices.Concat(d.Out...)...)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("%s, snapshot after %d steps: %d lines, want %d", name, steps, len(got), len(want))
			}
			if !on {
				break
			}
		}
	}
}

func TestSplitsOfAFailedReaderAreReadByAnother(t *testing.T) {
	text, want := numbered(40)
	slices.Sort(want)
	for _, watch := range []time.Duration{0, time.Second} {
		src := file.Lines("f").On(disk(t, map[string]string{"f": text})).SplitSize(50)
		if watch > 0 {
			src = src.Watch(watch)
		}
		d, err := filetest.Start(src, 2, 8, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := d.Step(); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Restart(1); err != nil { // no checkpoint: all that it was given is read again
			t.Fatal(err)
		}
		if err := d.Run(); err != nil {
			t.Fatal(err)
		}
		got := slices.Concat(d.Out...)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("watching %v: %d lines, want %d", watch > 0, len(got), len(want))
		}
	}
}

func TestCompressedFilesAreReadByTheirExtension(t *testing.T) {
	const text = "alpha\nbeta\n"
	var gz, deflate, zst bytes.Buffer
	pack := func(w io.WriteCloser) {
		_, _ = io.WriteString(w, text)
		_ = w.Close()
	}
	pack(gzip.NewWriter(&gz))
	pack(zlib.NewWriter(&deflate))
	enc, err := zstd.NewWriter(&zst)
	if err != nil {
		t.Fatal(err)
	}
	pack(enc)
	for name, content := range map[string]string{
		"f.gz": gz.String(), "f.gzip": gz.String(), "f.deflate": deflate.String(), "f.zst": zst.String(),
		"f.bz2":      unbase64(t, "QlpoOTFBWSZTWbVmTfEAAAJBgAAQMkREACAAMQwIGgyepaJqZA8XckU4UJC1Zk3x"),
		"f.xz":       unbase64(t, "/Td6WFoAAATm1rRGAgAhARYAAAB0L+WjAQAKYWxwaGEKYmV0YQoAAM+Gve2Ecg4KAAEjC8Ib/QkftvN9AQAAAAAEWVo="),
		"f.GZ":       text, // not the extension, as it is written
		"two.gz":     gz.String() + gz.String(),
		"padded.gz":  gz.String() + strings.Repeat("\x00", 300),
		"f.gz.plain": text,
	} {
		want := []string{"alpha", "beta"}
		if name == "two.gz" {
			want = append(want, want...)
		}
		got, err := filetest.Collect(file.Lines(name).On(disk(t, map[string]string{name: content})).SplitSize(3), 2, 5)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
}

func unbase64(t *testing.T, s string) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDamagedCompressionIsAnErrorWithFileAndOffset(t *testing.T) {
	var gz, deflate bytes.Buffer
	for _, w := range []io.WriteCloser{gzip.NewWriter(&gz), zlib.NewWriter(&deflate)} {
		_, _ = io.WriteString(w, "alpha\n")
		_ = w.Close()
	}
	for _, c := range []struct {
		name, content string
		offset        int64
		cause         error
	}{
		{"f.gz", gz.String() + "garbage", int64(gz.Len()), file.ErrTrailing},
		{"f.deflate", deflate.String() + "garbage", int64(deflate.Len()), file.ErrTrailing},
		{"f.gz", gz.String()[:gz.Len()-3], int64(gz.Len() - 3), io.ErrUnexpectedEOF},
		{"f.gz", "", 0, io.ErrUnexpectedEOF},
		{"f.gz", "no gzip at all", 14, gzip.ErrHeader},
	} {
		src := file.Lines(c.name).On(disk(t, map[string]string{c.name: c.content}))
		_, err := filetest.Collect(src, 1, 8)
		at, ok := errors.AsType[*file.Error](err)
		if !ok || at.Path != c.name || at.Offset != c.offset || !errors.Is(err, c.cause) {
			t.Errorf("%s of %d bytes: %v, want offset %d, %v", c.name, len(c.content), err, c.offset, c.cause)
		}
		if c.cause != file.ErrTrailing {
			continue
		}
		if got, err := filetest.Collect(src.IgnoreTrailing(), 1, 8); err != nil || !slices.Equal(got, []string{"alpha"}) {
			t.Errorf("%s ignoring what follows: %q, %v", c.name, got, err)
		}
	}
}

func TestCharsetsAreDecoded(t *testing.T) {
	for _, c := range []struct {
		charset file.Charset
		content string
		want    string
	}{
		{file.Latin1, "gr\xfc\xdfe", "grüße"},
		{"iso-8859-1", "\xff", "ÿ"},
		{file.UTF16LE, "\x3d\xd8\x00\xdea\x00", "😀a"},
		{file.UTF16, "\xfe\xff\xd8\x3d\xde\x00\x00a", "😀a"},
		{file.UTF16, "\xff\xfe\x3d\xd8\x00\xdea\x00", "😀a"},
		{file.UTF16, "\x00a", "a"},
		{file.UTF16BE, "\xd8\x3d\x00a", "\ufffda"}, // half a character
		{file.UTF16BE, "\x00a\xd8\x3d", "a\ufffd"},
		{file.UTF16BE, "\x00a\x00", "a\ufffd"},
	} {
		got, err := filetest.Collect(file.Lines("f").On(disk(t, map[string]string{"f": c.content})).Charset(c.charset), 1, 8)
		if err != nil || !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s %q: %q, %v, want %q", c.charset, c.content, got, err, c.want)
		}
	}
	if err := file.Lines("f").Charset("EBCDIC").Check(); err == nil || !strings.Contains(err.Error(), "EBCDIC") {
		t.Errorf("unknown charset: %v", err)
	}
}

func TestPathsAreFilesFoldersAndPatterns(t *testing.T) {
	m := vfs.NewMem()
	for _, name := range []string{
		"d/a.txt", "d/b.log", "d/sub/c.txt", "d/sub/deep/e.txt", "d/_tmp/x.txt", "d/.git/y.txt", "d/_part.txt",
		"d/we[i]rd.txt", "d/wei.txt", "/abs/z.txt",
	} {
		put(t, m, name, name)
	}
	for _, c := range []struct {
		paths []string
		want  string
	}{
		{[]string{"d/a.txt"}, "d/a.txt"},
		{[]string{"d/_part.txt"}, "d/_part.txt"},
		{[]string{"d"}, "d/a.txt d/b.log d/we[i]rd.txt d/wei.txt"},
		{[]string{"d/*.txt"}, "d/a.txt d/we[i]rd.txt d/wei.txt"},
		{[]string{"d/_*.txt"}, "d/_part.txt"},
		{[]string{"d/*/*.txt"}, "d/sub/c.txt"},
		{[]string{"d/**/*.txt"}, "d/a.txt d/sub/c.txt d/sub/deep/e.txt d/we[i]rd.txt d/wei.txt"},
		{[]string{"d/**"}, "d/a.txt d/b.log d/sub/c.txt d/sub/deep/e.txt d/we[i]rd.txt d/wei.txt"},
		{[]string{"d/s*"}, "d/sub/c.txt"},
		{[]string{"d/*/deep"}, "d/sub/deep/e.txt"},
		{[]string{"d/we[i]rd.txt"}, "d/we[i]rd.txt"},
		{[]string{"d/w*.txt", "d/wei.txt", "./d/wei.txt"}, "d/we[i]rd.txt d/wei.txt"},
		{[]string{"/abs/*"}, "/abs/z.txt"},
		{[]string{"d/sub/c.txt", "d/a.txt"}, "d/a.txt d/sub/c.txt"},
	} {
		got, err := filetest.Collect(file.Lines(c.paths...).On(m), 1, 16)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%v: %q, %v, want %q", c.paths, got, err, c.want)
		}
	}
	got, err := filetest.Collect(file.Lines("d").On(m).Recursive().Hidden().Filter(func(p string, _ fs.FileInfo) bool {
		return strings.HasSuffix(p, "x.txt") || strings.Contains(p, ".git/")
	}), 1, 16)
	if err != nil || strings.Join(got, " ") != "d/.git/y.txt d/_tmp/x.txt" {
		t.Errorf("recursive, hidden, filtered: %q, %v", got, err)
	}
}

func TestFoldersThatAreNotWantedAreNotListed(t *testing.T) {
	m := disk(t, map[string]string{})
	for _, name := range []string{"d/a", "d/x/b", "d/x/y/c", "d/z/d", "d/z/x/e"} {
		put(t, m, name, name)
	}
	for _, c := range []struct {
		src  *file.Source[string]
		want string
	}{
		{file.Lines("d").Recursive(), "d/a d/z/d"},
		{file.Lines("d/x").Recursive(), "d/x/b d/x/y/c"}, // it is named as such
		{file.Lines("d/*/*"), "d/z/d"},
		{file.Lines("d/**"), "d/a d/z/d"},
		{file.Lines("d/**/*"), "d/a d/z/d"},
		{file.Lines("d/*/x/*"), "d/z/x/e"}, // here as well
		{file.Lines("d/x*/*"), "none"},
	} {
		disk := vfs.NewFaulty(m)
		got, err := filetest.Collect(c.src.On(disk).FilterFolders(func(p string, info fs.FileInfo) bool {
			if !info.IsDir() || !strings.HasSuffix(p, info.Name()) {
				t.Errorf("asked about %s, %v", p, info)
			}
			return info.Name() != "x"
		}), 1, 16)
		if c.want == "none" {
			if !errors.Is(err, file.ErrNoMatch) {
				t.Errorf("got %q, %v", got, err)
			}
			continue
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("got %q, %v, want %q", got, err, c.want)
		}
	}
}

func TestMistakesAreToldBeforeAnythingIsRead(t *testing.T) {
	m := disk(t, map[string]string{"d/a": "a"})
	denied := vfs.NewFaulty(m)
	denied.FailFrom(vfs.OpReadDir, 1, fs.ErrPermission)
	for _, c := range []struct {
		src  *file.Source[string]
		want error
		text string
	}{
		{file.Lines("nowhere/x.txt").On(m), fs.ErrNotExist, "nowhere/x.txt"},
		{file.Lines("d/a", "d/*.csv").On(m), file.ErrNoMatch, "d/*.csv"},
		{file.Lines("d").On(denied), fs.ErrPermission, "d"},
		{file.Lines().On(m), nil, "no path"},
		{file.Lines("").On(m), nil, "empty path"},
		{file.Lines("d/[").On(m), nil, "d/["},
		{file.Lines("d").On(m).SplitSize(0), nil, "split size 0"},
		{file.Lines("d").On(m).Watch(0), nil, "watch interval"},
		{file.New(file.Text{Delimiter: strings.Repeat("x", 65)}, "d").On(m), nil, "delimiter"},
		{nil, nil, "without a Decode function"},
	} {
		var err error
		if c.src == nil {
			_, err = filetest.Collect(file.New(file.Delimited[string]{}, "d").On(m), 1, 1)
		} else {
			_, err = filetest.Start(c.src, 1, 1, nil)
		}
		if err == nil || !strings.Contains(err.Error(), c.text) || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("got %v, want %q and %v", err, c.text, c.want)
		}
	}
}

func TestAReadErrorNamesFileAndOffset(t *testing.T) {
	text, _ := numbered(100_000)
	bad := vfs.NewFaulty(disk(t, map[string]string{"f": text}))
	bad.Fail(vfs.OpRead, 2, syscall.EIO)
	_, err := filetest.Collect(file.Lines("f").On(bad), 1, 512)
	at, ok := errors.AsType[*file.Error](err)
	if !ok || at.Path != "f" || at.Offset == 0 || !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v", err)
	}
}

func TestWatchedFolderGivesEveryFileOnceWhateverItsTime(t *testing.T) {
	m := disk(t, map[string]string{"w/b.txt": "b"})
	at := func(name string, sec int) {
		t.Helper()
		if err := m.Touch(name, time.Unix(int64(sec), 0)); err != nil {
			t.Fatal(err)
		}
	}
	at("w/b.txt", 100)
	src := file.Lines("w").On(m).Watch(time.Second).Horizon(3 * time.Second)
	if src.Bounded() {
		t.Fatal("a watching source is not bounded")
	}
	d, err := filetest.Start(src, 2, 8, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	scan := func() string {
		t.Helper()
		d.Tick()
		if err := d.Run(); err != nil {
			t.Fatal(err)
		}
		lines := slices.Concat(d.Out...)
		clear(d.Out)
		got = append(got, lines...)
		slices.Sort(lines)
		return strings.Join(lines, " ")
	}
	step := func(what, want string) {
		t.Helper()
		if lines := scan(); lines != want {
			t.Errorf("%s: %q, want %q", what, lines, want)
		}
	}
	step("first scan", "b")
	put(t, m, "w/a.txt", "a")
	at("w/a.txt", 95)
	put(t, m, "w/c.txt", "c")
	at("w/c.txt", 100)
	step("an older file and one of the same second", "a c")
	step("nothing new", "")

	state, err := d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if d, err = filetest.Start(src, 1, 8, state); err != nil {
		t.Fatal(err)
	}
	step("after a restart", "")
	put(t, m, "w/d.txt", "d")
	at("w/d.txt", 1)
	step("a new file after the restart", "d")
	if strings.Join(got, " ") != "b a c d" && strings.Join(got, " ") != "b c a d" {
		t.Errorf("all: %q", got)
	}

	put(t, m, "w/a.txt", "a changed\na more")
	step("a changed file is read as a whole", "a changed a more")
	if err := m.Rename("w/c.txt", "w/renamed.txt"); err != nil {
		t.Fatal(err)
	}
	step("a renamed file is another one", "c")
	put(t, m, "w/c.txt", "c")
	at("w/c.txt", 100)
	step("a file that is back within the horizon", "")
	if err := m.Remove("w/c.txt"); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		step("the horizon passes", "")
	}
	put(t, m, "w/c.txt", "c")
	at("w/c.txt", 100)
	step("a file that is back behind the horizon", "c")
}

func TestAWatchedFolderThatVanishesIsAnErrorThatCanHeal(t *testing.T) {
	bad := vfs.NewFaulty(disk(t, map[string]string{"w/a": "a"}))
	d, err := filetest.Start(file.Lines("w").On(bad).Watch(time.Second), 1, 8, nil)
	if err != nil {
		t.Fatal(err)
	}
	bad.Fail(vfs.OpReadDir, 1, syscall.EIO)
	d.Tick()
	if _, err := d.Snapshot(); !errors.Is(err, syscall.EIO) {
		t.Errorf("snapshot after a failed scan: %v", err)
	}
	if err := d.Run(); !errors.Is(err, syscall.EIO) {
		t.Errorf("request after a failed scan: %v", err)
	}
	d.Tick()
	if _, err := d.Snapshot(); err != nil {
		t.Errorf("after a scan that went well: %v", err)
	}
}

func TestWholeMakesOneElementOfEachFile(t *testing.T) {
	m := disk(t, map[string]string{"d/a": "x\ny\n", "d/b": "", "d/c": strings.Repeat("z", 1<<20)})
	got, err := filetest.Collect(file.New(file.Whole{}, "d").On(m).SplitSize(3), 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, func(a, b file.Contents) int { return strings.Compare(a.Path, b.Path) })
	if len(got) != 3 || string(got[0].Data) != "x\ny\n" || len(got[1].Data) != 0 || len(got[2].Data) != 1<<20 {
		t.Errorf("got %d files", len(got))
	}
}

func TestPrefixedRecords(t *testing.T) {
	read := func(p file.Prefix, content string) (string, error) {
		m := disk(t, map[string]string{"f": content})
		f := file.Prefixed[string]{Prefix: p, MaxRecord: 300, Decode: func(b []byte) (string, error) { return string(b), nil }}
		got, err := filetest.Collect(file.New(f, "f").On(m).SplitSize(2), 2, 2)
		return strings.Join(got, "|"), err
	}
	long := strings.Repeat("x", 200)
	if got, err := read(file.Uint32, "\x00\x00\x00\x02ab\x00\x00\x00\x00\x00\x00\x00\xc8"+long); err != nil || got != "ab||"+long {
		t.Errorf("uint32: %q, %v", got, err)
	}
	if got, err := read(file.Uvarint, "\x02ab\x00\xc8\x01"+long); err != nil || got != "ab||"+long {
		t.Errorf("uvarint: %q, %v", got, err)
	}
	for _, c := range []string{"\x00\x00\x00\x02a", "\x00\x00", "\xff\xff\xff\xff"} {
		if _, err := read(file.Uint32, c); err == nil || !strings.Contains(err.Error(), "read f, offset 0") {
			t.Errorf("uint32 %q: %v", c, err)
		}
	}
	if _, err := read(file.Uvarint, strings.Repeat("\xff", 11)); err == nil {
		t.Error("a varint without end is no error")
	}
}

func TestStandardInputIsReadWithoutWaitingInPoll(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	old := os.Stdin
	os.Stdin = r
	defer func() { os.Stdin = old }()
	d, err := filetest.Start(file.Lines("-"), 1, 8, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Run(); err != nil || len(d.Out[0]) != 0 { // returns, though nobody has written
		t.Fatalf("%q, %v", d.Out[0], err)
	}
	_, _ = io.WriteString(w, "a\nb")
	_ = w.Close()
	for !d.Done() {
		if err := d.Run(); err != nil {
			t.Fatal(err)
		}
		if !d.Done() {
			<-d.Woken
		}
	}
	if !slices.Equal(d.Out[0], []string{"a", "b"}) {
		t.Errorf("got %q", d.Out[0])
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestTheMachinesFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.txt": "a\r\nb\r\n", "b.txt": "c"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "dangling")); err != nil {
		t.Skip(err)
	}
	got, err := filetest.Collect(file.Lines(dir), 1, 8)
	if err != nil || !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("got %q, %v", got, err)
	}
}
