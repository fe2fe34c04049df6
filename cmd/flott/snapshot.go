package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/serde"
)

// snapshot is a snapshot that the user names.
type snapshot struct {
	*checkpoint.Manifest
	at *location
}

// load reads the manifest of the snapshot that the user names.
func (a *app) load(arg string) (*snapshot, error) {
	at, err := a.locate(arg)
	if err != nil {
		return nil, err
	}
	m, err := checkpoint.Load(at.fs, at.path)
	if err != nil {
		return nil, at.explain(err)
	}
	return &snapshot{m, at}, nil
}

// folder is what users know the snapshot's folder by.
func (s *snapshot) folder() string { return s.at.name(s.Folder) }

// operator finds the operator that the user names by UID, id or name.
func operator(m *snapshot, name string) (*checkpoint.Operator, error) {
	if o := m.Operator(name); o != nil {
		return o, nil
	}
	var found *checkpoint.Operator
	var all, same []string
	for i := range m.Operators {
		o := &m.Operators[i]
		all = append(all, "  "+title(o))
		if o.Name == name {
			found = o
			same = append(same, "  "+title(o))
		}
	}
	switch len(same) {
	case 1:
		return found, nil
	case 0:
		return nil, fmt.Errorf("there is no operator %q in %s, which has these:\n%s", name, m.folder(), strings.Join(all, "\n"))
	}
	return nil, fmt.Errorf("%d operators of %s are called %q: say which by its UID or id:\n%s", len(same), m.folder(), name, strings.Join(same, "\n"))
}

// title names an operator in a list.
func title(o *checkpoint.Operator) string {
	return fmt.Sprintf("%s (UID %s, id %s)", shown(o.Name), orDash(o.UID), o.ID)
}

// valueJSON is a whole value as JSON.
func valueJSON(dst []byte, s *serde.Schema, b []byte) ([]byte, error) {
	dst, used, err := checkpoint.AppendJSON(dst, s, b)
	if err == nil && used != len(b) {
		err = fmt.Errorf("decode value of schema %.200s: %d bytes too many", s, len(b)-used)
	}
	return dst, err
}

// itemJSON is an item of a list as JSON. Items of the engine's own lists that are not of the form that this program knows
// are bytes like any others.
func itemJSON(dst []byte, l *checkpoint.List, item []byte) ([]byte, error) {
	var v any
	var err error
	switch l.Name {
	case channelList:
		v, err = decodeChannel(item)
	case positionList:
		v, err = decodePosition(item)
	default:
		return valueJSON(dst, l.Schema, item)
	}
	if err != nil {
		return valueJSON(dst, l.Schema, item)
	}
	b, err := json.Marshal(v)
	return append(dst, b...), err
}

// printJSON writes a value as JSON for people and programs.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
