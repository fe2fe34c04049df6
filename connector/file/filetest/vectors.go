package filetest

import (
	"encoding/json"
	"os"
	"testing"
)

// Vectors are the conformance vectors of one kind about files of lines and rows, decoded into V, which takes the fields
// that it knows. It is called by the packages two folders below the top.
func Vectors[V any](t testing.TB, kind string) []V {
	t.Helper()
	data, err := os.ReadFile("../../conformance/testdata/batch/csv.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Cases []json.RawMessage }
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	var cases []V
	for _, raw := range all.Cases {
		var head struct{ Kind string }
		if err := json.Unmarshal(raw, &head); err != nil {
			t.Fatal(err)
		}
		if head.Kind != kind {
			continue
		}
		var v V
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, v)
	}
	if len(cases) == 0 {
		t.Fatalf("no vector of kind %s", kind)
	}
	return cases
}
