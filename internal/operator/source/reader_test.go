package source

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
)

// span is a part of a file, say: a split with memory of its own.
type span struct {
	Path     string
	From, To int64
	Tags     []string
}

func handleOf[S any](t testing.TB) *serde.Handle {
	t.Helper()
	h, err := serde.Of[S]()
	kit.Must(t, err)
	return h
}

// scripted is a source whose reader does what the test says at each Poll, and whose enumerator deals spans.
type scripted struct {
	polls    []func(out *connector.Output[int64]) (connector.Status, error)
	got      []span
	log      []string
	ctx      connector.ReaderContext
	enum     connector.EnumeratorContext[span]
	fail     error // of opening
	restored []byte
	// unfinished are the reader's splits at a snapshot.
	unfinished []span
}

func (s *scripted) Bounded() bool { return true }

func (s *scripted) Reader(ctx connector.ReaderContext) (connector.Reader[int64, span], error) {
	s.ctx = ctx
	return &scriptedReader{s}, s.fail
}

func (s *scripted) Enumerator(ctx connector.EnumeratorContext[span], restored []byte) (connector.Enumerator[span], error) {
	s.enum, s.restored = ctx, restored
	if s.fail != nil {
		return nil, s.fail
	}
	return &scriptedEnumerator{s}, nil
}

func (s *scripted) note(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

type scriptedReader struct{ s *scripted }

func (r *scriptedReader) Poll(out *connector.Output[int64]) (connector.Status, error) {
	next := r.s.polls[0]
	r.s.polls = r.s.polls[1:]
	return next(out)
}

func (r *scriptedReader) AddSplits(splits []span) error {
	r.s.got = append(r.s.got, splits...)
	return nil
}
func (r *scriptedReader) NoMoreSplits() { r.s.note("no more splits") }
func (r *scriptedReader) Snapshot(id int64) ([]span, error) {
	r.s.note("snapshot %d", id)
	return r.s.unfinished, nil
}

func (r *scriptedReader) Committed(id int64) error {
	r.s.note("committed %d", id)
	return nil
}

func (r *scriptedReader) Close() error {
	r.s.note("closed")
	return nil
}

type scriptedEnumerator struct{ s *scripted }

func (e *scriptedEnumerator) Start() error {
	e.s.note("started")
	return nil
}

func (e *scriptedEnumerator) Request(subtask int) error {
	e.s.note("request of %d", subtask)
	return nil
}
func (e *scriptedEnumerator) AddBack(int, []span) error { return nil }
func (e *scriptedEnumerator) Snapshot(id int64) ([]byte, error) {
	return fmt.Append(nil, "snapshot ", id), nil
}

func (e *scriptedEnumerator) Close() error {
	e.s.note("closed")
	return nil
}

// openReader opens a scripted reader; requests gets what it sends to its enumerator.
func openReader(t *testing.T, s *scripted) (op operator.Operator, out *kit.Recorder, rt *operator.Runtime, requests *[][]byte) {
	t.Helper()
	rt, requests = kit.Runtime(), &[][]byte{}
	rt.ToCoordinator = func(event []byte) { *requests = append(*requests, event) }
	op = Reader(kit.TypeOf[int64](t), handleOf[span](t), s)
	return op, kit.OpenAt(t, op, rt), rt, requests
}

func TestReaderEmitsWhatTheConnectorsReaderEmits(t *testing.T) {
	own := errors.New("own")
	s := &scripted{polls: []func(out *connector.Output[int64]) (connector.Status, error){
		func(out *connector.Output[int64]) (connector.Status, error) {
			if out.Room() != 3 {
				t.Errorf("room for %d, want the length of a run", out.Room())
			}
			out.Emit(1)
			out.EmitAt(2, 20)
			out.Watermark(15)
			return connector.More, nil
		},
		func(out *connector.Output[int64]) (connector.Status, error) {
			out.Idle()
			out.Idle()
			return connector.Nothing, nil
		},
		func(out *connector.Output[int64]) (connector.Status, error) {
			if n := out.EmitSlice([]int64{3, 4, 5, 6}); n != 3 {
				t.Errorf("%d of 4 elements were taken", n)
			}
			return connector.Done, nil
		},
		func(out *connector.Output[int64]) (connector.Status, error) {
			out.Emit(7)
			return connector.More, own
		},
	}}
	op, out, rt, requests := openReader(t, s)
	rt.RunLen = 3
	if len(*requests) != 1 || !slices.Equal((*requests)[0], []byte{eventRequest}) {
		t.Errorf("requests %v: the reader asks for work when it is opened", *requests)
	}
	for _, want := range []operator.Status{operator.More, operator.Nothing, operator.Done} {
		if got, err := op.(operator.Source).Poll(); got != want || err != nil {
			t.Errorf("status %v, error %v, want %v", got, err, want)
		}
	}
	out.Want(t, "1", "2@20", "watermark 15", "idle", "active", "3", "4", "5")
	if status, err := op.(operator.Source).Poll(); status != operator.Done || !errors.Is(err, own) {
		t.Errorf("status %v, error %v", status, err)
	}
	out.Want(t, "7") // what was read before the error is not lost
	s.ctx.RequestSplit()
	if len(*requests) != 2 {
		t.Errorf("%d requests", len(*requests))
	}
	s.ctx.Counter("bad records", 3)
	s.ctx.Counter("bad records", 4)
	if got := rt.Host.(*kit.Host).Metrics["bad records"].Read(); got != int64(7) {
		t.Errorf("the metric is %v", got)
	}
}

func TestErrorsOfConsumersComeBackFromMarks(t *testing.T) {
	own := errors.New("own")
	s := &scripted{polls: []func(out *connector.Output[int64]) (connector.Status, error){
		func(out *connector.Output[int64]) (connector.Status, error) {
			out.Emit(1)
			out.Watermark(5)
			out.Watermark(6)
			return connector.More, nil
		},
	}}
	op, out, _, _ := openReader(t, s)
	out.Fail = own
	if _, err := op.(operator.Source).Poll(); !errors.Is(err, own) {
		t.Errorf("error %v", err)
	}
	out.Want(t, "1")
}

func TestSplitsTravelAsBytes(t *testing.T) {
	s := &scripted{}
	op, _, _, _ := openReader(t, s)
	spans := []span{{Path: "a", From: 1, To: 2}, {}, {Path: "b", To: -1, Tags: []string{"x", ""}}}
	event, err := encodeSplits(handleOf[span](t), spans)
	kit.Must(t, err)
	kit.Must(t, op.(operator.EventReceiver).HandleEvent(event))
	if fmt.Sprint(s.got) != fmt.Sprint(spans) {
		t.Errorf("the reader got %v", s.got)
	}
	kit.Must(t, op.(operator.EventReceiver).HandleEvent([]byte{eventNoMore}))
	if !slices.Equal(s.log, []string{"no more splits"}) {
		t.Errorf("log %q", s.log)
	}
}

func TestMalformedEventsAreErrors(t *testing.T) {
	s := &scripted{}
	op, _, _, _ := openReader(t, s)
	good, err := encodeSplits(handleOf[span](t), []span{{Path: "abc", Tags: []string{"x"}}})
	kit.Must(t, err)
	events := map[string][]byte{
		"none": nil, "unknown kind": {99}, "no count": {eventSplits}, "endless count": slices.Repeat([]byte{0xff}, 12),
		"more splits than bytes": {eventSplits, 200, 1}, "bytes left": append(slices.Clone(good), 0),
		"count too large": {eventSplits, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
	}
	for n := 2; n < len(good); n++ {
		events[fmt.Sprint("cut after ", n)] = good[:n]
	}
	for name, event := range events {
		if err := op.(operator.EventReceiver).HandleEvent(event); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if len(s.got) != 0 {
		t.Errorf("the reader got %v", s.got)
	}
	e := Enumerator(handleOf[span](t), s)
	kit.Must(t, e.Start(&coordination{}, nil))
	for _, event := range [][]byte{nil, {eventSplits}, {99, 1}} {
		if err := e.Handle(3, event); err == nil || !strings.Contains(err.Error(), "subtask 3") {
			t.Errorf("the enumerator takes event %v: %v", event, err)
		}
	}
}

func TestSplitsMayBeOfATypeWithoutContent(t *testing.T) {
	h := handleOf[struct{}](t)
	event, err := encodeSplits(h, make([]struct{}, 300))
	kit.Must(t, err)
	if got, err := decodeSplits[struct{}](h, event[1:]); len(got) != 300 || err != nil {
		t.Errorf("%d splits, error %v", len(got), err)
	}
}

func FuzzDecodeSplits(f *testing.F) {
	h := handleOf[span](f)
	for n := range 3 {
		event, err := encodeSplits(h, []span{{Path: "a", From: 1, To: 300}, {Path: "b", Tags: []string{"x"}}}[:n])
		kit.Must(f, err)
		f.Add(event[1:])
	}
	f.Add([]byte{200, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		splits, err := decodeSplits[span](h, b)
		if err != nil {
			return
		}
		event, err := encodeSplits(h, splits)
		kit.Must(t, err)
		again, err := decodeSplits[span](h, event[1:])
		kit.Must(t, err)
		if !reflect.DeepEqual(again, splits) {
			t.Errorf("%+v became %+v", splits, again)
		}
	})
}

func TestReaderEmitsToSideOutputs(t *testing.T) {
	typ, tag, own := kit.TypeOf[int64](t), process.NewOutputTag[string]("bad"), errors.New("own")
	var ctx *process.Context
	s := &scripted{polls: []func(out *connector.Output[int64]) (connector.Status, error){
		func(out *connector.Output[int64]) (connector.Status, error) {
			ctx.Emit(tag, "x")
			out.Emit(1)
			out.Watermark(5)
			ctx.EmitAt(tag, "y", 6)
			return connector.More, nil
		},
	}}
	op := ReaderWithSides(typ, handleOf[span](t), s, map[string]*frame.Type{"bad": kit.TypeOf[string](t)}, func(_ any, to *process.Context) error {
		ctx = to
		return nil
	})
	rt := kit.Runtime()
	rt.ToCoordinator = func([]byte) {}
	side := kit.Record(t, op.Output("bad"), rt)
	out := kit.OpenAt(t, op, rt)
	_, err := op.(operator.Source).Poll()
	kit.Must(t, err)
	kit.Must(t, op.(operator.Finisher).Finish())
	out.Want(t, "1", "watermark 5")
	side.Want(t, "x", "watermark 5", "y@6", fmt.Sprint("watermark ", int64(frame.MaxWatermark)), "end")

	refused := ReaderWithSides(typ, handleOf[span](t), s, map[string]*frame.Type{"bad": typ}, func(any, *process.Context) error { return own })
	if err := refused.Open(rt); !errors.Is(err, own) {
		t.Errorf("error %v", err)
	}
	kit.Must(t, refused.Close())
}

func TestReaderThatCannotBeOpened(t *testing.T) {
	own := errors.New("own")
	op := Reader(kit.TypeOf[int64](t), handleOf[span](t), &scripted{fail: own})
	if err := op.Open(kit.Runtime()); !errors.Is(err, own) {
		t.Errorf("error %v", err)
	}
	kit.Must(t, op.Close())
}

// coordination is an enumerator's way to its subtasks.
type coordination struct {
	sent   map[int][][]byte
	failed error
}

func (c *coordination) Context() context.Context { return context.Background() }
func (c *coordination) Parallelism() int         { return 4 }
func (c *coordination) Send(subtask int, event []byte) {
	if c.sent == nil {
		c.sent = map[int][][]byte{}
	}
	c.sent[subtask] = append(c.sent[subtask], event)
}

func (c *coordination) Do(_ int64, work func(context.Context) error, _ func(error)) {
	c.failed = work(context.Background())
}

func TestEnumeratorTalksToReadersInBytes(t *testing.T) {
	h := handleOf[span](t)
	s, c := &scripted{}, &coordination{}
	e := Enumerator(h, s)
	kit.Must(t, e.Close()) // never started
	kit.Must(t, e.Start(c, []byte("old")))
	kit.Must(t, e.Handle(2, []byte{eventRequest}))
	s.enum.Assign(2, span{Path: "a"}, span{Path: "b"})
	s.enum.NoMoreSplits(2)
	s.enum.NoMoreSplits(0)
	if snapshot, err := e.Snapshot(7); string(snapshot) != "snapshot 7" || err != nil {
		t.Errorf("%q, %v", snapshot, err)
	}
	kit.Must(t, e.Close())
	if want := []string{"started", "request of 2", "closed"}; !slices.Equal(s.log, want) || string(s.restored) != "old" || s.enum.Parallelism() != 4 {
		t.Errorf("log %q, want %q; restored %q", s.log, want, s.restored)
	}
	if len(c.sent[2]) != 2 || len(c.sent[0]) != 1 || c.sent[2][1][0] != eventNoMore || c.sent[0][0][0] != eventNoMore {
		t.Fatalf("sent %v", c.sent)
	}
	splits, err := decodeSplits[span](h, c.sent[2][0][1:])
	if err != nil || len(splits) != 2 || splits[1].Path != "b" {
		t.Errorf("sent splits %v, %v", splits, err)
	}
	own := errors.New("own")
	if err := Enumerator(h, &scripted{fail: own}).Start(c, nil); !errors.Is(err, own) {
		t.Errorf("error %v", err)
	}
}

func TestSplitThatCannotBeEncodedFailsTheJob(t *testing.T) {
	type odd struct{ V any }
	h, err := serde.Of[odd](serde.OneOf[any](int64(0)))
	kit.Must(t, err)
	c := &coordination{}
	enumeratorContext[odd]{c, h}.Assign(1, odd{V: int64(1)}, odd{V: "not in the set"})
	if c.failed == nil || len(c.sent) != 0 {
		t.Errorf("error %v, sent %v", c.failed, c.sent)
	}
}
