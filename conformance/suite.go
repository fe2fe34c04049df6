// Package conformance runs the vectors in testdata, facts about Flink's behaviour, against this repository. It owns how
// vectors are read (strictly: an unknown field fails), cut into runs in several ways, counted and compared with the table
// of what passes, coverage.txt, which may only rise. The families' runners are the tests of the folders below.
//
// FLOTT_CONFORMANCE names another folder of vectors of the same layout; the table is not compared then.
// FLOTT_SEED is the first seed of random cuts, FLOTT_SOAK how many times as many there are.
package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Case is one vector.
type Case struct {
	ID   string
	Kind string // its kind, op or operator
	Raw  json.RawMessage
}

// Decode reads the case into v; an unknown field fails the test.
func (c Case) Decode(t testing.TB, v any) {
	t.Helper()
	Strict(t, c.Raw, v)
}

// Strict decodes JSON and fails the test on an unknown field.
func Strict(t testing.TB, raw []byte, v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%v in %.300s", err, raw)
	}
}

// Rule is the text of a prose rule.
type Rule struct {
	Given string `json:"given"`
	When  string `json:"when"`
	Then  string `json:"then"`
}

// Head has the fields that every case may have.
type Head struct {
	ID     string `json:"id"`
	Source string `json:"source"`
	Note   string `json:"note"`
}

// Runner runs one case.
type Runner func(t *testing.T, c Case)

// Suite is how the cases of one family are run.
type Suite struct {
	Folder, Family string
	// Runners are the runners by kind. A case of another kind fails.
	Runners map[string]Runner
	// Rules are the hand-written tests of prose rules, by id.
	Rules map[string]func(t *testing.T)
	// Absent says why a case can't be run; "" if it can. It may be nil.
	Absent func(t *testing.T, c Case) string
	// Rewrite writes what was found into the coverage table.
	Rewrite bool
}

// Tally counts the cases of a family: those that were run, those of them that passed, prose rules, and those of them that
// a hand-written test covers.
type Tally struct{ Cases, Run, Passed, Rules, Covered int }

// String is the line that a family prints.
func (n Tally) String() string {
	return fmt.Sprintf("cases %d, run %d, passed %d, rules %d (%d covered by tests)", n.Cases, n.Run, n.Passed, n.Rules, n.Covered)
}

// Run runs every case of the family as a subtest, prints the tally and compares it with the coverage table.
func (s *Suite) Run(t *testing.T) {
	t.Helper()
	cases, foreign := Load(t, s.Folder, s.Family)
	var n Tally
	for _, c := range cases {
		n.Cases++
		s.one(t, c, foreign, &n)
	}
	fmt.Printf("%s: %v\n", s.Family, n)
	if !foreign {
		CheckCoverage(t, s.Family, n, s.Rewrite)
	}
}

func (s *Suite) one(t *testing.T, c Case, foreign bool, n *Tally) {
	t.Helper()
	if c.Kind == "rule" {
		n.Rules++
		test := s.Rules[c.ID]
		switch {
		case test != nil && t.Run(c.ID, test):
			n.Covered++
		case test == nil && !foreign:
			t.Logf("%s: no test covers this rule", c.ID)
		}
		return
	}
	run := s.Runners[c.Kind]
	if run == nil {
		t.Errorf("%s: kind %q is unknown", c.ID, c.Kind)
		return
	}
	if s.Absent != nil {
		if why := s.Absent(t, c); why != "" {
			t.Logf("%s: not run: %s", c.ID, why)
			return
		}
	}
	n.Run++
	if t.Run(c.ID, func(t *testing.T) { run(t, c) }) {
		n.Passed++
	}
}

// Load reads a family. foreign is true if the cases come from another folder than the committed one.
func Load(t testing.TB, folder, family string) (cases []Case, foreign bool) {
	t.Helper()
	raw, foreign := read(t, folder, family+".json")
	var file struct {
		Family string            `json:"family"`
		Cases  []json.RawMessage `json:"cases"`
	}
	Strict(t, raw, &file)
	if file.Family != family || len(file.Cases) == 0 {
		t.Fatalf("%s.json holds %d cases of family %q", family, len(file.Cases), file.Family)
	}
	for _, raw := range file.Cases {
		var head struct {
			ID, Kind, Op string
			Operator     any // the operator itself in some families, a part of the case in others
		}
		if err := json.Unmarshal(raw, &head); err != nil {
			t.Fatal(err)
		}
		c := Case{ID: head.ID, Kind: head.Kind, Raw: raw}
		if c.Kind == "" {
			c.Kind = head.Op
		}
		if c.Kind == "" {
			c.Kind, _ = head.Operator.(string)
		}
		cases = append(cases, c)
	}
	return cases, foreign
}

func read(t testing.TB, folder, file string) (raw []byte, foreign bool) {
	t.Helper()
	root := os.Getenv("FLOTT_CONFORMANCE")
	foreign = root != ""
	if !foreign {
		root = filepath.Join("..", "testdata")
	} else if _, err := os.Stat(root); err != nil && !filepath.IsAbs(root) {
		root = filepath.Join("..", "..", root) // it was meant from the top of the repository, tests run in their folders
	}
	raw, err := os.ReadFile(filepath.Join(root, folder, file))
	if errors.Is(err, os.ErrNotExist) && foreign {
		raw, err = os.ReadFile(filepath.Join(root, file))
	}
	if err != nil {
		t.Fatal(err)
	}
	return raw, foreign
}
