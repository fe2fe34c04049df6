package main

import (
	"bytes"
	"context"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/storage/blob"
)

func TestLocations(t *testing.T) {
	checkLocations(t, &app{fs: vfs.OS{}, storages: []checkpoint.Opener{blob.NewOpener()}}, []locationCase{
		{"a/b", "a/b", ""},
		{"/a", "/a", ""},
		{"a:b", "a:b", ""},
		{"file:///a%20b", "/a b", ""},
		{"file:/a", "/a", ""},
		{"file://localhost/a", "/a", ""},
		{"file://host/a", "", "names no file of this machine"},
		{"file:a", "", "names no file of this machine"},
		{"file:///%zz", "", "read the URL"},
		{"mem://b/c%zz", "", "read the URL"},
		{"MEM://bucket/c/../d/", "mem://bucket/d", ""},
		{"mem://bucket/c?x=y", "", "have no options"},
		{"ftp://b/c", "", `storage "ftp" is not part of this program, which reads paths and the URLs of file, mem: copy`},
		{"", "", "an empty path"},
	})
}

// locationCase is what a user names, and what it is, or the error.
type locationCase struct{ arg, want, err string }

func checkLocations(t *testing.T, a *app, cases []locationCase) {
	t.Helper()
	for _, c := range cases {
		got := ""
		at, err := a.locate(c.arg)
		if err == nil {
			got = at.name(at.path)
		}
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %q, %v", c.arg, got, err)
		}
	}
}

// upload copies a folder into a bucket.
func upload(t *testing.T, to checkpoint.Opener, root string) {
	t.Helper()
	f, _, err := to.Open(context.Background(), &url.URL{Scheme: "mem", Host: "bucket"})
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return vfs.WriteFile(f, "/"+filepath.ToSlash(name), b)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What lies in an object store is shown as what lies on the machine, under its URL.
func TestSnapshotsInObjectStores(t *testing.T) {
	t.Chdir(t.TempDir())
	takeAll(t, false)
	bucket := blob.NewOpener()
	upload(t, bucket, "savepoints")
	upload(t, bucket, "checkpoints")
	run := func(args ...string) (stdout, stderr string, code int) {
		var out, errs bytes.Buffer
		a := &app{stdout: &out, stderr: &errs, fs: vfs.OS{}, storages: []checkpoint.Opener{bucket}}
		code = a.run(args)
		return out.String(), errs.String(), code
	}
	const at = "mem://bucket/"
	for _, args := range [][]string{
		{"inspect", "savepoints/savepoint-001122-7"},
		{"inspect", "checkpoints/job/chk-12/_metadata", "-json"},
		{"dump", "savepoints/savepoint-001122-7", "-operator", "alarm"},
		{"verify", "checkpoints/job/chk-3"},
	} {
		here := append([]string{"savepoint"}, args...)
		want, _, _ := call(here...)
		there := append([]string{"savepoint", args[0], at + args[1]}, args[2:]...)
		got, stderr, code := run(there...)
		if code != exitOK || stderr != "" || strings.ReplaceAll(got, at, "") != want || args[0] != "dump" && !strings.Contains(got, at) {
			t.Errorf("flott %q: exit %d, %s\n%s\nwant\n%s", there, code, stderr, got, want)
		}
	}
	if out, stderr, code := run("savepoint", "list", at); code != exitOK || strings.Count(out, " "+at) != 4 || strings.Count(out, "complete") != 4 {
		t.Errorf("list: exit %d, %s%s", code, out, stderr)
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"no snapshot was completed there", []string{"savepoint", "inspect", at + "nowhere"}},
		{"there is no operator", []string{"savepoint", "dump", at + "checkpoints/job/chk-3", "-operator", "x"}},
		{"it is a checkpoint of job", []string{"savepoint", "dispose", at + "checkpoints/job/chk-3"}},
	} {
		if out, stderr, code := run(c.args...); code != exitFailed || !strings.Contains(stderr, c.want) || !strings.Contains(stderr, at) {
			t.Errorf("flott %q: exit %d, %s%s", c.args, code, out, stderr)
		}
	}
	if out, stderr, code := run("savepoint", "-d", at+"savepoints/savepoint-001122-7"); code != exitOK || !strings.Contains(out, "disposed.") {
		t.Errorf("dispose: exit %d, %s%s", code, out, stderr)
	}
	if out, _, _ := run("savepoint", "list", at+"savepoints"); strings.Count(out, "complete") != 1 {
		t.Error(out)
	}
}

// Nothing is begun, and nothing said, before it is known where a savepoint lies; no job is asked that nobody has named.
func TestDisposeOfWhatNobodyCanReach(t *testing.T) {
	for args, want := range map[string]string{
		"savepoint dispose nowhere":      "no snapshot was completed there",
		"savepoint -d nowhere":           "no snapshot was completed there",
		"savepoint dispose ftp://host/x": `storage "ftp" is not part of this program`,
		"savepoint -d ftp://host/x":      `storage "ftp" is not part of this program`,
		"savepoint dispose file:x":       "names no file of this machine",
		"savepoint -d jobmanager://s/x":  "lies in the memory of a job's process",
	} {
		out, stderr, code := call(strings.Fields(args)...)
		if code != exitFailed || out != "" || !strings.Contains(stderr, want) {
			t.Errorf("flott %s: exit %d, %q, %s", args, code, out, stderr)
		}
	}
}
