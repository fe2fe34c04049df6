package env

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/vfs"
)

// bucket opens URLs of the scheme "bk".
type bucket struct {
	mem    *vfs.Mem
	opened []string
}

func (*bucket) Schemes() []string { return []string{"bk"} }

func (b *bucket) Open(_ context.Context, u *url.URL) (vfs.FS, string, error) {
	b.opened = append(b.opened, u.String())
	if u.Host == "closed" {
		return nil, "", errors.New("no access")
	}
	return b.mem, path.Join("/", u.Host, u.Path), nil
}

func TestURLsHaveNamesAndNamesURLs(t *testing.T) {
	p := &places{disk: vfs.NewMem(), openers: []checkpoint.Opener{&bucket{mem: vfs.NewMem()}}}
	for location, want := range map[string][2]string{
		"/a/b/":                     {"/a/b", "/a/b"},
		"file:///a/b":               {"/a/b", "/a/b"},
		"file:/a/b":                 {"/a/b", "/a/b"},
		"file://localhost/a":        {"/a", "/a"},
		"bk://host/x/y/":            {"bk:/host/x/y", "bk://host/x/y"},
		"BK://host":                 {"bk:/host", "bk://host"},
		"bk:///x/y":                 {"bk:/~/x/y", "bk:///x/y"},
		"bk:/x":                     {"bk:/~/x", "bk:///x"},
		"bk://u@h:8020/x y":         {"bk:/u@h:8020/x y", "bk://u@h:8020/x%20y"},
		"bk://h/x?e=http://q/r&s=1": {"bk:/h%3Fe=http:%2F%2Fq%2Fr&s=1/x", "bk://h/x?e=http://q/r&s=1"},
	} {
		name, err := p.name(t.Context(), location)
		if err != nil || name != want[0] || locationOf(name) != want[1] {
			t.Errorf("%s: %q, %q, %v; want %q", location, name, locationOf(name), err, want)
		}
		if again := locationOf(locationOf(name)); again != want[1] {
			t.Errorf("%s twice: %s", location, again)
		}
	}
	if name, err := p.name(t.Context(), "a:b/c"); err != nil || !strings.HasSuffix(name, "/a:b/c") {
		t.Error("a name with a colon is no URL: ", name, err)
	}
}

func TestURLsThatNobodyOpensSayWhatToLink(t *testing.T) {
	p := &places{disk: vfs.NewMem(), openers: []checkpoint.Opener{&bucket{mem: vfs.NewMem()}}}
	for location, want := range map[string]string{
		"s3://bucket/x":  "import github.com/flott-dev/flott/storage/s3 and write stream.NewEnv(stream.WithStorage(s3.Opener{}))",
		"wasbs://c@a/x":  "storage/azure",
		"ftp://x":        "stream.WithStorage(opener)",
		"bk://closed/x":  "open the folder bk://closed/x: no access",
		"file://other/a": "on this machine",
		"bk://h/%zz":     "bk://h/%zz",
	} {
		if _, err := p.name(t.Context(), location); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", location, err, want)
		}
	}
}

func TestFilesOfURLsLieInTheirStorage(t *testing.T) {
	b := &bucket{mem: vfs.NewMem()}
	p := &places{disk: vfs.NewMem(), openers: []checkpoint.Opener{b}}
	name, err := p.name(t.Context(), "bk://host/x")
	if err != nil {
		t.Fatal(err)
	}
	storage, err := checkpoint.OpenStorage(p, path.Join(name, "job"))
	if err != nil {
		t.Fatal(err)
	}
	folder, err := storage.Begin(1)
	if err != nil || folder != "bk:/host/x/job/chk-1" {
		t.Fatal(folder, err)
	}
	if err := vfs.WriteFile(p, folder+"/f", []byte("1")); err != nil {
		t.Fatal(err)
	}
	if got, err := vfs.ReadFile(b.mem, "/host/x/job/chk-1/f"); err != nil || string(got) != "1" {
		t.Error(got, err)
	}
	if err := p.Rename(folder+"/f", folder+"/g"); err != nil {
		t.Error(err)
	}
	if err := p.Rename(folder+"/g", "/g"); err == nil {
		t.Error("a file moves between storages")
	}
	if err := b.mem.MkdirAll("/host/y"); err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteFile(b.mem, "/host/y/h", []byte("2")); err != nil {
		t.Fatal(err)
	}
	if got, err := vfs.ReadFile(p, "bk:/host/x/../y/h"); err != nil || string(got) != "2" {
		t.Error("a file beside the folder:", got, err)
	}
	if _, err := p.Open("bk:/host/y/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if len(b.opened) != 2 {
		t.Errorf("opened %q: once for each folder, and once for all that is beside", b.opened)
	}
	for range 2 {
		if _, err := p.name(t.Context(), "bk://host/x"); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.opened) != 2 {
		t.Errorf("opened again: %q", b.opened)
	}
}

func TestMemoryTakesSoMuchOfEachSubtask(t *testing.T) {
	m := limited{NewMemoryStorage(), 10}
	p := &places{disk: vfs.NewMem(), openers: []checkpoint.Opener{m}}
	dir, err := p.name(t.Context(), "jobmanager://checkpoints/1")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	write := func(name string, n int) error { return vfs.WriteFile(p, dir+"/"+name, make([]byte, n)) }
	for _, name := range []string{"aa-0-0.chunk", "aa-1-0.chunk", "bb-0-0.chunk"} {
		if err := write(name, 6); err != nil {
			t.Error(name, err)
		}
	}
	if err := write("_metadata", 100); err != nil {
		t.Error("the manifest:", err)
	}
	err = write("aa-0-1.chunk", 5)
	var large *StateTooLargeError
	if !errors.As(err, &large) || *large != (StateTooLargeError{11, 10}) {
		t.Errorf("error %v", err)
	}
	if err := p.Remove(dir + "/aa-0-1.chunk"); err != nil {
		t.Fatal(err)
	}
	if err := write("aa-0-1.chunk", 10); err != nil {
		t.Error("after it was given up:", err)
	}
}
