package filesink

import (
	"bytes"
	"encoding/hex"
	"os"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/serde"
)

// goldens are the examples of docs/formats/file-sink.md.
func goldens() (state, Committable) {
	s := state{
		next: 300, buckets: []string{"a", "a/b"},
		parts: []openPart{{"a", ".part-0-7.inprogress.id1", "part-0-7", 1000, -1, 60000, 20, ""}},
		groups: []group{{bucket: "a/b", head: 5, age: 3, pieces: []piece{
			{temp: ".part-0-3.inprogress.id1", size: 100}, {temp: ".part-0-5.inprogress.id1", size: 150},
		}}},
		scratch: []place{{"a", ".part-0-9.inprogress.id1"}},
	}
	return s, Committable{Bucket: "a/b", Temp: ".part-0-8.inprogress.id1", Name: "part-0-8", Size: 200}
}

func TestFormatsAreThoseOfTheDocuments(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats/file-sink.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := strings.Join(strings.Fields(string(page)), " ")
	s, c := goldens()
	commit, err := c.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for what, b := range map[string][]byte{"state": s.append(nil), "committable": commit} {
		if text := hex.EncodeToString(b); !strings.Contains(strings.ReplaceAll(doc, " ", ""), text) {
			t.Errorf("the page has no such %s: %s", what, text)
		}
	}
	back, err := readState(s.append(nil))
	if err != nil || !reflect.DeepEqual(*back, s) {
		t.Errorf("read back: %+v, %v", back, err)
	}
	var read Committable
	if err := read.UnmarshalBinary(commit); err != nil || read != c {
		t.Errorf("read back: %+v, %v", read, err)
	}
}

// old is the example of version 1.
const old = "01ac02010161182e706172742d302d372e696e70726f67726573732e69643108706172742d302d37e80701c0a90702016103612f62"

func TestStatesOfVersion1AreRead(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats/file-sink.md")
	if err != nil || !strings.Contains(strings.Join(strings.Fields(string(page)), ""), old) {
		t.Errorf("the page has no such state, %v", err)
	}
	b, err := hex.DecodeString(old)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := goldens()
	want.parts[0].elements, want.groups, want.scratch = 0, nil, nil
	if s, err := readState(b); err != nil || !reflect.DeepEqual(*s, want) {
		t.Errorf("read as %+v, %v", s, err)
	}
	for n := range b {
		if _, err := readState(b[:n]); err == nil {
			t.Errorf("%d bytes are read", n)
		}
	}
	if _, err := readState(append(b, 0, 0)); err == nil {
		t.Error("it has no groups")
	}
}

func TestCommittablesTravel(t *testing.T) {
	h, err := serde.Of[Committable]()
	if err != nil {
		t.Fatal(err)
	}
	_, c := goldens()
	c.fresh = true
	b, err := h.Append(nil, unsafe.Pointer(&c))
	if err != nil {
		t.Fatal(err)
	}
	var read Committable
	if _, err := h.Read(b, unsafe.Pointer(&read)); err != nil || read.Temp != c.Temp || read.fresh {
		t.Errorf("read back: %+v, %v", read, err)
	}
}

func TestBytesThatAreNoStateAreRefused(t *testing.T) {
	s, c := goldens()
	whole := s.append(nil)
	for n := range whole {
		if _, err := readState(whole[:n]); err == nil {
			t.Errorf("%d bytes of a state are read", n)
		}
	}
	commit, _ := c.MarshalBinary()
	for n := range commit {
		if err := c.UnmarshalBinary(commit[:n]); err == nil {
			t.Errorf("%d bytes of a committable are read", n)
		}
	}
	kind, empty := s, s
	kind.groups = []group{{bucket: "a", pieces: []piece{{temp: "x"}}}}
	kind.scratch = nil
	odd := kind.append(nil)
	odd[bytes.LastIndex(odd, []byte("\x01a"))+2] = 2
	if _, err := readState(odd); err == nil || !strings.Contains(err.Error(), "kind 2") {
		t.Errorf("a group of a kind that is not known: %v", err)
	}
	empty.groups = []group{{bucket: "a"}}
	if _, err := readState(empty.append(nil)); err == nil || !strings.Contains(err.Error(), "without files") {
		t.Errorf("a group of nothing: %v", err)
	}
	for _, b := range [][]byte{append([]byte{3}, whole[1:]...), append([]byte{0}, whole[1:]...), append(bytes.Clone(whole), 0)} {
		if _, err := readState(b); err == nil {
			t.Errorf("%x is read", b)
		}
	}
}

func FuzzState(f *testing.F) {
	s, c := goldens()
	f.Add(s.append(nil))
	commit, _ := c.MarshalBinary()
	f.Add(commit)
	if b, err := hex.DecodeString(old); err == nil {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := readState(b); err == nil {
			again, err := readState(s.append(nil))
			if err != nil || !reflect.DeepEqual(s, again) {
				t.Errorf("%+v is read back as %+v, %v", s, again, err)
			}
		}
		var c, again Committable
		if c.UnmarshalBinary(b) == nil {
			out, _ := c.MarshalBinary()
			if err := again.UnmarshalBinary(out); err != nil || c != again {
				t.Errorf("%+v is read back as %+v, %v", c, again, err)
			}
		}
	})
}

func FuzzNames(f *testing.F) {
	f.Add("part", 3, int64(17), ".csv")
	f.Add("part-0", 0, int64(0), "")
	f.Fuzz(func(t *testing.T, prefix string, subtask int, count int64, suffix string) {
		s := settings{dir: "d", prefix: prefix, suffix: suffix, bucketing: noBuckets}
		if _, err := s.check(); err != nil || subtask < 0 || subtask > 1<<31-1 || count < 0 {
			return
		}
		name := s.partName(subtask, count)
		if p, ok := s.parse(name); !ok || p != (parsed{subtask, count, s.ending(), ""}) {
			t.Errorf("%q is read as %+v, %v", name, p, ok)
		}
		if p, ok := s.parse(tempName(name, "x")); !ok || p != (parsed{subtask, count, s.ending(), "x"}) {
			t.Errorf("%q is read as %+v, %v", tempName(name, "x"), p, ok)
		}
	})
}

func TestNamesOfOthersAreNotRead(t *testing.T) {
	s := settings{prefix: "part"}
	for _, name := range []string{
		"part", "part-", "part-0", "part-0-", "part-x-0", "part-0-x", "other-0-0", ".part-0-0", ".part-0-0.inprogress.", "part-99999999999-0",
		"part-0-99999999999999999999", "part--1-0", "_part-0-0", "",
	} {
		if p, ok := s.parse(name); ok {
			t.Errorf("%q is read as %+v", name, p)
		}
	}
}
