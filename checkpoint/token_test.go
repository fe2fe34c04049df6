package checkpoint

import (
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
)

func TestFrozenProcessRemovesNothingOfItsSuccessor(t *testing.T) {
	fs := vfs.NewMem()
	j := newJob(t, fs)
	begin := func(s *Storage, token string) *Manifest {
		m := &Manifest{ID: 1}
		folder, err := s.Begin(1)
		if err == nil {
			m.Folder = folder
			err = j.write(&Writer{FS: fs, Folder: folder, InlineBytes: -1, Token: token}, m)
		}
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	frozen := openStorage(t, fs)
	theirs := begin(frozen, "one")

	next := openStorage(t, fs)
	if err := next.Sweep(); err != nil {
		t.Fatal(err)
	}
	ours := begin(next, "two")
	if a, b := len(theirs.Files()), len(ours.Files()); a == 0 || a != b {
		t.Fatalf("%d and %d files", a, b)
	}
	if err := frozen.Remove("", theirs.Files()); err != nil {
		t.Fatal(err)
	}
	if _, err := next.Complete(ours); err != nil {
		t.Fatal(err)
	}
	if err := ours.Verify(fs); err != nil {
		t.Error(err)
	}
	for _, file := range ours.Files() {
		if !strings.Contains(file, "-two-") {
			t.Errorf("file %s does not say who wrote it", file)
		}
	}
}

func TestTokenIsLettersAndDigits(t *testing.T) {
	for token, ok := range map[string]bool{"": true, "0aZ9": true, "a-b": false, "../a": false, "ä": false, " ": false} {
		_, w := folder(t)
		w.Token = token
		_, err := w.Write(t.Context(), op(1), 0, 0, 3, &State{Lists: []List{{Name: "l", Items: [][]byte{{1}}}}})
		if (err == nil) != ok {
			t.Errorf("token %q: %v", token, err)
		}
		if err != nil && !strings.Contains(err.Error(), "token") {
			t.Errorf("token %q: %v", token, err)
		}
	}
}
