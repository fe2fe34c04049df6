package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
)

// small is a snapshot with few bytes and several chunk files.
func small(t *testing.T) (*vfs.Mem, *job, *Manifest) {
	t.Helper()
	fs := vfs.NewMem()
	j := newJob(t, fs)
	j.keys, j.groups = 12, 4
	s := openStorage(t, fs)
	folder, err := s.Begin(1)
	if err != nil {
		t.Fatal(err)
	}
	m := &Manifest{ID: 1}
	if err := j.write(&Writer{FS: fs, Folder: folder, ChunkBytes: 300, InlineBytes: 250}, m); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Complete(m); err != nil {
		t.Fatal(err)
	}
	return fs, j, m
}

// readAll reads all that a snapshot holds.
func readAll(fs vfs.FS, location string) (string, error) {
	m, err := Load(fs, location)
	if err != nil {
		return "", err
	}
	r, lists, err := m.Read(fs, op(1))
	if err != nil {
		return "", err
	}
	text := fmt.Sprint(lists)
	for _, name := range r.Tables() {
		t, _ := r.Table(name)
		rows, err := dumpRows(t.Rows)
		if err != nil {
			return "", err
		}
		text += name + "\n" + rows
	}
	return text, nil
}

func TestAnyChangedByteIsFoundOut(t *testing.T) {
	fs, _, m := small(t)
	want, err := readAll(fs, m.Folder)
	if err != nil {
		t.Fatal(err)
	}
	files := append(m.Files(), path.Join(m.Folder, ManifestName))
	if len(files) < 4 {
		t.Fatalf("files %q", files)
	}
	for _, file := range files {
		whole, err := vfs.ReadFile(fs, file)
		if err != nil {
			t.Fatal(err)
		}
		for i := range whole {
			for _, flip := range []byte{0x01, 0x80, 0xff} {
				b := append([]byte(nil), whole...)
				b[i] ^= flip
				refused(t, fs, m, file, fmt.Sprintf("byte %d changed by %#x", i, flip), b, want)
			}
		}
		for n := range len(whole) {
			refused(t, fs, m, file, fmt.Sprintf("cut to %d bytes", n), whole[:n], want)
		}
		refused(t, fs, m, file, "a byte more", append(whole[:len(whole):len(whole)], 0), want)
		if err := fs.Remove(file); err != nil {
			t.Fatal(err)
		}
		if _, err := readAll(fs, m.Folder); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s lost: %v", file, err)
		}
		if err := vfs.WriteFile(fs, file, whole); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := readAll(fs, m.Folder); err != nil || got != want {
		t.Errorf("repaired: %v, %s", err, got)
	}
}

// refused puts other bytes into a file and expects an error that names it.
func refused(t *testing.T, fs *vfs.Mem, m *Manifest, file, what string, b []byte, want string) {
	t.Helper()
	if err := vfs.WriteFile(fs, file, b); err != nil {
		t.Fatal(err)
	}
	got, err := readAll(fs, m.Folder)
	damaged, isDamaged := errors.AsType[*DamagedError](err)
	newer, isNewer := errors.AsType[*VersionError](err)
	switch {
	case isDamaged && damaged.File == file, isNewer && newer.File == file:
	case err == nil && got == want && path.Base(file) != ManifestName:
		// Of the copies of a broadcast list one is read.
	default:
		t.Errorf("%s, %s: %v", file, what, err)
	}
	if path.Base(file) == ManifestName {
		return
	}
	if err := m.Verify(fs); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("%s, %s, verified: %v", file, what, err)
	}
}

func TestAnotherChunkIsNotTakenForTheRightOne(t *testing.T) {
	fs, _, m := small(t)
	files := m.Files()
	a, _ := vfs.ReadFile(fs, files[0])
	b, _ := vfs.ReadFile(fs, files[1])
	if err := errors.Join(vfs.WriteFile(fs, files[0], b), vfs.WriteFile(fs, files[1], a)); err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(fs, m.Folder); err == nil || !strings.Contains(err.Error(), files[0]) {
		t.Errorf("swapped chunks: %v", err)
	}
	err := m.Verify(fs)
	for _, f := range files[:2] {
		if err == nil || !strings.Contains(err.Error(), f+" is damaged") {
			t.Errorf("swapped chunks: %v", err)
		}
	}
}

func TestSwappedBlocksAreFoundOut(t *testing.T) {
	fs := vfs.NewMem()
	if err := BeginSnapshot(fs, "/s"); err != nil {
		t.Fatal(err)
	}
	w := &Writer{FS: fs, Folder: "/s", InlineBytes: -1}
	p, err := w.Write(t.Context(), op(1), 0, 0, 15, &State{Lists: []List{
		{Name: "l", Items: [][]byte{make([]byte, blockTarget), append([]byte{1}, make([]byte, blockTarget-1)...)}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	m := one("/s", p, 16)
	file := m.Files()[0]
	b, _ := vfs.ReadFile(fs, file)
	n := (len(b) - chunkHeader - digestBytes) / 2
	first := append([]byte(nil), b[chunkHeader:chunkHeader+n]...)
	copy(b[chunkHeader:], b[chunkHeader+n:chunkHeader+2*n])
	copy(b[chunkHeader+n:], first)
	if err := vfs.WriteFile(fs, file, b); err != nil {
		t.Fatal(err)
	}
	if err := m.Verify(fs); err == nil || !strings.Contains(err.Error(), "the digest of its blocks is") {
		t.Errorf("got %v", err)
	}
}

func TestUnknownVersionsAreRefusedInClearText(t *testing.T) {
	fs, _, m := small(t)
	manifest := path.Join(m.Folder, ManifestName)
	whole, _ := vfs.ReadFile(fs, manifest)
	b := append([]byte(nil), whole...)
	binary.LittleEndian.PutUint32(b[4:], 3)
	if err := vfs.WriteFile(fs, manifest, b); err != nil {
		t.Fatal(err)
	}
	want := "snapshot file " + manifest + " has version 3 of the manifest format and this program reads up to version 2"
	if _, err := Load(fs, m.Folder); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
	for at, format := range []string{"value", "key hash"} {
		b := append([]byte(nil), whole...)
		b[manifestHeader+at] = 9
		binary.LittleEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[:len(b)-4], crc32.MakeTable(crc32.Castagnoli)))
		want := "has version 9 of the " + format + " format"
		if _, err := Decode("f", b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := vfs.WriteFile(fs, manifest, whole); err != nil {
		t.Fatal(err)
	}
	chunk := m.Files()[0]
	b, _ = vfs.ReadFile(fs, chunk)
	binary.LittleEndian.PutUint32(b[4:], 7)
	if err := vfs.WriteFile(fs, chunk, b); err != nil {
		t.Fatal(err)
	}
	want = "snapshot file " + chunk + " has version 7 of the chunk format"
	if _, err := readAll(fs, m.Folder); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
	part := m.Operators[0].Parts[0].Encode()
	part[0] = 3
	if _, err := DecodePart(part); err == nil || !strings.Contains(err.Error(), "its version is 3 and this program reads version 2") {
		t.Errorf("got %v", err)
	}
}

func TestCutPartsAreRefused(t *testing.T) {
	_, _, m := small(t)
	for _, p := range m.Operators[0].Parts {
		b := p.Encode()
		for n := range len(b) {
			if _, err := DecodePart(b[:n]); err == nil {
				t.Errorf("cut to %d of %d bytes: no error", n, len(b))
			}
		}
		if _, err := DecodePart(append(b, 0)); err == nil || !strings.Contains(err.Error(), "1 bytes too many") {
			t.Errorf("a byte more: %v", err)
		}
	}
}

// A probe finds what the ends of a file tell, a byte in the middle only Verify.
func TestProbeFindsMissingCutAndForeignFiles(t *testing.T) {
	fs, _, m := small(t)
	if err := m.Probe(fs); err != nil {
		t.Fatal(err)
	}
	for _, file := range m.Files() {
		whole, err := vfs.ReadFile(fs, file)
		if err != nil {
			t.Fatal(err)
		}
		middle, end := len(whole)/2, len(whole)-1
		for _, c := range []struct {
			what  string
			b     []byte
			found bool
		}{
			{"as it was", whole, false},
			{"cut", whole[:middle], true},
			{"longer", append(whole[:len(whole):len(whole)], 0), true},
			{"empty", nil, true},
			{"no chunk", flipped(whole, 0), true},
			{"another chunk", flipped(whole, end), true},
			{"changed in the middle", flipped(whole, middle), false},
		} {
			if err := vfs.WriteFile(fs, file, c.b); err != nil {
				t.Fatal(err)
			}
			err := m.Probe(fs)
			if d, ok := errors.AsType[*DamagedError](err); ok != c.found || ok && d.File != file {
				t.Errorf("%s, %s: %v", file, c.what, err)
			}
			if err := m.Verify(fs); (err == nil) != (c.what == "as it was") {
				t.Errorf("%s, %s: verified: %v", file, c.what, err)
			}
		}
		if err := fs.Remove(file); err != nil {
			t.Fatal(err)
		}
		if err := m.Probe(fs); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s does not exist: %v", file, err)
		}
		if err := vfs.WriteFile(fs, file, whole); err != nil {
			t.Fatal(err)
		}
	}
}

// flipped is a copy with another byte.
func flipped(b []byte, at int) []byte {
	b = append([]byte(nil), b...)
	b[at] ^= 1
	return b
}
