package blob

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/internal/vfs"
)

// onlyIn fails the calls of one name.
func onlyIn(name string, err error) func(context.Context, string) error {
	return func(_ context.Context, call string) error {
		if strings.HasPrefix(call, name) {
			return err
		}
		return nil
	}
}

// hang waits as long as the caller does.
func hang(name string) func(context.Context, string) error {
	return func(ctx context.Context, call string) error {
		if !strings.HasPrefix(call, name) {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

func create(t *testing.T, f *FS, name string, how vfs.Mode, text string) error {
	t.Helper()
	w, err := f.Create(name, how)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return errors.Join(err, w.Close())
}

func TestReadingOnIsOneRequest(t *testing.T) {
	d, f := newFake(Options{})
	d.put("a/b", strings.Repeat("0123456789", 100_000), nil)
	if _, err := vfs.ReadFile(f, "/a/b"); err != nil {
		t.Fatal(err)
	}
	if got := d.since(); got != "head a/b, get 0+-1" {
		t.Errorf("a whole file took: %s", got)
	}
	file, err := f.Open("a/b")
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1000)
	for _, at := range []int64{0, 999_990, 8, 1008, 2008, 5000, 600_000, 601_000, 602_000, 7} {
		n, err := file.ReadAt(b, at)
		if want := min(1000, 1_000_000-at); int64(n) != want || b[0] != byte('0'+at%10) || err != nil && at != 999_990 {
			t.Errorf("at %d: %d bytes, from %q on, %v", at, n, b[0], err)
		}
	}
	const want = "head a/b, get 0+1000, get 999990+10, get 8+1000, get 1008+-1, get 600000+1000, get 601000+-1, get 7+1000"
	if got := d.since(); got != want {
		t.Errorf("reads took: %s\nwant: %s", got, want)
	}
	if err := errors.Join(file.Close()); err != nil {
		t.Error(err)
	}
	if _, err := file.ReadAt(b, 0); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("reading a closed file: %v", err)
	}
	if err := file.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("closing it again: %v", err)
	}
}

func TestBrokenConnectionIsReplaced(t *testing.T) {
	d, f := newFake(Options{})
	text := strings.Repeat("abcdefghij", 1000)
	d.put("a", text, nil)
	broken := 0
	d.body = func(_ context.Context, b []byte) io.Reader {
		if broken == 3 { // the stream, and twice what was missing
			return strings.NewReader(string(b))
		}
		broken++
		return io.MultiReader(strings.NewReader(string(b[:len(b)/4])), iotest.ErrReader(errors.New("connection reset")))
	}
	got, err := vfs.ReadFile(f, "a")
	if err != nil || string(got) != text {
		t.Errorf("read %d bytes: %v", len(got), err)
	}
	if calls := strings.Count(d.since(), "get"); calls < 4 || calls > 6 {
		t.Errorf("it took %d requests", calls)
	}
	broken = -100
	if _, err := vfs.ReadFile(f, "a"); err == nil || !strings.Contains(err.Error(), "connection reset") {
		t.Errorf("a connection that always breaks: %v", err)
	}
}

func TestObjectThatEndsEarlyIsNoEnd(t *testing.T) {
	d, f := newFake(Options{})
	d.put("a", "0123456789", nil)
	d.body = func(_ context.Context, b []byte) io.Reader { return strings.NewReader(string(b[:len(b)/2])) }
	got, err := vfs.ReadFile(f, "a")
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(got) == 10 {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	if _, ok := errors.AsType[*fs.PathError](err); !ok {
		t.Errorf("the error names no file: %v", err)
	}
}

func TestStoreThatHangsIsLeft(t *testing.T) {
	for name, do := range map[string]func(t *testing.T, f *FS) error{
		"head":  func(_ *testing.T, f *FS) error { _, err := f.Stat("there"); return err },
		"list":  func(_ *testing.T, f *FS) error { _, err := f.ReadDir(""); return err },
		"get":   func(_ *testing.T, f *FS) error { _, err := vfs.ReadFile(f, "there"); return err },
		"copy":  func(_ *testing.T, f *FS) error { return f.Rename("there", "to") },
		"write": func(t *testing.T, f *FS) error { return create(t, f, "new", vfs.Truncate, "text") },
		"close": func(t *testing.T, f *FS) error { return create(t, f, "new", vfs.Exclusive, "text") },
		"body":  func(_ *testing.T, f *FS) error { _, err := vfs.ReadFile(f, "there"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, f := newFake(Options{Timeout: time.Minute})
				d.put("there", "text", nil)
				d.before = hang(name)
				if name == "body" {
					d.body = func(ctx context.Context, _ []byte) io.Reader { return hangingReader{ctx} }
				}
				begin := time.Now()
				err := do(t, f)
				if !errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(err.Error(), "did nothing for 1m0s") {
					t.Errorf("error %v", err)
				}
				if took := time.Since(begin); took > 5*time.Minute {
					t.Errorf("gave up after %v only", took)
				}
				if _, err := d.get("new"); err == nil {
					t.Error("a file that could not be written exists")
				}
			})
		})
	}
}

type hangingReader struct{ ctx context.Context }

func (r hangingReader) Read([]byte) (int, error) {
	<-r.ctx.Done()
	return 0, r.ctx.Err()
}

func TestPatienceIsForSilenceOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, f := newFake(Options{Timeout: time.Minute})
		w, err := f.Create("slow", vfs.Truncate)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			time.Sleep(50 * time.Second) // the program has nothing to write
			if _, err := io.WriteString(w, strings.Repeat("x", 1000)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		d.body = func(_ context.Context, b []byte) io.Reader {
			return slowReader{iotest.OneByteReader(strings.NewReader(string(b)))}
		}
		if b, err := vfs.ReadFile(f, "slow"); err != nil || len(b) != 10_000 {
			t.Errorf("read %d bytes: %v", len(b), err)
		}
	})
}

type slowReader struct{ io.Reader }

func (r slowReader) Read(p []byte) (int, error) {
	time.Sleep(10 * time.Second)
	return r.Reader.Read(p)
}

func TestFailedWriteLeavesNoFile(t *testing.T) {
	d, f := newFake(Options{})
	d.before = onlyIn("write", errors.New("no room"))
	w, err := f.Create("a", vfs.Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	text := []byte(strings.Repeat("x", 1000))
	for err == nil { // what is written is sent in the background
		_, err = w.Write(text)
	}
	if !strings.Contains(err.Error(), "no room") {
		t.Errorf("write: %v", err)
	}
	if _, err := w.Write(text); err == nil {
		t.Error("it goes on writing after a failure")
	}
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("close: %v", err)
	}
	if err := w.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("closing it again: %v", err)
	}
	if _, err := d.get("a"); err == nil {
		t.Error("half a file exists")
	}
}

func TestLostAnswerIsNoFailure(t *testing.T) {
	d, f := newFake(Options{})
	// The driver sends the object twice: the answer to the first request is lost, that to the second is that it exists.
	d.after = onlyIn("close", errExists)
	if err := create(t, f, "a", vfs.Exclusive, "text"); err != nil {
		t.Errorf("an object that is there: %v", err)
	}
	if b, err := vfs.ReadFile(f, "a"); string(b) != "text" || err != nil {
		t.Errorf("it has %q, %v", b, err)
	}
}

// TestStoreThatHangsUpOnWhatItRefuses: that there is another file is found out.
func TestStoreThatHangsUpOnWhatItRefuses(t *testing.T) {
	reset := errors.New("connection reset")
	for name, c := range map[string]struct {
		there *fakeObject // when it hangs up
		head  error
		want  bool
	}{
		"nothing is there":       {nil, nil, false},
		"another one is there":   {&fakeObject{[]byte("other"), map[string]string{writerMark: "of another"}}, nil, true},
		"one of somebody else's": {&fakeObject{[]byte("other"), nil}, nil, true},
		"nobody may look":        {&fakeObject{[]byte("other"), nil}, errDenied, false},
	} {
		d, f := newFake(Options{})
		var closing atomic.Bool
		d.before = func(_ context.Context, call string) error {
			switch {
			case !closing.Load():
			case call == "close a":
				if c.there != nil {
					d.put("a", string(c.there.data), c.there.metadata)
				}
				return reset
			case call == "head a":
				return c.head
			}
			return nil
		}
		w, err := f.Create("a", vfs.Exclusive)
		if err != nil {
			t.Fatal(err)
		}
		closing.Store(true)
		if err := w.Close(); !errors.Is(err, reset) || errors.Is(err, fs.ErrExist) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDoubtfulFileIsRemovedOnlyIfItIsOurs(t *testing.T) {
	for _, c := range []struct {
		name         string
		ours, theirs bool
	}{{"nobody's", false, false}, {"ours", true, false}, {"theirs", false, true}} {
		t.Run(c.name, func(t *testing.T) {
			d, f := newFake(Options{})
			lost := onlyIn("close", errors.New("connection reset"))
			if c.ours {
				d.after = lost
			} else {
				d.before = lost
			}
			if err := create(t, f, "a", vfs.Exclusive, "text"); err == nil {
				t.Fatal("no error")
			}
			if c.theirs {
				d.put("a", "other", nil)
			}
			d.before = onlyIn("head", errDenied)
			if err := f.Remove("a"); !errors.Is(err, fs.ErrPermission) {
				t.Errorf("removed without knowing whose it is: %v", err)
			}
			d.before = nil
			if err := f.Remove("a"); err != nil {
				t.Errorf("remove: %v", err)
			}
			if _, err := d.get("a"); (err == nil) != c.theirs {
				t.Errorf("after removing: %v", err)
			}
			if err := f.Remove("a"); (err == nil) != c.theirs { // now the caller means it
				t.Errorf("second remove: %v", err)
			}
		})
	}
}

func TestErrorsAreThoseOfFiles(t *testing.T) {
	d, f := newFake(Options{Classify: func(err error) error {
		if strings.Contains(err.Error(), "sealed") {
			return fs.ErrPermission
		}
		return nil
	}})
	d.put("a", "", nil)
	for _, c := range []struct{ err, want error }{
		{errMissing, fs.ErrNotExist},
		{errExists, fs.ErrExist},
		{errDenied, fs.ErrPermission},
		{errors.New("sealed"), fs.ErrPermission},
	} {
		d.before = func(context.Context, string) error { return c.err }
		_, err := f.ReadDir("/x")
		if path, ok := errors.AsType[*fs.PathError](err); !errors.Is(err, c.want) || !ok || path.Path != "/x" {
			t.Errorf("%v became %v", c.err, err)
		}
	}
	d.before = onlyIn("delete", errDenied)
	if err := f.Rename("a", "b"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a file that can't be moved away: %v", err)
	}
	for _, err := range []error{
		create(t, f, "/", vfs.Truncate, ""), f.Remove("."), f.Rename("a", "/"), create(t, f, "a", vfs.Append, ""), f.Truncate("a", 0),
	} {
		if err == nil {
			t.Error("what can't be done was done")
		}
	}
}

// TestObjectsThatStandForFolders has what other tools leave: an object for each folder, named like it, or with a slash.
func TestObjectsThatStandForFolders(t *testing.T) {
	d, f := newFake(Options{})
	d.put("a", "", map[string]string{folderMark: "true"})
	d.put("a/", "", nil)
	d.put("a/b", "text", nil)
	d.put("a/c", "", map[string]string{folderMark: "true"})
	d.put("a/c/d", "", nil)
	d.put("empty/", "", nil)
	for _, name := range []string{"a", "a/c", "empty", "/"} {
		if info, err := f.Stat(name); err != nil || !info.IsDir() {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	entries, err := f.ReadDir("/a")
	if err != nil || len(entries) != 2 || entries[0].Name() != "b" || entries[0].IsDir() || entries[1].Name() != "c" || !entries[1].IsDir() {
		t.Errorf("listed %v, %v", entries, err)
	}
	if err := f.Remove("empty"); err != nil {
		t.Errorf("removing an empty folder: %v", err)
	}
	if _, err := d.get("empty/"); err == nil {
		t.Error("its object is still there")
	}
}

func TestRenameThatWasBrokenOffIsKnown(t *testing.T) {
	d, f := newFake(Options{})
	for _, name := range []string{"a", "other"} {
		if err := create(t, f, name, vfs.Exclusive, "text"); err != nil {
			t.Fatal(err)
		}
	}
	if err := create(t, f, "plain", vfs.Truncate, "text"); err != nil {
		t.Fatal(err)
	}
	d.before = onlyIn("delete", errDenied)
	for _, name := range []string{"a", "plain"} {
		if err := f.Rename(name, name+"2"); !errors.Is(err, fs.ErrPermission) {
			t.Fatalf("rename %s: %v", name, err)
		}
	}
	for _, c := range []struct {
		from, to string
		want     bool
	}{{"a", "a2", true}, {"a", "other", false}, {"plain", "plain2", false}, {"a", "plain", false}} {
		if got, err := f.Copied(c.from, c.to); got != c.want || err != nil {
			t.Errorf("%s is a copy of %s: %v, %v", c.to, c.from, got, err)
		}
	}
	for _, c := range [][2]string{{"a", "nothing"}, {"nothing", "a"}} {
		if _, err := f.Copied(c[0], c[1]); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v: %v", c, err)
		}
	}
}

func TestFileThatIsTooLargeToCopyIsUploadedAgain(t *testing.T) {
	d, f := newFake(Options{})
	f.copyBytes = 10
	large := errors.New("the copy source is larger than allowed")
	d.before = onlyIn("copy", large)
	text := strings.Repeat("0123456789", 100_000)
	for name, text := range map[string]string{"large": text, "small": "0123456789"} {
		if err := create(t, f, name, vfs.Exclusive, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Rename("small", "small2"); !errors.Is(err, large) {
		t.Errorf("a file that is not too large: %v", err)
	}
	mark := d.objects["large"].metadata[writerMark]
	d.since()
	d.before = func(_ context.Context, call string) error {
		if call == "delete large" || call == "close large2" {
			return errDenied
		}
		return onlyIn("copy", large)(nil, call)
	}
	if err := f.Rename("large", "large2"); !errors.Is(err, fs.ErrPermission) || d.objects["large2"] != nil {
		t.Errorf("an upload that fails: %v", err)
	}
	d.before = onlyIn("copy", large)
	if err := f.Rename("large", "large2"); err != nil {
		t.Fatal(err)
	}
	o := d.objects["large2"]
	if o == nil || string(o.data) != text || o.metadata[writerMark] != mark || mark == "" || d.objects["large"] != nil {
		t.Errorf("after renaming by hand there are %v", d.since())
	}
	if err := f.Rename("nothing", "x"); !errors.Is(err, large) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestUploadThatIsGivenUpLeavesNoFile(t *testing.T) {
	d, f := newFake(Options{})
	w, err := f.Create("a", vfs.Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, strings.Repeat("x", 100_000)); err != nil {
		t.Fatal(err)
	}
	if err := w.(*writer).Abort(); err != nil {
		t.Errorf("abort: %v", err)
	}
	if _, err := d.get("a"); err == nil {
		t.Error("half a file exists")
	}
	for name, err := range map[string]error{"abort": w.(*writer).Abort(), "close": w.Close()} {
		if !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s afterwards: %v", name, err)
		}
	}
}
