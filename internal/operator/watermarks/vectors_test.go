package watermarks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/watermark"
)

// readVectors reads a file of streaming vectors. FLOTT_CONFORMANCE names another folder for them, or the one above it.
func readVectors(t *testing.T, file string) []byte {
	t.Helper()
	dir := os.Getenv("FLOTT_CONFORMANCE")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "conformance", "testdata")
	}
	raw, err := os.ReadFile(filepath.Join(dir, "streaming", file))
	if errors.Is(err, os.ErrNotExist) {
		raw, err = os.ReadFile(filepath.Join(dir, file))
	}
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func decode(t *testing.T, b []byte, v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Fatal(err)
	}
}

// millis is a time of a vector: a number, "min", "max", or "none" for no timestamp.
type millis int64

func (m *millis) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"min"`, `"none"`:
		*m = math.MinInt64
	case `"max"`:
		*m = math.MaxInt64
	default:
		n, err := strconv.ParseInt(string(b), 10, 64)
		if err != nil {
			return err
		}
		*m = millis(n)
	}
	return nil
}

// vector has the fields of all kinds but valve.
type vector struct {
	ID              string          `json:"id"`
	Source          string          `json:"source"`
	Kind            string          `json:"kind"`
	Note            string          `json:"note"`
	Interval        int64           `json:"auto_watermark_interval_ms"`
	Assigner        string          `json:"assigner"`
	Violation       string          `json:"violation_handler"`
	OutOfOrderness  int64           `json:"max_out_of_orderness_ms"`
	Context         string          `json:"context"`
	IdleTimeout     int64           `json:"idle_timeout_ms"`
	ContextInterval int64           `json:"watermark_interval_ms"`
	InitialTime     int64           `json:"initial_time"`
	Given           string          `json:"given"`
	When            string          `json:"when"`
	Then            string          `json:"then"`
	Steps           json.RawMessage `json:"steps"`
}

type entry struct {
	Watermark *millis         `json:"watermark"`
	Record    json.RawMessage `json:"record"`
	TS        millis          `json:"ts"`
}

func (e entry) String() string {
	if e.Watermark != nil {
		return fmt.Sprintf("watermark %d", *e.Watermark)
	}
	var text string
	if json.Unmarshal(e.Record, &text) == nil && text != "min" && text != "max" {
		return fmt.Sprintf("%s@%d", text, e.TS)
	}
	var v millis
	if err := v.UnmarshalJSON(e.Record); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d@%d", v, e.TS)
}

func textOf(es []entry) string {
	var out []string
	for _, e := range es {
		out = append(out, e.String())
	}
	return strings.Join(out, ", ")
}

func TestWatermarkVectors(t *testing.T) {
	var file struct {
		Family string            `json:"family"`
		Cases  []json.RawMessage `json:"cases"`
	}
	decode(t, readVectors(t, "watermarks.json"), &file)
	ran, rules, elsewhere := 0, 0, 0
	for _, raw := range file.Cases {
		var head struct{ Kind, ID string }
		if err := json.Unmarshal(raw, &head); err != nil {
			t.Fatal(err)
		}
		run := map[string]func(*testing.T, vector){
			"periodic_operator":   runOperator,
			"punctuated_operator": runOperator,
			"ascending_extractor": runExtractor,
			"bounded_extractor":   runExtractor,
			"source_context":      runContext,
		}[head.Kind]
		switch {
		case head.Kind == "valve": // package valve
			elsewhere++
			continue
		case head.Kind == "rule": // by hand, see below
			rules++
			continue
		case run == nil:
			t.Errorf("%s: unknown kind %q", head.ID, head.Kind)
			continue
		}
		ran++
		t.Run(head.ID, func(t *testing.T) {
			var v vector
			decode(t, raw, &v)
			run(t, v)
		})
	}
	t.Logf("%d cases ran, %d rules, %d are the valve's", ran, rules, elsewhere)
	if ran == 0 {
		t.Error("no case ran")
	}
}

type operatorStep struct {
	Element        json.RawMessage `json:"element"`
	TS             millis          `json:"ts"`
	Watermark      *millis         `json:"watermark"`
	ProcessingTime *int64          `json:"processing_time"`
	ExpectOutput   *[]entry        `json:"expect_output"`
}

// behindOne proposes the last timestamp - 1 when asked.
type behindOne struct{ last int64 }

func (g *behindOne) OnEvent(_ *event, ms int64, _ *watermark.Emitter) { g.last = ms }
func (g *behindOne) OnPeriodic(out *watermark.Emitter)                { out.Watermark(watermark.Add(g.last, -1)) }

type silent struct{}

func (silent) OnEvent(*event, int64, *watermark.Emitter) {}
func (silent) OnPeriodic(*watermark.Emitter)             {}

func strategyOf(t *testing.T, v vector) watermark.Strategy[event] {
	var s watermark.Strategy[event]
	switch v.Kind + " " + v.Assigner {
	case "periodic_operator last_value_minus_one":
		s = watermark.Periodic(func() watermark.Generator[event] { return &behindOne{last: math.MinInt64} })
	case "periodic_operator value_never_watermark":
		s = watermark.Periodic(func() watermark.Generator[event] { return silent{} })
	case "punctuated_operator value_never_watermark":
		s = watermark.PunctuatedPtr(func(*event, int64) (int64, bool) { return 0, false })
	case "punctuated_operator first_field_watermark_if_flag":
		s = watermark.Punctuated(func(x event, _ int64) (int64, bool) { return x.At, x.Flag })
	default:
		t.Fatalf("unknown assigner %q", v.Assigner)
	}
	return s.WithMillis(func(x event) int64 { return x.At })
}

func elementOf(t *testing.T, raw json.RawMessage) event {
	var pair []json.RawMessage
	if raw[0] == '[' {
		decode(t, raw, &pair)
	} else {
		pair = []json.RawMessage{raw}
	}
	var at millis
	decode(t, pair[0], &at)
	x := event{At: int64(at)}
	if len(pair) > 1 {
		decode(t, pair[1], &x.Flag)
	}
	return x
}

// runOperator runs a case with elements one by one, and again with all elements between two other steps as one run: there
// watermarks that follow from punctuated elements cut the run at the same places.
func runOperator(t *testing.T, v vector) {
	var steps []operatorStep
	decode(t, v.Steps, &steps)
	format := func(r *frame.Run, i int) string {
		return fmt.Sprintf("%d@%d", frame.Values[event](r)[i].At, r.Time(i))
	}
	for _, together := range []bool{false, true} {
		g := newRig(t, strategyOf(t, v), v.Interval, format)
		var pending []event
		flush := func() {
			r := column(g.typ, pending...).Run()
			if err := g.op.Push(&r); err != nil {
				t.Fatal(err)
			}
			pending = nil
		}
		for _, s := range steps {
			if s.Element != nil {
				pending = append(pending, elementOf(t, s.Element))
				if together {
					continue
				}
			}
			if len(pending) != 0 {
				flush()
			}
			switch {
			case s.Watermark != nil:
				g.mark(frame.Watermark, int64(*s.Watermark))
			case s.ProcessingTime != nil:
				g.clock(*s.ProcessingTime)
			case s.ExpectOutput != nil:
				g.expect(textOf(*s.ExpectOutput))
			}
		}
	}
}

type extractorStep struct {
	Extract          *millis `json:"extract"`
	PreviousTS       int64   `json:"previous_ts"`
	ExpectTS         *millis `json:"expect_ts"`
	ExpectError      bool    `json:"expect_error"`
	CurrentWatermark bool    `json:"current_watermark"`
	Expect           *millis `json:"expect"`
}

func runExtractor(t *testing.T, v vector) {
	var steps []extractorStep
	decode(t, v.Steps, &steps)
	at := func(x event) time.Time { return time.UnixMilli(x.At) }
	s := watermark.AscendingTimestampExtractor(at)
	if v.Kind == "bounded_extractor" {
		s = watermark.BoundedOutOfOrdernessTimestampExtractor(time.Duration(v.OutOfOrderness)*time.Millisecond, at)
	}
	switch v.Violation {
	case "failing":
		s = s.OnViolation(watermark.FailOnViolation)
	case "ignoring":
		s = s.OnViolation(watermark.IgnoreViolations)
	case "logging":
		s = s.OnViolation(watermark.LogViolations)
	}
	// The vector sees the extractor itself, elements at the ends of int64 included, so the assigner takes ms.
	g := newRig(t, s.WithMillis(func(x event) int64 { return x.At }), 0, func(r *frame.Run, i int) string { return fmt.Sprint(r.Time(i)) })
	for i, s := range steps {
		switch {
		case s.Extract != nil:
			c := column(g.typ, event{At: int64(*s.Extract)})
			r := c.Run()
			err := g.op.Push(&r)
			if (err != nil) != s.ExpectError {
				t.Fatalf("step %d: error %v", i, err)
			}
			if got := g.sink.take(); s.ExpectTS != nil && got != fmt.Sprint(int64(*s.ExpectTS)) {
				t.Fatalf("step %d: timestamp %s, want %d", i, got, *s.ExpectTS)
			}
		case s.CurrentWatermark:
			if got := g.op.bounded.watermark(); got != int64(*s.Expect) {
				t.Fatalf("step %d: watermark %d, want %d", i, got, *s.Expect)
			}
		}
	}
}

type contextStep struct {
	ProcessingTime *int64   `json:"processing_time"`
	Emit           string   `json:"emit"`
	Value          string   `json:"value"`
	TS             int64    `json:"ts"`
	ExpectStatus   string   `json:"expect_status"`
	ExpectOutput   *[]entry `json:"expect_output"`
}

func runContext(t *testing.T, v vector) {
	var steps []contextStep
	decode(t, v.Steps, &steps)
	now := v.InitialTime
	c := NewManual(now, v.IdleTimeout)
	if v.Context == "automatic_ingestion_time" {
		c = NewIngestion(now, v.ContextInterval, v.IdleTimeout)
	}
	var out []string
	note := func(e Emission) {
		for _, m := range e.Marks() {
			if m.Kind == frame.Watermark {
				out = append(out, fmt.Sprintf("watermark %d", m.Value))
			}
		}
	}
	for i, s := range steps {
		switch {
		case s.ProcessingTime != nil:
			now = *s.ProcessingTime
			if at, ok := c.Next(); ok && at <= now {
				note(c.Advance(now))
			}
			if at, ok := c.Next(); ok && at <= now {
				t.Fatalf("step %d: still due at %d", i, at)
			}
		case s.Emit == "emit_watermark":
			note(c.Emit(now, s.TS))
		case s.Emit != "":
			ts := int64(frame.NoTime)
			if s.Emit == "collect_with_timestamp" {
				ts = s.TS
			}
			stamp, before, after := c.Element(now, ts)
			note(before)
			out = append(out, fmt.Sprintf("%s@%d", s.Value, stamp))
			note(after)
		case s.ExpectStatus != "":
			if want := s.ExpectStatus == "idle"; c.IsIdle() != want {
				t.Fatalf("step %d: idle: %v, want %v", i, c.IsIdle(), want)
			}
		case s.ExpectOutput != nil:
			if got, want := strings.Join(out, ", "), textOf(*s.ExpectOutput); got != want {
				t.Fatalf("step %d: %s, want %s", i, got, want)
			}
			out = nil
		}
	}
}
