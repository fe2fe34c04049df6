package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/statebackend/pebble"
)

func dumpCommand() command {
	return command{
		name: "savepoint dump", args: "PATH -operator NAME [-state NAME] [-format jsonl|csv|parquet] [-limit N]", operands: 1,
		summary: "print the state of an operator, a row a line",
		details: `Rows have the name of their state, key, namespace, map key, value and, if they
expire, the time of their last write, as far as the state has them. A list has
a row for each item, which is its value. Bytes that only the program can read
are base64.

A text that is no UTF-8 is an object with its bytes, {"base64":"/w=="}. Where
only a text may stand (in CSV, in text columns of Parquet, as the name of a
field) it is this as a text, and so is a text that begins with {"base64":
itself.

In CSV texts are always in quotes, also empty ones. A cell without any is null,
or what the row does not have.

A Parquet file has the rows of one state: the columns are its key, namespace,
map key, value and time, with their types. Structs are groups of columns, slices
and maps LIST and MAP, nil is NULL; what has no type in Parquet is JSON text.
Times are microseconds, for the years -290307 to 294246; others are an error.`,
		example: "flott savepoint dump savepoints/savepoint-1a2b3c-7 -operator alarm -state sum\nflott savepoint dump checkpoints/chk-12 -operator alarm -format csv -limit 100 > alarm.csv",
		prepare: func(a *app, f *flag.FlagSet) action {
			d := &dump{app: a}
			f.StringVar(&d.operator, "operator", "", "the operator with this UID, id or `NAME` (required)")
			f.StringVar(&d.state, "state", "", "only the state or list of this `NAME`")
			f.StringVar(&d.format, "format", "jsonl", "`FORMAT` of the rows: jsonl (a JSON object a line), csv (with a header) or parquet (one state)")
			f.IntVar(&d.limit, "limit", 0, "print `N` rows at most; 0: all")
			return d.run
		},
	}
}

// dump is a call of the command.
type dump struct {
	*app
	operator, state, format string
	limit                   int

	to   recorder
	rows int // written so far
}

// errEnough ends a dump at its limit.
var errEnough = errors.New("the limit is reached")

func (d *dump) run(args []string) error {
	wrong := func(format string, a ...any) error {
		return &usageError{"savepoint dump", fmt.Sprintf(format, a...)}
	}
	switch {
	case d.operator == "":
		return wrong("-operator is missing: flott savepoint inspect shows which there are")
	case d.limit < 0:
		return wrong("-limit %d is negative", d.limit)
	}
	var ok bool
	if d.to, ok = newRecorder(d.format, d.out); !ok {
		return wrong("-format %q is unknown: choose jsonl, csv or parquet", d.format)
	}
	m, err := d.load(args[0])
	if err != nil {
		return err
	}
	o, err := operator(m, d.operator)
	if err != nil {
		return err
	}
	if err := d.check(o); err != nil {
		return err
	}
	restored, lists, err := m.Read(m.at.fs, o.ID, pebble.Files{})
	if err != nil {
		return m.at.explain(err)
	}
	err = m.at.explain(d.all(restored, lists))
	if errors.Is(err, errEnough) {
		err = nil
	}
	return errors.Join(err, d.to.end())
}

// check says whether the operator has the state that is asked for.
func (d *dump) check(o *checkpoint.Operator) error {
	var names []string
	for _, t := range o.Tables() {
		names = append(names, t.Name)
	}
	for _, l := range o.Lists() {
		names = append(names, l.Name)
	}
	switch {
	case d.state == "" || slices.Contains(names, d.state):
		return nil
	case len(names) == 0:
		return fmt.Errorf("operator %s has no state", title(o))
	}
	for i := range names {
		names[i] = shown(names[i])
	}
	return fmt.Errorf("operator %s has no state %q; it has %s", title(o), d.state, strings.Join(names, ", "))
}

func (d *dump) all(restored statebackend.Restored, lists []checkpoint.List) error {
	for _, name := range restored.Tables() {
		if d.state != "" && d.state != name {
			continue
		}
		if t, ok := restored.Table(name); ok {
			if err := d.table(&t); err != nil {
				return err
			}
		}
	}
	for i := range lists {
		if d.state != "" && d.state != lists[i].Name {
			continue
		}
		if err := d.list(&lists[i]); err != nil {
			return err
		}
	}
	return nil
}

func (d *dump) table(t *statebackend.FrozenTable) error {
	if err := d.to.begin(tableShape(&t.TableInfo)); err != nil {
		return err
	}
	var r record
	for row, err := range t.Rows {
		if err == nil {
			err = r.fill(&t.TableInfo, row)
		}
		if err == nil {
			err = d.put(&r)
		}
		if err != nil {
			return fmt.Errorf("dump state %q: %w", t.Name, err)
		}
	}
	return nil
}

func (d *dump) list(l *checkpoint.List) error {
	engine := l.Name == channelList || l.Name == positionList
	if err := d.to.begin(&shape{value: l.Schema, list: true, engine: engine}); err != nil {
		return err
	}
	r := record{state: l.Name}
	for _, item := range l.Items {
		var err error
		if r.value, err = itemJSON(r.value[:0], l, item); err == nil {
			err = d.put(&r)
		}
		if err != nil {
			return fmt.Errorf("dump list %q: %w", l.Name, err)
		}
	}
	return nil
}

// put writes a row, unless there are enough.
func (d *dump) put(r *record) error {
	if d.limit > 0 && d.rows == d.limit {
		return errEnough
	}
	d.rows++
	return d.to.write(r)
}
