package file_test

import (
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/internal/vfs"
)

// URLs lead into one storage; what they mean is asked once, and what can't be is told before anything is read.
func TestURLsLeadIntoOneStorage(t *testing.T) {
	one, two, local := disk(t, map[string]string{"b/x": "x", "b/y": "y"}), disk(t, nil), disk(t, map[string]string{"d/z": "z"})
	find := func(location string) (connector.Place, error) {
		switch scheme, rest, ok := strings.Cut(location, "://"); {
		case !ok:
			return connector.Place{FS: local, Path: location}, nil
		case scheme == "one":
			return connector.Place{FS: one, Path: rest, Remote: true}, nil
		case scheme == "two":
			return connector.Place{FS: two, Path: rest, Remote: true}, nil
		}
		return connector.Place{}, errors.New("nobody opens " + location)
	}
	for _, c := range []struct {
		paths []string
		want  string // what is read, or the mistake
	}{
		{[]string{"one://b/x"}, "x"},
		{[]string{"one://b/x", "one://b/y"}, "x y"},
		{[]string{"one://b/*"}, "x y"},
		{[]string{"d/z"}, "z"},
		{[]string{"one://b/x", "two://b/x"}, "two://b/x is in another storage than one://b/x"},
		{[]string{"one://b/x", "d/z"}, "some are in a storage and some are not"},
		{[]string{"one://b/x", "-"}, "some are in a storage and some are not"},
		{[]string{"s3://b/x"}, "nobody opens s3://b/x"},
	} {
		src := file.Lines(c.paths...).On(local).PlacedBy(find).(*file.Source[string])
		got, err := filetest.Collect(src, 1, 16)
		text := strings.Join(got, " ")
		if err != nil {
			text = err.Error()
		}
		if err == nil && text != c.want || !strings.Contains(text, c.want) {
			t.Errorf("%v: got %s, want %s", c.paths, text, c.want)
		}
		if check := src.Check(); (check == nil) != (err == nil) {
			t.Errorf("%v: checked: %v, read: %v", c.paths, check, err)
		}
	}
	if err := file.Lines("one://b/x").Check(); err == nil || !strings.Contains(err.Error(), "is a URL, which the environment opens") {
		t.Errorf("a URL that nobody was asked about: %v", err)
	}
}

// A pattern matches nothing where there is nothing to list, and fails where something can't be.
func TestPatternsPassOverWhatIsNoFolder(t *testing.T) {
	m := disk(t, map[string]string{"d/file": "a", "d/sub/x.txt": "b", "d/sub/deep/x.txt": "c", "x.txt": "d"})
	for _, c := range []struct {
		pattern, want string
	}{
		{"d/file/*", ""},    // no folder
		{"nowhere/*/x", ""}, // not there
		{"d/*/x.txt", "b"},
		{"d/**/x.txt", "b c"}, // a name behind **
		{"**/x.txt", "b c d"},
		{"d/**/deep/x.txt", "c"},
		{"d/**/**/x.txt", "b c"},
		{"d/sub/**", "b c"},
	} {
		got, err := filetest.Collect(file.Lines(c.pattern).On(m), 1, 16)
		slices.Sort(got)
		if strings.Join(got, " ") != c.want || errors.Is(err, file.ErrNoMatch) != (c.want == "") {
			t.Errorf("%s: %q, %v, want %q", c.pattern, got, err, c.want)
		}
	}
	for _, c := range []struct {
		op      vfs.Op
		nth     int
		pattern string
	}{
		{vfs.OpReadDir, 1, "d/*/x.txt"},
		{vfs.OpReadDir, 2, "d/*/*.txt"},
		{vfs.OpReadDir, 2, "d/**/*.txt"},
		{vfs.OpReadDir, 1, "d/**"},
		{vfs.OpReadDir, 1, "d"},
		{vfs.OpStat, 2, "d/*"},
		{vfs.OpStat, 2, "d"},
		{vfs.OpStat, 1, "d/file"},
	} {
		f := vfs.NewFaulty(m)
		f.Fail(c.op, c.nth, fs.ErrPermission)
		if got, err := filetest.Collect(file.Lines(c.pattern).On(f), 1, 16); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s %d fails: %s gives %q, %v", c.op, c.nth, c.pattern, got, err)
		}
	}
}

// What is gone again after it was listed was never there.
func TestFilesThatVanishWhileTheyAreLookedForAreLeftOut(t *testing.T) {
	for _, c := range []struct {
		nth        int
		path, want string
	}{
		{2, "d", "b"}, // the first call is about the folder
		{2, "d/*", "b"},
		{3, "d/*", "a"},
	} {
		f := vfs.NewFaulty(disk(t, map[string]string{"d/a": "a", "d/b": "b"}))
		f.Fail(vfs.OpStat, c.nth, fs.ErrNotExist)
		got, err := filetest.Collect(file.Lines(c.path).On(f), 1, 16)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s without the file of call %d: %q, %v, want %q", c.path, c.nth, got, err, c.want)
		}
	}
}

// Patterns lead through links to folders, if these are wanted; Recursive does not.
func TestLinksToFoldersAreFollowedByPatternsOnly(t *testing.T) {
	dir := filepath.ToSlash(t.TempDir())
	put(t, vfs.OS{}, dir+"/real/f", "inside")
	put(t, vfs.OS{}, dir+"/d/g", "beside")
	if err := os.Symlink(dir+"/real", dir+"/d/link"); err != nil {
		t.Skip(err)
	}
	wanted := true
	keep := func(string, fs.FileInfo) bool { return wanted }
	for _, c := range []struct {
		src    *file.Source[string]
		wanted bool
		want   string
	}{
		{file.Lines(dir + "/d/*/f"), true, "inside"},
		{file.Lines(dir + "/d/l*/f").FilterFolders(keep), true, "inside"},
		{file.Lines(dir + "/d/l*/f").FilterFolders(keep), false, ""},
		{file.Lines(dir + "/d").Recursive(), true, "beside"},
		{file.Lines(dir + "/d/**/f"), true, ""},
	} {
		wanted = c.wanted
		got, err := filetest.Collect(c.src, 1, 16)
		if strings.Join(got, " ") != c.want || (err != nil) != (c.want == "") {
			t.Errorf("got %q, %v, want %q", got, err, c.want)
		}
	}
}

// A reader that goes on behind the end of what is left of a file tells so.
func TestFileThatHasBecomeShorterIsAnError(t *testing.T) {
	plain := func(lines int) string {
		text, _ := numbered(lines)
		return text
	}
	pack := func(lines int) string {
		var packed strings.Builder
		w := gzip.NewWriter(&packed)
		_, _ = w.Write([]byte(plain(lines)))
		_ = w.Close()
		return packed.String()
	}
	for name, content := range map[string]func(lines int) string{"f.txt": plain, "f.gz": pack} {
		m := disk(t, map[string]string{name: content(60)})
		src := file.Lines(name).On(m)
		d, err := filetest.Start(src, 1, 3, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if _, err := d.Step(); err != nil {
				t.Fatal(err)
			}
		}
		state, err := d.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		put(t, m, name, content(1))
		if d, err = filetest.Start(src, 1, 3, state); err == nil {
			err = d.Run()
		}
		if err == nil || !strings.Contains(err.Error(), "of "+name+": the file has become shorter") {
			t.Errorf("got %v", err)
		}
	}
}
