package rest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the expected answers")

// TestEndpointsAnswerAsWritten runs the requests of testdata/endpoints.txt: "> METHOD PATH [BODY]", a line with the status and
// the type of the answer, and the answer. Vertices are named V0 and V1, the jobs RUNNING, FAILED and LOOP. Every answer fits
// its type in testdata/types.json, which is the part of the surface's description that is served.
func TestEndpointsAnswerAsWritten(t *testing.T) {
	const file = "testdata/endpoints.txt"
	script, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	types := loadTypes(t)
	names := strings.NewReplacer("RUNNING", runningID, "FAILED", failedID, "LOOP", loopID, "V0", r.vertexID(0), "V1", r.vertexID(1))
	var out strings.Builder
	requests := strings.Split(string(script), "\n> ")
	out.WriteString(requests[0])
	for _, q := range requests[1:] {
		line, rest, _ := strings.Cut(q, "\n")
		kind, _, _ := strings.Cut(rest, "\n")
		_, kind, _ = strings.Cut(kind, " ")
		method, target, _ := strings.Cut(line, " ")
		target, body, _ := strings.Cut(target, " ")
		path, query, _ := strings.Cut(target, "?")
		if query != "" {
			query = "?" + query
		}
		status, answer := r.call(method, "/v1"+names.Replace(path)+query, body)
		if status2, bare := r.call(method, names.Replace(path)+query, body); method == "GET" && !varies(kind) && (status2 != status || bare != answer) && !strings.Contains(answer, "/v1") {
			t.Errorf("%s: without /v1 it is %d %s", line, status2, bare)
		}
		fmt.Fprintf(&out, "\n> %s\n%d %s\n", line, status, kind)
		types.check(t, line, kind, answer)
		if !varies(kind) {
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, []byte(answer), "", " "); err != nil {
				t.Errorf("%s: %v", line, err)
			}
			out.WriteString(strings.TrimRight(pretty.String(), "\n"))
			out.WriteString("\n")
		}
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(out.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, got := strings.Split(string(script), "\n"), strings.Split(out.String(), "\n")
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			t.Fatalf("%s:%d differs (go test -rewrite rewrites it; look at the difference):\n%s", file, i+1, strings.Join(got[min(i, len(got)):min(i+3, len(got))], "\n"))
		}
	}
}

// varies says whether answers of a type tell of the machine.
func varies(kind string) bool { return strings.HasPrefix(kind, "TaskManager") }

// surface is the description of the answers' types.
type surface map[string]struct {
	Fields        map[string]json.RawMessage
	Is            json.RawMessage
	Extends       []string
	Discriminator string
	Variants      map[string]string
}

func loadTypes(t *testing.T) surface {
	t.Helper()
	b, err := os.ReadFile("testdata/types.json")
	if err != nil {
		t.Fatal(err)
	}
	var s surface
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// left are fields that our answers leave out: of other clusters or schedulers, or of kinds of answers.
func left(field string) bool {
	switch field {
	case "application-id", "stream-graph", "failure-cause", "failureCause", "location", "checkpointId", "value", "concurrentExceptions", "caching", "local_strategy",
		"other-concurrent-attempts", "inputs", "min", "max", "avg", "sum", "skew":
		return true
	}
	return false
}

// added are fields that newer clients don't read and older ones need, or ours.
func added(field string) bool {
	switch field {
	case "host", "root-exception", "timestamp", "all-exceptions", "truncated", "execution-mode", "backpressure-level", "feedback":
		return true
	}
	return false
}

// check compares an answer with its type: "{T}" is the operation of an asynchronous answer.
func (s surface) check(t *testing.T, what, kind, answer string) {
	t.Helper()
	var v any
	d := json.NewDecoder(strings.NewReader(answer))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	switch kind {
	case "empty":
		if o, ok := v.(map[string]any); !ok || len(o) != 0 {
			t.Errorf("%s: %s", what, answer)
		}
	default:
		if operation, async := strings.CutPrefix(kind, "async "); async {
			o, _ := v.(map[string]any)
			s.named(t, what+" status", "QueueStatus", o["status"])
			if o["operation"] != nil {
				s.named(t, what+" operation", operation, o["operation"])
			}
			return
		}
		if _, known := s[kind]; !known {
			t.Errorf("%s: there is no type %q", what, kind)
		}
		s.named(t, what, kind, v)
	}
}

// named checks a value against a type's name.
func (s surface) named(t *testing.T, at, kind string, v any) {
	base, _, _ := strings.Cut(kind, ":")
	base, _, _ = strings.Cut(base, " ")
	base, pattern, _ := strings.Cut(base, "~")
	switch typ, known := s[kind]; {
	case known && kind == "SlotSharingGroupId": // its fields are never written: it is 32 hex digits
		s.named(t, at, "JobID", v)
	case known && typ.Is != nil:
		s.spec(t, at, typ.Is, v)
	case known && v == nil:
	case known:
		s.object(t, at, kind, v)
	case v == nil && strings.Contains(at, ".memoryConfiguration."): // not configured
	case base == "integer":
		if n, ok := v.(json.Number); !ok || strings.ContainsAny(n.String(), ".e") {
			t.Errorf("%s is %v, not a whole number", at, v)
		}
	case base == "number":
		if _, ok := v.(json.Number); !ok {
			t.Errorf("%s is %v, not a number", at, v)
		}
	case base == "boolean":
		if _, ok := v.(bool); !ok {
			t.Errorf("%s is %v, neither true nor false", at, v)
		}
	case base == "enum":
		if !strings.Contains("|"+kind[len("enum:"):]+"|", fmt.Sprintf("|%v|", v)) {
			t.Errorf("%s is %v, none of %s", at, v, kind)
		}
	case base == "object" || v == nil:
	default:
		if text, ok := v.(string); !ok || pattern != "" && !isID(text) && !strings.Contains(at, "skmanager") && !strings.Contains(at, "askManager") {
			t.Errorf("%s is %v, not a %s", at, v, kind)
		}
	}
}

func (s surface) spec(t *testing.T, at string, spec json.RawMessage, v any) {
	var name string
	var list []json.RawMessage
	var fields map[string]json.RawMessage
	switch {
	case json.Unmarshal(spec, &name) == nil:
		s.named(t, at, name, v)
	case json.Unmarshal(spec, &list) == nil:
		items, ok := v.([]any)
		if !ok {
			t.Errorf("%s is %v, not a list", at, v)
		}
		for i, item := range items {
			s.spec(t, fmt.Sprintf("%s[%d]", at, i), list[0], item)
		}
	case json.Unmarshal(spec, &fields) == nil:
		s.fields(t, at, fields, v)
	}
}

func (s surface) object(t *testing.T, at, kind string, v any) {
	fields := map[string]json.RawMessage{}
	for name := kind; name != ""; {
		typ := s[name]
		for field, spec := range typ.Fields {
			fields[field] = spec
		}
		next := ""
		if len(typ.Extends) > 0 && typ.Extends[0] != kind {
			next = typ.Extends[0]
		}
		if o, ok := v.(map[string]any); ok && typ.Discriminator != "" && name == kind {
			class := fmt.Sprint(o[typ.Discriminator])
			if typ.Variants[class] == "" {
				t.Errorf("%s has class %q", at, class)
			}
			for field, spec := range s[typ.Variants[class]].Fields {
				fields[field] = spec
			}
		}
		name = next
	}
	s.fields(t, at, fields, v)
}

func (s surface) fields(t *testing.T, at string, fields map[string]json.RawMessage, v any) {
	o, ok := v.(map[string]any)
	if !ok {
		t.Errorf("%s is %v, not an object", at, v)
		return
	}
	if any, free := fields["*"]; free {
		for key, x := range o {
			s.spec(t, at+"."+key, any, x)
		}
		return
	}
	for name, spec := range fields {
		if x, has := o[name]; has {
			s.spec(t, at+"."+name, spec, x)
		} else if !left(name) {
			t.Errorf("%s has no %q", at, name)
		}
	}
	for name := range o {
		if _, known := fields[name]; !known && !added(name) {
			t.Errorf("%s has %q, which its type lacks", at, name)
		}
	}
}
