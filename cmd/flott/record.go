package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"encoding/json/jsontext"
	"io"
	"strings"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// record is a row of a dump. All but the name of the state is JSON; what the state does not have is empty.
type record struct {
	state                               string
	key, namespace, mapKey, value, time []byte
}

// fill makes the record of a row, in the memory of the one before.
func (r *record) fill(t *statebackend.TableInfo, row *statebackend.Row) (err error) {
	r.state = t.Name
	if r.key, err = checkpoint.AppendKeyJSON(r.key[:0], t.Key, row.Key); err != nil {
		return err
	}
	r.namespace, r.mapKey, r.value, r.time = r.namespace[:0], r.mapKey[:0], r.value[:0], r.time[:0]
	if t.Namespace != nil {
		if r.namespace, err = checkpoint.AppendKeyJSON(r.namespace, t.Namespace, row.Namespace); err != nil {
			return err
		}
	}
	if t.MapKey != nil {
		if r.mapKey, err = checkpoint.AppendKeyJSON(r.mapKey, t.MapKey, row.MapKey); err != nil {
			return err
		}
	}
	if t.TTL != nil {
		r.time = append(append(append(r.time, '"'), instant(row.At)...), '"')
	}
	if t.Value != nil || len(row.Value) > 0 {
		r.value, err = valueJSON(r.value, t.Value, row.Value)
	}
	return err
}

// shape says what the records of a state have.
type shape struct {
	key, namespace, mapKey, value *serde.Schema
	stamped                       bool // they have a time
	list                          bool // they are items of a list, which have a value only
	engine                        bool // their value is JSON that the schema does not tell
	bare                          bool // they have no value
}

// tableShape is the shape of the rows of a table.
func tableShape(t *statebackend.TableInfo) *shape {
	return &shape{key: t.Key, namespace: t.Namespace, mapKey: t.MapKey, value: t.Value, stamped: t.TTL != nil, bare: t.Kind == statebackend.TimerKind}
}

// recorder writes records in a format.
type recorder interface {
	// begin says what the records that follow are.
	begin(*shape) error
	write(r *record) error
	// end writes what is left.
	end() error
}

// newRecorder gives the recorder of a format.
func newRecorder(format string, w *bufio.Writer) (recorder, bool) {
	switch format {
	case "jsonl":
		return &jsonLines{w: w}, true
	case "csv":
		return &csvLines{w: w}, true
	case "parquet":
		return &parquetRows{to: w}, true
	}
	return nil, false
}

// jsonLines writes a JSON object a line.
type jsonLines struct {
	w    io.Writer
	line []byte
}

func (j *jsonLines) begin(*shape) error { return nil }

func (j *jsonLines) write(r *record) error {
	b := append(j.line[:0], `{"state":`...)
	b, _ = jsontext.AppendQuote(b, checkpoint.TextAsName(r.state))
	for _, field := range []struct {
		name  string
		value []byte
	}{{"key", r.key}, {"namespace", r.namespace}, {"mapKey", r.mapKey}, {"value", r.value}, {"time", r.time}} {
		if len(field.value) > 0 {
			b = append(append(append(append(b, `,"`...), field.name...), `":`...), field.value...)
		}
	}
	j.line = append(b, "}\n"...)
	_, err := j.w.Write(j.line)
	return err
}

func (j *jsonLines) end() error { return nil }

// csvLines writes CSV with a header, also if there are no rows. Texts stand as checkpoint.TextAsName has them, always in quotes,
// all else as JSON.
// A cell without quotes and characters is null, or what the row does not have: as PostgreSQL's COPY and DuckDB read it.
type csvLines struct {
	w     io.Writer
	line  []byte
	begun bool
}

func (c *csvLines) begin(*shape) error { return nil }

func (c *csvLines) header() error {
	if c.begun {
		return nil
	}
	c.begun = true
	_, err := io.WriteString(c.w, "state,key,namespace,mapKey,value,time\n")
	return err
}

func (c *csvLines) write(r *record) error {
	if err := c.header(); err != nil {
		return err
	}
	b := appendQuoted(c.line[:0], checkpoint.TextAsName(r.state))
	for _, field := range [][]byte{r.key, r.namespace, r.mapKey, r.value, r.time} {
		b = appendCell(append(b, ','), field)
	}
	c.line = append(b, '\n')
	_, err := c.w.Write(c.line)
	return err
}

func (c *csvLines) end() error { return c.header() }

// appendCell appends the cell of a JSON value; none is empty.
func appendCell(b, field []byte) []byte {
	var text string
	switch {
	case string(field) == "null":
		return b
	case len(field) > 0 && field[0] == '"' && json.Unmarshal(field, &text) == nil:
		return appendQuoted(b, checkpoint.TextAsName(text))
	case bytes.ContainsAny(field, "\",\r\n"):
		return appendQuoted(b, string(field))
	}
	return append(b, field...)
}

// appendQuoted appends a quoted cell.
func appendQuoted(b []byte, text string) []byte {
	b = append(b, '"')
	for {
		before, after, more := strings.Cut(text, `"`)
		b = append(append(b, before...), '"')
		if !more {
			return b
		}
		b, text = append(b, '"'), after
	}
}
