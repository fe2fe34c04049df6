package twophase_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/twophase"
)

// desk is what a subtask gets.
type desk struct {
	now    int64
	counts map[string]int64
}

func (d *desk) Context() context.Context { return context.Background() }
func (d *desk) Subtask() int             { return 0 }
func (d *desk) Parallelism() int         { return 1 }
func (d *desk) Attempt() int             { return 0 }
func (d *desk) Now() int64               { return d.now }
func (d *desk) Counter(name string, n int64) {
	if d.counts == nil {
		d.counts = map[string]int64{}
	}
	d.counts[name] += n
}

// player calls a writer as the engine does.
type player struct {
	*testing.T
	w connector.Writer[string]
}

func open(t *testing.T, b *bank, d *desk, opts ...twophase.Option) (*twophase.Sink[string, string], *player) {
	t.Helper()
	s, err := twophase.New(b.connect, opts...)
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Writer(d)
	if err != nil {
		t.Fatal(err)
	}
	return s, &player{t, w}
}

func (p *player) write(xs ...string) {
	p.Helper()
	for _, x := range xs {
		if err := p.w.Write(x, connector.ElementContext{}); err != nil {
			p.Fatal(err)
		}
	}
}

func (p *player) checkpoint() (prepared []twophase.Pending[string], state []byte) {
	p.Helper()
	prepared, err := p.w.(connector.CommittingWriter[string, twophase.Pending[string]]).Prepare()
	if err == nil {
		state, err = p.w.(connector.StatefulWriter).Snapshot(1)
	}
	if err != nil {
		p.Fatal(err)
	}
	return prepared, state
}

func wantCalls(t *testing.T, b *bank, want ...string) {
	t.Helper()
	if got := b.take(); !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
}

func TestEachCheckpointPreparesATransactionAndBeginsTheNext(t *testing.T) {
	b := newBank()
	_, p := open(t, b, &desk{now: 7})
	p.write("a", "b")
	prepared, _ := p.checkpoint()
	if want := (twophase.Pending[string]{Transaction: "tx0", Begun: 7}); len(prepared) != 1 || prepared[0] != want {
		t.Errorf("prepared %v, want %v", prepared, want)
	}
	wantCalls(t, b, "begin tx0", "prepare tx0", "begin tx1")
	if prepared, _ = p.checkpoint(); len(prepared) != 0 {
		t.Errorf("nothing was written, and %v is to be committed", prepared)
	}
	if err := p.w.Close(); err != nil {
		t.Error(err)
	}
	wantCalls(t, b, "abort tx1")
}

func TestARestoreAbortsWhatWasOpen(t *testing.T) {
	b := newBank()
	s, p := open(t, b, &desk{})
	p.write("a")
	_, state := p.checkpoint()
	p.write("lost with the process")
	b.take()
	_, err := s.RestoreWriter(&desk{}, 1, []connector.WriterState{{State: state}, {Subtask: 1, Mine: true, State: state}})
	if err != nil {
		t.Fatal(err)
	}
	wantCalls(t, b, "abort tx1", "begin tx2")
	for name, state := range map[string][]byte{"empty": {}, "cut": state[:1]} {
		if _, err := s.RestoreWriter(&desk{}, 1, []connector.WriterState{{Mine: true, State: state}}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestAnEmptyTransactionIsRenewedBeforeItTimesOut(t *testing.T) {
	b, d := newBank(), &desk{}
	_, p := open(t, b, d, twophase.Timeout(time.Second))
	d.now = 500
	p.checkpoint()
	wantCalls(t, b, "begin tx0")
	d.now = 501
	p.checkpoint()
	wantCalls(t, b, "abort tx0", "begin tx1")
}

func TestCommitsThatFailAreForgivenOnlyWhenToldSoAndTooOld(t *testing.T) {
	for _, c := range []struct {
		name string
		now  int64
		opts []twophase.Option
		ok   bool
	}{
		{"no timeout", 5000, nil, false},
		{"a timeout alone", 5000, []twophase.Option{twophase.Timeout(time.Second)}, false},
		{"young", 1000, []twophase.Option{twophase.Timeout(time.Second), twophase.IgnoreFailuresAfterTimeout()}, false},
		{"old", 1001, []twophase.Option{twophase.Timeout(time.Second), twophase.IgnoreFailuresAfterTimeout()}, true},
	} {
		b, d := newBank(), &desk{}
		s, p := open(t, b, d, c.opts...)
		p.write("a")
		first, _ := p.checkpoint()
		p.write("b")
		second, _ := p.checkpoint()
		committer, err := s.Committer(d)
		if err != nil {
			t.Fatal(err)
		}
		d.now = c.now
		own := errors.New("the bank is closed")
		b.fail["commit"] = own
		err = committer.Commit(t.Context(), append(first, second...))
		if (err == nil) != c.ok || !c.ok && !errors.Is(err, own) {
			t.Errorf("%s: error %v", c.name, err)
		}
		if lost := d.counts["lostTransactions"]; c.ok != (lost == 2) {
			t.Errorf("%s: %d transactions are counted as lost", c.name, lost)
		}
		delete(b.fail, "commit")
		if err := committer.Commit(t.Context(), append(first, second...)); err != nil || len(b.has()) != 2 {
			t.Errorf("%s: another try committed %q, %v", c.name, b.has(), err)
		}
		if err := committer.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestErrorsOfTheSystemComeBack(t *testing.T) {
	own := errors.New("the bank is closed")
	for call, play := range map[string]func(s *twophase.Sink[string, string], p *player) error{
		"write": func(_ *twophase.Sink[string, string], p *player) error {
			return p.w.Write("a", connector.ElementContext{})
		},
		"prepare": prepare,
		"begin":   prepare,
		"abort":   func(_ *twophase.Sink[string, string], p *player) error { return p.w.Close() },
		"close":   func(_ *twophase.Sink[string, string], p *player) error { return p.w.Close() },
		"connect": func(s *twophase.Sink[string, string], _ *player) error {
			_, err := s.Committer(&desk{})
			_, again := s.Writer(&desk{})
			if again == nil {
				return nil
			}
			return err
		},
	} {
		b := newBank()
		s, p := open(t, b, &desk{})
		if call != "write" {
			p.write("a")
		}
		b.fail[call] = own
		if err := play(s, p); !errors.Is(err, own) {
			t.Errorf("%s fails: error %v", call, err)
		}
		if call == "begin" && len(b.open) != 0 {
			t.Errorf("the next transaction can't be begun, and %v is left open", b.open)
		}
	}
}

func prepare(_ *twophase.Sink[string, string], p *player) error {
	_, err := p.w.(connector.CommittingWriter[string, twophase.Pending[string]]).Prepare()
	return err
}

func TestBadSettingsAreRefused(t *testing.T) {
	for want, opts := range map[string][]twophase.Option{
		"1 ms or more":    {twophase.Timeout(time.Microsecond)},
		"needs a Timeout": {twophase.IgnoreFailuresAfterTimeout()},
	} {
		if _, err := twophase.New(newBank().connect, opts...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	type unencodable struct{ F func() }
	open := func(connector.WriterContext) (twophase.Transactions[string, unencodable], error) { return nil, nil }
	if _, err := twophase.New[string, string](nil); err == nil || !strings.Contains(err.Error(), "nil") {
		t.Errorf("without a connection: %v", err)
	}
	if _, err := twophase.New(open); err == nil {
		t.Error("a transaction that can't be in a snapshot is taken")
	}
}
