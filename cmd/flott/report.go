package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

func inspectCommand() command {
	return command{
		name: "savepoint inspect", args: "PATH [-json]", operands: 1,
		summary: "show what a savepoint or checkpoint holds",
		details: `PATH is the folder of a savepoint or checkpoint, or the file _metadata in it: a
path, or a URL of s3, gs, azblob, hdfs and their like, with credentials from the
surroundings. It shows the job; each operator with its UID, id and parallelism;
its state with the schemas of keys and values, the entries and their bytes; how
far event time had come on its input channels; and where sources were.`,
		example: "flott savepoint inspect savepoints/savepoint-1a2b3c-7\nflott savepoint inspect -json checkpoints/chk-12 | jq '.operators[].uid'",
		prepare: func(a *app, f *flag.FlagSet) action {
			asJSON := f.Bool("json", false, "print JSON instead of text")
			return func(args []string) error { return a.inspect(args[0], *asJSON) }
		},
	}
}

func (a *app) inspect(at string, asJSON bool) error {
	m, err := a.load(at)
	if err != nil {
		return err
	}
	r, damage := newReport(m)
	if asJSON {
		err = a.printJSON(r)
	} else {
		err = a.printReport(r)
	}
	return errors.Join(err, damage)
}

// report is what a snapshot holds.
type report struct {
	Folder        string           `json:"folder"`
	FormatVersion int              `json:"formatVersion"`
	Kind          string           `json:"kind"`
	ID            int64            `json:"id"`
	JobID         string           `json:"jobId"`
	JobName       string           `json:"jobName"`
	Time          string           `json:"time"`
	TimeMillis    int64            `json:"timeMillis"`
	HashSeed      string           `json:"hashSeed"` // as text: JSON's numbers are too short for many readers
	Bytes         int64            `json:"bytes"`
	Files         int              `json:"files"`
	Operators     []operatorReport `json:"operators"`
}

// operatorReport is what it holds of an operator.
type operatorReport struct {
	Name             string            `json:"name"`
	UID              string            `json:"uid"`
	ID               string            `json:"id"`
	Parallelism      int               `json:"parallelism"`
	MaxParallelism   int               `json:"maxParallelism"`
	FinishedSubtasks []int             `json:"finishedSubtasks"`
	CoordinatorBytes int               `json:"coordinatorBytes"`
	States           []stateReport     `json:"states"`
	Files            []filesReport     `json:"files,omitempty"`
	Lists            []listReport      `json:"lists"`
	Channels         []channel         `json:"channels"`
	Positions        []position        `json:"positions"`
	Splits           []json.RawMessage `json:"splits"`
}

// stateReport is a table. Schemas are text, empty if there is none.
type stateReport struct {
	Name      string     `json:"name"`
	Kind      string     `json:"kind"`
	Key       string     `json:"key"`
	Namespace string     `json:"namespace"`
	MapKey    string     `json:"mapKey"`
	Value     string     `json:"value"`
	TTL       *ttlReport `json:"ttl,omitempty"`
	Entries   int64      `json:"entries"`
	Changes   int64      `json:"changes,omitempty"` // of the entries: those upon the whole table
	InFiles   bool       `json:"inFiles,omitempty"` // of the state backend
	Bytes     int64      `json:"bytes"`
}

// filesReport is what lies in files of a state backend.
type filesReport struct {
	Format string `json:"format"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
}

// ttlReport is how entries of a table expire.
type ttlReport struct {
	Millis        int64 `json:"millis"`
	OnRead        bool  `json:"onRead"`
	ReturnExpired bool  `json:"returnExpired"`
}

// listReport is a list.
type listReport struct {
	Name  string `json:"name"`
	Mode  string `json:"mode"`
	Item  string `json:"item"`
	Items int64  `json:"items"`
	Bytes int64  `json:"bytes"`
}

// newReport gathers what a snapshot holds. What can't be read is missing in it, and is the error.
func newReport(m *snapshot) (*report, error) {
	r := &report{
		Folder: m.folder(), FormatVersion: m.Version,
		Kind: m.Kind.String(), ID: m.ID, JobID: m.JobID, JobName: m.JobName, Time: instant(m.Time), TimeMillis: m.Time,
		HashSeed: strconv.FormatUint(m.HashSeed, 10), Bytes: m.Bytes(), Files: len(m.Files()),
	}
	var damage []error
	for i := range m.Operators {
		o := describe(&m.Operators[i])
		if err := o.addEngineLists(m); err != nil {
			damage = append(damage, err)
		}
		r.Operators = append(r.Operators, o)
	}
	return r, m.at.explain(errors.Join(damage...))
}

// describe is what the manifest says of an operator.
func describe(o *checkpoint.Operator) operatorReport {
	r := operatorReport{
		Name: o.Name, UID: o.UID, ID: o.ID, Parallelism: o.Parallelism, MaxParallelism: o.MaxParallelism,
		CoordinatorBytes: len(o.Coordinator), FinishedSubtasks: []int{}, States: []stateReport{}, Lists: []listReport{},
		Channels: []channel{}, Positions: []position{}, Splits: []json.RawMessage{},
	}
	for _, p := range o.Parts {
		if p.Finished {
			r.FinishedSubtasks = append(r.FinishedSubtasks, p.Subtask)
		}
	}
	for _, t := range o.Tables() {
		r.States = append(r.States, stateReport{
			Name: t.Name, Kind: t.Kind, Key: schemaText(t.Key), Namespace: schemaText(t.Namespace), MapKey: schemaText(t.MapKey),
			Value: schemaText(t.Value), TTL: ttlOf(t.TTL), Entries: t.Rows, Bytes: t.Bytes,
			Changes: t.Changes, InFiles: t.InFiles,
		})
	}
	for _, f := range o.Files() {
		r.Files = append(r.Files, filesReport(f))
	}
	for _, l := range o.Lists() {
		r.Lists = append(r.Lists, listReport{Name: l.Name, Mode: l.Mode.String(), Item: schemaText(l.Schema), Items: l.Items, Bytes: l.Bytes})
	}
	return r
}

func schemaText(s *serde.Schema) string {
	if s == nil {
		return ""
	}
	return s.String()
}

func ttlOf(t *statebackend.TTL) *ttlReport {
	if t == nil {
		return nil
	}
	return &ttlReport{Millis: t.Millis, OnRead: t.OnRead, ReturnExpired: t.ReturnExpired}
}

// addEngineLists reads the lists that the engine writes itself: watermarks and positions. Only operators that have one are
// read, as all their lists are read with it.
func (r *operatorReport) addEngineLists(m *snapshot) error {
	if !slices.ContainsFunc(r.Lists, func(l listReport) bool { return engineList(l.Name) && l.Items > 0 }) {
		return nil
	}
	_, lists, err := m.Read(m.at.fs, r.ID)
	if err != nil {
		return err
	}
	for i := range lists {
		l := &lists[i]
		for _, item := range l.Items {
			if err := r.addItem(l, item); err != nil {
				return fmt.Errorf("read list %q of operator %s: %w", l.Name, shown(r.Name), err)
			}
		}
	}
	return nil
}

func engineList(name string) bool {
	return name == channelList || name == positionList || name == splitList
}

func (r *operatorReport) addItem(l *checkpoint.List, item []byte) error {
	switch l.Name {
	case channelList:
		c, err := decodeChannel(item)
		if err != nil {
			return err
		}
		r.Channels = append(r.Channels, c)
	case positionList:
		p, err := decodePosition(item)
		if err != nil {
			return err
		}
		r.Positions = append(r.Positions, p)
	case splitList:
		b, err := itemJSON(nil, l, item)
		if err != nil {
			return err
		}
		r.Splits = append(r.Splits, b)
	}
	return nil
}
