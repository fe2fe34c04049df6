package blob

import (
	"net/url"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
)

func TestMemoryBucketsLiveWithTheirOpener(t *testing.T) {
	o := NewOpener()
	open := func(text string) (vfs.FS, string) {
		t.Helper()
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		f, dir, err := o.Open(t.Context(), u)
		if err != nil {
			t.Fatal(err)
		}
		return f, dir
	}
	f, dir := open("mem://bucket/a/b/")
	if dir != "/a/b" {
		t.Errorf("folder %q", dir)
	}
	if err := vfs.WriteFile(f, dir+"/c", []byte("text")); err != nil {
		t.Fatal(err)
	}
	for where, want := range map[string]bool{"mem://bucket/a": true, "mem://other/a": false, "mem:/a": false} {
		f, dir := open(where)
		if _, err := f.Stat(dir + "/b/c"); (err == nil) != want {
			t.Errorf("%s: %v", where, err)
		}
	}
	if _, dir := open("mem:"); dir != "/" {
		t.Errorf("folder of nothing is %q", dir)
	}
	if _, dir := open("mem:a/b"); dir != "/a/b" {
		t.Errorf("folder without slashes is %q", dir)
	}
	if _, _, err := o.Open(t.Context(), &url.URL{Scheme: "mem", RawQuery: "x=y"}); err == nil {
		t.Error("options of memory were accepted")
	}
}
