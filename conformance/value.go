package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Millis is a time of a vector: a number, "min", "max", or "none" for an element without a timestamp.
type Millis int64

// UnmarshalJSON implements json.Unmarshaler.
func (m *Millis) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"min"`, `"none"`:
		*m = math.MinInt64
	case `"max"`:
		*m = math.MaxInt64
	default:
		n, err := strconv.ParseInt(string(b), 10, 64)
		if err != nil {
			return fmt.Errorf("read a time: %w", err)
		}
		*m = Millis(n)
	}
	return nil
}

// Entry is one thing of an expected output: a record, a watermark, a status, or a barrier.
type Entry struct {
	Record    json.RawMessage `json:"record"`
	TS        *Millis         `json:"ts"`
	Watermark *Millis         `json:"watermark"`
	Status    string          `json:"status"`
	Barrier   *int64          `json:"barrier"`
	Cancel    *int64          `json:"cancel_checkpoint"`
}

// String is the entry's text: "value@ts", "value", "watermark t", "idle", "active", "barrier n", "cancel n". Values are
// JSON, so that 5 and "5" differ.
func (e Entry) String() string {
	switch {
	case e.Watermark != nil:
		return fmt.Sprintf("watermark %d", *e.Watermark)
	case e.Status != "":
		return e.Status
	case e.Barrier != nil:
		return fmt.Sprintf("barrier %d", *e.Barrier)
	case e.Cancel != nil:
		return fmt.Sprintf("cancel %d", *e.Cancel)
	case e.TS == nil || *e.TS == math.MinInt64:
		return Canonical(e.Record)
	}
	return fmt.Sprintf("%s@%d", Canonical(e.Record), *e.TS)
}

// Texts are the texts of entries.
func Texts(es []Entry) []string {
	out := make([]string, len(es))
	for i, e := range es {
		out[i] = e.String()
	}
	return out
}

// Canonical is the one spelling of a JSON value.
func Canonical(raw []byte) string {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return err.Error()
	}
	return Text(v)
}

// Text is the canonical JSON of a value.
func Text(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(b.Bytes()))
}
