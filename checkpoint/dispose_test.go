package checkpoint

import (
	"encoding/binary"
	"hash/crc32"
	"path"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
)

func TestDisposeRemovesSavepoints(t *testing.T) {
	mem := vfs.NewMem()
	written(t, someDraft(t, 10_000), mem, "/sp/one")
	written(t, someDraft(t, 10_000), mem, "/sp/two")
	if err := vfs.WriteFile(mem, "/sp/two/notes.txt", []byte("mine")); err != nil {
		t.Fatal(err)
	}
	for _, location := range []string{"/sp/one/" + ManifestName, "/sp/two"} {
		if err := Dispose(mem, location); err != nil {
			t.Error(err)
		}
	}
	if _, err := mem.Stat("/sp/one"); err == nil {
		t.Error("the folder is still there")
	}
	left, err := mem.ReadDir("/sp/two")
	if err != nil || len(left) != 1 {
		t.Errorf("%d files are left where one is none of the savepoint's; %v", len(left), err)
	}
}

func TestDisposeRemovesNothingElse(t *testing.T) {
	j := newLayeredJob(t, 2)
	if err := vfs.WriteFile(j.fs, "/x.chunk", []byte("x")); err != nil {
		t.Fatal(err)
	}
	var all []*Manifest
	for id := range int64(6) {
		j.change()
		all = append(all, j.checkpoint(id))
	}
	sharing := all[5]
	if _, others := sharing.Operators[0].Parts[0].Files(sharing.Folder); len(others) == 0 {
		t.Fatal("the checkpoint names no files of others: the test tests nothing")
	}
	b, err := sharing.Encode()
	if err != nil {
		t.Fatal(err)
	}
	b[manifestHeader+3] = byte(Savepoint) // behind two versions and the number, which are small
	copy(b[len(b)-manifestEnd:], binary.LittleEndian.AppendUint32(nil, crc32.Checksum(b[:len(b)-manifestEnd], crc32.MakeTable(crc32.Castagnoli))))
	if err := vfs.WriteFile(j.fs, path.Join(sharing.Folder, ManifestName), b); err != nil {
		t.Fatal(err)
	}
	broken := all[3].Folder
	if err := vfs.WriteFile(j.fs, path.Join(broken, ManifestName), []byte("FLTM")); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]string{
		"/":            "no snapshot was completed there",
		"/nowhere":     "no snapshot was completed there",
		all[4].Folder:  "it is a checkpoint of job",
		broken:         "remove the folder by other means",
		sharing.Folder: "all files of a savepoint must lie in its folder",
	} {
		err := Dispose(j.fs, folder)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "dispose of savepoint "+folder) {
			t.Errorf("%s: got %v, want %q", folder, err, want)
		}
	}
	if err := sharing.Verify(j.fs); err != nil {
		t.Error(err)
	}
	if _, err := j.fs.Stat("/x.chunk"); err != nil {
		t.Error(err)
	}
}
