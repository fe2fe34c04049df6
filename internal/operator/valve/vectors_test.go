package valve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
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

// millis is a time of a vector: a number, "min" or "max".
type millis int64

func (m *millis) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"min"`:
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

// anyCase holds the fields that some kind in the file has; the kind decides which are used.
type anyCase struct {
	ID              string          `json:"id"`
	Source          string          `json:"source"`
	Kind            string          `json:"kind"`
	NumChannels     int             `json:"num_channels"`
	Gates           int             `json:"gates"`
	ChannelsPerGate int             `json:"channels_per_gate"`
	Operator        string          `json:"operator"`
	Steps           json.RawMessage `json:"steps"`
}

type step struct {
	Watermark     *millis         `json:"watermark"`
	Status        string          `json:"status"`
	Record        json.RawMessage `json:"record"`
	TS            *millis         `json:"ts"`
	Gate          int             `json:"gate"`
	Channel       int             `json:"channel"`
	ExpectOutput  *[]entry        `json:"expect_output"`
	ExpectChannel *struct {
		Channel   int     `json:"channel"`
		Watermark *millis `json:"watermark"`
		Aligned   *bool   `json:"aligned"`
	} `json:"expect_channel"`
}

type entry struct {
	Watermark *millis         `json:"watermark"`
	Status    string          `json:"status"`
	Record    json.RawMessage `json:"record"`
	TS        *millis         `json:"ts"`
}

func (e entry) String() string {
	switch {
	case e.Watermark != nil:
		return fmt.Sprintf("watermark %d", *e.Watermark)
	case e.Record != nil:
		var text any
		if err := json.Unmarshal(e.Record, &text); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("record %v", text)
	}
	return e.Status
}

func (s step) mark() frame.Mark {
	switch {
	case s.Watermark != nil:
		return frame.Mark{Kind: frame.Watermark, Value: int64(*s.Watermark)}
	case s.Status == "idle":
		return frame.Mark{Kind: frame.Idle}
	}
	return frame.Mark{Kind: frame.Active}
}

func texts(out []string, a Actions) []string {
	for _, m := range a.Marks() {
		if m.Kind == frame.Watermark {
			out = append(out, fmt.Sprintf("watermark %d", m.Value))
		} else {
			out = append(out, m.Kind.String())
		}
	}
	return out
}

func expect(t *testing.T, i int, got []string, want []entry) {
	t.Helper()
	var wanted []string
	for _, e := range want {
		wanted = append(wanted, e.String())
	}
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		t.Fatalf("step %d: %v, want %v", i, got, wanted)
	}
}

func TestValveVectors(t *testing.T) {
	var file struct {
		Family string            `json:"family"`
		Cases  []json.RawMessage `json:"cases"`
	}
	decode(t, readVectors(t, "watermarks.json"), &file)
	ran := 0
	for _, raw := range file.Cases {
		var kind struct{ Kind string }
		if err := json.Unmarshal(raw, &kind); err != nil {
			t.Fatal(err)
		}
		if kind.Kind != "valve" {
			continue // package watermark and the watermark drivers
		}
		var c anyCase
		decode(t, raw, &c)
		ran++
		t.Run(c.ID, func(t *testing.T) { runValve(t, c) })
	}
	t.Logf("%d valve cases ran", ran)
	if ran == 0 {
		t.Error("no case ran")
	}
}

func runValve(t *testing.T, c anyCase) {
	var steps []step
	decode(t, c.Steps, &steps)
	v := New(c.NumChannels)
	var out []string
	for i, s := range steps {
		switch {
		case s.ExpectOutput != nil:
			expect(t, i, out, *s.ExpectOutput)
			out = nil
		case s.ExpectChannel != nil:
			e, got := s.ExpectChannel, v.Channel(s.ExpectChannel.Channel)
			if e.Watermark != nil && got.Watermark != int64(*e.Watermark) {
				t.Fatalf("step %d: channel %d at %d, want %d", i, e.Channel, got.Watermark, *e.Watermark)
			}
			if aligned := !got.Idle && !got.Behind; e.Aligned != nil && aligned != *e.Aligned {
				t.Fatalf("step %d: channel %d aligned: %v", i, e.Channel, aligned)
			}
		default:
			out = texts(out, v.Step(s.Channel, s.mark()))
		}
	}
}

// The vector was recorded before FLINK-18934 and holds for HoldIdle; by the default rule the first input, at 6, is
// released when the second goes idle at 5. See the package comment.
func TestTwoInputVectorHoldsForHoldIdle(t *testing.T) {
	c := taskCase(t, "task/two_input/watermark_and_status")
	runTwoInputs(t, c, HoldIdle, nil)
	runTwoInputs(t, c, ReleaseIdle, []string{"watermark 6"})
}

func taskCase(t *testing.T, id string) anyCase {
	t.Helper()
	var file struct {
		Family string            `json:"family"`
		Cases  []json.RawMessage `json:"cases"`
	}
	decode(t, readVectors(t, "task.json"), &file)
	for _, raw := range file.Cases {
		var head struct {
			ID   string `json:"id"`
			Note string `json:"note"`
			anyCase
		}
		if err := json.Unmarshal(raw, &head); err == nil && head.ID == id {
			c := head.anyCase
			c.ID = head.ID
			return c
		}
	}
	t.Fatalf("no case %s", id)
	return anyCase{}
}

// runTwoInputs runs the case on a valve per gate and the combination of both. released is what comes after the
// watermark 5 beyond the vector's expectation.
func runTwoInputs(t *testing.T, c anyCase, rule Rule, released []string) {
	var steps []step
	decode(t, c.Steps, &steps)
	valves := make([]*Valve, c.Gates)
	for i := range valves {
		valves[i] = New(c.ChannelsPerGate)
	}
	combined := NewCombined(c.Gates, rule)
	var out []string
	for i, s := range steps {
		switch {
		case s.ExpectOutput != nil:
			want := *s.ExpectOutput
			if len(want) == 1 && want[0].String() == "watermark 5" {
				if len(out) != 1+len(released) || fmt.Sprint(out[1:]) != fmt.Sprint(released) {
					t.Fatalf("step %d: %v, want watermark 5 and then %v", i, out, released)
				}
				out = out[:1]
			}
			expect(t, i, out, want)
			out = nil
		case s.Record != nil:
			out = append(out, entry{Record: s.Record}.String())
		default:
			a := valves[s.Gate].Step(s.Channel, s.mark())
			for _, m := range a.Marks() {
				out = texts(out, combined.Step(s.Gate, m))
			}
		}
	}
}
