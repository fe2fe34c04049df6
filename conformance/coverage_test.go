package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTableHasEveryFamily compares the table with the committed vectors: each family is in the table, with the
// number of cases that its file has.
func TestTableHasEveryFamily(t *testing.T) {
	table, err := ReadCoverage("coverage.txt")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join("testdata", "streaming", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files of vectors: %v", len(files), err)
	}
	for _, path := range files {
		family := strings.TrimSuffix(filepath.Base(path), ".json")
		n, ok := table[family]
		if !ok {
			t.Errorf("family %s is not in the table", family)
			continue
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var file struct{ Cases []json.RawMessage }
		if err := json.Unmarshal(raw, &file); err != nil {
			t.Fatal(err)
		}
		if n.Cases != len(file.Cases) || n.Run+n.Rules > n.Cases || n.Passed > n.Run || n.Covered > n.Rules {
			t.Errorf("family %s of %d cases has the row %v", family, len(file.Cases), n)
		}
		if n.Passed != n.Run {
			t.Errorf("family %s: the table takes %d failures for granted", family, n.Run-n.Passed)
		}
		delete(table, family)
	}
	for family := range table {
		t.Errorf("the table has family %s, the vectors have not", family)
	}
}

func TestTableIsReadAsItIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "coverage.txt")
	want := Coverage{"a": {Cases: 9, Run: 4, Passed: 3, Rules: 2, Covered: 1}, "b": {Cases: 1}}
	if err := want.Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := ReadCoverage(path)
	if err != nil || len(got) != 2 || got["a"] != want["a"] || got["b"] != want["b"] {
		t.Errorf("%v %v", got, err)
	}
}

func TestWaysCutEverythingOnce(t *testing.T) {
	for _, w := range Ways() {
		for n := range 40 {
			sum := 0
			for _, k := range w.Cut(n) {
				if k < 1 {
					t.Fatalf("%s: a run of %d", w.Name, k)
				}
				sum += k
			}
			if sum != n {
				t.Fatalf("%s: %d of %d elements", w.Name, sum, n)
			}
		}
	}
}

func TestEntriesDifferByValueTimestampAndKind(t *testing.T) {
	seen := map[string]string{}
	for _, raw := range []string{
		`{"record": 5}`, `{"record": "5"}`, `{"record": 5, "ts": 1}`, `{"record": [5]}`, `{"watermark": 5}`, `{"watermark": "max"}`,
		`{"status": "idle"}`, `{"status": "active"}`, `{"barrier": 5}`, `{"cancel_checkpoint": 5}`,
	} {
		var e Entry
		Strict(t, []byte(raw), &e)
		if other := seen[e.String()]; other != "" {
			t.Errorf("%s and %s are both %s", raw, other, e)
		}
		seen[e.String()] = raw
	}
	var none Entry
	Strict(t, []byte(`{"record": 5, "ts": "none"}`), &none)
	if none.String() != "5" {
		t.Errorf("a record without timestamp is %s", none)
	}
}
