package sink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/serde"
)

// book is a two-phase-commit sink with writers that have state; it notes what they are told.
type book struct {
	log
	states []connector.WriterState
	now    func() int64
}

// page is what is committed.
type page struct {
	Name    string
	Entries []int64
}

type bookWriter struct {
	b       *book
	entries []int64
	pages   int
}

func (b *book) Writer(ctx connector.WriterContext) (connector.Writer[int64], error) {
	b.now = ctx.(connector.TimedContext).Now
	return &bookWriter{b: b}, b.note("open", "open")
}

func (b *book) RestoreWriter(ctx connector.WriterContext, id int64, states []connector.WriterState) (connector.Writer[int64], error) {
	b.states = states
	return &bookWriter{b: b}, b.note("open", fmt.Sprint("restore ", id))
}

func (b *book) Committer(connector.WriterContext) (connector.Committer[page], error) {
	return b, b.note("committer", "committer")
}

func (b *book) Commit(_ context.Context, pages []page) error {
	return b.note("commit", fmt.Sprint("commit ", pages))
}

func (b *book) Close() error { return nil }

func (w *bookWriter) Write(x int64, _ connector.ElementContext) error {
	w.entries = append(w.entries, x)
	return nil
}

func (w *bookWriter) Flush(end bool) error { return w.b.note("flush", fmt.Sprint("flush ", end)) }

func (w *bookWriter) Prepare() ([]page, error) {
	if len(w.entries) == 0 {
		return nil, w.b.note("prepare", "prepare nothing")
	}
	w.pages++
	p := page{fmt.Sprint("page ", w.pages), w.entries}
	w.entries = nil
	return []page{p}, w.b.note("prepare", "prepare "+p.Name)
}

func (w *bookWriter) Snapshot(id int64) ([]byte, error) {
	return fmt.Append(nil, "state ", w.pages), w.b.note("snapshot", fmt.Sprint("snapshot ", id))
}

func (w *bookWriter) Close() error { return nil }

func (b *book) want(t *testing.T, lines ...string) {
	t.Helper()
	if !slices.Equal(b.lines, lines) {
		t.Errorf("got  %q\nwant %q", b.lines, lines)
	}
	b.lines = nil
}

func pages(t *testing.T) *serde.Handle {
	t.Helper()
	h, err := serde.Of[page]()
	kit.Must(t, err)
	return h
}

func openBook(t *testing.T, b *book, rt *operator.Runtime) operator.Operator {
	t.Helper()
	op := Committing(kit.TypeOf[int64](t), pages(t), b)
	kit.Must(t, op.Open(rt))
	t.Cleanup(func() { kit.Must(t, op.Close()) })
	return op
}

func snapshot(t *testing.T, op operator.Operator, id int64) *operator.Snapshot {
	t.Helper()
	s := &operator.Snapshot{ID: id, Groups: 128}
	kit.Must(t, op.(operator.Snapshotter).Snapshot(s))
	return s
}

func write(t *testing.T, op operator.Operator, xs ...int64) {
	t.Helper()
	kit.Must(t, op.Inputs()[0].Push(kit.Run(t, nil, xs...)))
}

func TestCommitComesWithTheCheckpoint(t *testing.T) {
	b := &book{}
	rt := kit.Runtime()
	rt.FinalCheckpoint = true
	op := openBook(t, b, rt)
	listener := op.(operator.CheckpointListener)
	b.want(t, "committer", "open")
	write(t, op, 1, 2)
	snapshot(t, op, 1)
	write(t, op, 3)
	snapshot(t, op, 2)
	kit.Must(t, listener.CheckpointAborted(2))
	write(t, op, 4)
	snapshot(t, op, 3)
	write(t, op, 5)
	b.want(t, "flush false", "prepare page 1", "snapshot 1", "flush false", "prepare page 2", "snapshot 2",
		"flush false", "prepare page 3", "snapshot 3")
	kit.Must(t, listener.CheckpointCompleted(1))
	kit.Must(t, listener.CheckpointCompleted(3))
	kit.Must(t, listener.CheckpointCompleted(3))
	b.want(t, "commit [{page 1 [1 2]}]", "commit [{page 2 [3]} {page 3 [4]}]")
	kit.Must(t, op.Inputs()[0].Mark(kit.End()))
	b.want(t, "flush true")
	snapshot(t, op, 4)
	kit.Must(t, listener.CheckpointCompleted(4))
	b.want(t, "prepare page 4", "snapshot 4", "commit [{page 4 [5]}]")
}

func TestWithoutFinalCheckpointTheEndCommitsAll(t *testing.T) {
	b := &book{}
	op := openBook(t, b, kit.Runtime())
	write(t, op, 1)
	snapshot(t, op, 1) // a savepoint that is never completed
	write(t, op, 2)
	b.lines = nil
	kit.Must(t, op.Inputs()[0].Mark(kit.End()))
	b.want(t, "flush true", "prepare page 2", "commit [{page 1 [1]} {page 2 [2]}]")
}

func TestRestoreCommitsAgainAndGivesWritersTheirState(t *testing.T) {
	var lists []checkpoint.List
	for subtask := range 3 {
		rt := kit.Runtime()
		rt.Subtask, rt.Parallelism = subtask, 3
		op := openBook(t, &book{}, rt)
		write(t, op, int64(subtask))
		lists = append(lists, snapshot(t, op, 7).Lists...)
	}
	committables := checkpoint.List{Name: committablesName, Schema: lists[0].Schema}
	writers := checkpoint.List{Name: writerName, Mode: checkpoint.Union}
	for _, l := range lists {
		to := &writers
		if l.Name == committablesName {
			to = &committables
		}
		if l.Mode != to.Mode {
			t.Errorf("list %q is %v", l.Name, l.Mode)
		}
		to.Items = append(to.Items, l.Items...)
	}
	mine := map[int]int{}
	for subtask := range 2 {
		b, rt := &book{}, kit.Runtime()
		rt.Subtask, rt.Parallelism = subtask, 2
		rt.Restored = &operator.Restored{Checkpoint: 7, Lists: []checkpoint.List{writers}}
		want := []string{"committer", "restore 7"}
		if subtask == 1 {
			rt.Restored.Lists = append(rt.Restored.Lists, committables)
			want = []string{"committer", "commit [{page 1 [0]} {page 1 [1]} {page 1 [2]}]", "restore 7"}
		}
		openBook(t, b, rt)
		b.want(t, want...)
		for i, s := range b.states {
			if s.Subtask != i || string(s.State) != "state 1" {
				t.Errorf("state %d is %q of %d", i, s.State, s.Subtask)
			}
			if s.Mine {
				mine[i]++
			}
		}
	}
	if len(mine) != 3 || mine[0] != 1 || mine[1] != 1 || mine[2] != 1 {
		t.Errorf("who goes on with which state: %v", mine)
	}
}

func TestWritersFlushForCheckpoints(t *testing.T) {
	l := &log{}
	op := Writer(kit.TypeOf[int64](t), l)
	kit.Must(t, op.Open(kit.Runtime()))
	if s := snapshot(t, op, 3); len(s.Lists) != 0 {
		t.Errorf("lists %v", s.Lists)
	}
	if _, ok := op.(operator.CheckpointListener); ok {
		t.Error("a task with a writer that commits nothing would wait for a last checkpoint")
	}
	kit.Must(t, op.Inputs()[0].Mark(kit.End()))
	snapshot(t, op, 4)
	if want := []string{"flush false", "flush true"}; !slices.Equal(l.lines, want) {
		t.Errorf("got %q, want %q", l.lines, want)
	}
}

func TestErrorsOfSnapshotsComeBack(t *testing.T) {
	own := errors.New("own")
	for _, call := range []string{"flush", "prepare", "snapshot", "commit"} {
		b := &book{log: log{fail: map[string]error{call: own}}}
		op := openBook(t, b, kit.Runtime())
		write(t, op, 1)
		err := op.(operator.Snapshotter).Snapshot(&operator.Snapshot{ID: 1})
		if call == "commit" {
			kit.Must(t, err)
			err = op.(operator.CheckpointListener).CheckpointCompleted(1)
		}
		if !errors.Is(err, own) {
			t.Errorf("%s fails: error %v", call, err)
		}
	}
	for name, l := range map[string]checkpoint.List{
		"cut":             {Name: committablesName, Items: [][]byte{{1}}},
		"of another type": {Name: committablesName, Items: [][]byte{{1}}, Schema: &serde.Schema{Kind: serde.Bool}},
		"malformed":       {Name: writerName, Items: [][]byte{{0x80}}},
	} {
		rt := kit.Runtime()
		rt.Restored = &operator.Restored{Lists: []checkpoint.List{l}}
		op := Committing(kit.TypeOf[int64](t), pages(t), &book{})
		if err := op.Open(rt); err == nil {
			t.Errorf("%s: no error", name)
		}
		kit.Must(t, op.Close())
	}
	rt := kit.Runtime()
	rt.Restored = &operator.Restored{Lists: []checkpoint.List{{Name: writerName, Items: [][]byte{{0, 1}}}}}
	if err := Writer(kit.TypeOf[int64](t), &log{}).Open(rt); err == nil || !strings.Contains(err.Error(), "takes none") {
		t.Errorf("state for a sink without: error %v", err)
	}
}
