package streaming_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/twophase"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/sink"
	"github.com/flott-dev/flott/serde"
)

// vault is a system with transactions.
type vault struct {
	next     int
	open     map[int][]string
	done     map[int][]string
	fail     bool // commits fail
	readonly bool
}

var errVault = errors.New("the vault is shut")

func (v *vault) Begin() (int, error) {
	if v.readonly {
		return 0, errVault
	}
	v.next++
	v.open[v.next] = nil
	return v.next, nil
}

func (v *vault) Write(tx int, x string, _ connector.ElementContext) error {
	if v.readonly {
		return errVault
	}
	v.open[tx] = append(v.open[tx], x)
	return nil
}

func (v *vault) Prepare(int) error { return nil }

func (v *vault) Commit(_ context.Context, tx int) error {
	if v.fail {
		return errVault
	}
	if _, ok := v.done[tx]; !ok {
		v.done[tx] = v.open[tx]
		delete(v.open, tx)
	}
	return nil
}

func (v *vault) Abort(tx int) error {
	delete(v.open, tx)
	return nil
}

func (v *vault) Close() error { return nil }

type commitCase struct {
	conformance.Head
	Kind  string       `json:"kind"`
	Note  string       `json:"note"`
	Steps []commitStep `json:"steps"`
}

type commitStep struct {
	Clock       *int64  `json:"clock"`
	Invoke      *string `json:"invoke"`
	Snapshot    *int64  `json:"snapshot"`
	Complete    *int64  `json:"notify_complete"`
	CommitFails *bool   `json:"commit_fails"`
	Writable    *bool   `json:"storage_writable"`
	Close       bool    `json:"close"`
	NewOperator *struct {
		Timeout  int64 `json:"transaction_timeout_ms"`
		Forgives bool  `json:"ignore_failures_after_timeout"`
	} `json:"new_operator"`
	Restore         *int64       `json:"restore_from_snapshot"`
	ExpectError     bool         `json:"expect_error"`
	ExpectFailureOf []commitStep `json:"expect_failure_of"`
	Expect          *struct {
		Committed []string `json:"committed"`
		Left      *int     `json:"open_or_prepared"`
	} `json:"expect"`
}

// commitBench drives the sink operator.
type commitBench struct {
	*testing.T
	vault *vault
	rt    *operator.Runtime
	opts  []twophase.Option
	op    operator.Operator // nil: none is open
	taken map[int64]*kit.Taken
}

// runTwoPhaseCommit plays a case against the operator of two-phase-commit sinks. Ids of snapshots are one more than the
// case's, as there is no checkpoint 0.
func runTwoPhaseCommit(t *testing.T, c conformance.Case) {
	var v commitCase
	c.Decode(t, &v)
	b := &commitBench{T: t, vault: &vault{open: map[int][]string{}, done: map[int][]string{}}, rt: kit.Runtime(), taken: map[int64]*kit.Taken{}}
	for i := range v.Steps {
		s := &v.Steps[i]
		switch {
		case len(s.ExpectFailureOf) > 0:
			failed := false
			for j := range s.ExpectFailureOf {
				failed = failed || b.step(&s.ExpectFailureOf[j]) != nil
			}
			if !failed {
				t.Errorf("step %d: nothing failed", i)
			}
		case s.Expect != nil:
			b.check(i, s)
		default:
			if err := b.step(s); (err != nil) != s.ExpectError {
				t.Fatalf("step %d: error %v, expected %v", i, err, s.ExpectError)
			}
		}
	}
	if b.op != nil {
		kit.Must(t, b.op.Close())
	}
}

func (b *commitBench) step(s *commitStep) error {
	switch {
	case s.Clock != nil:
		b.rt.Now = *s.Clock
	case s.CommitFails != nil:
		b.vault.fail = *s.CommitFails
	case s.Writable != nil:
		b.vault.readonly = !*s.Writable
	case s.NewOperator != nil:
		b.opts = []twophase.Option{twophase.Timeout(time.Duration(s.NewOperator.Timeout) * time.Millisecond)}
		if s.NewOperator.Forgives {
			b.opts = append(b.opts, twophase.IgnoreFailuresAfterTimeout())
		}
	case s.Restore != nil:
		return b.open(b.taken[*s.Restore].Restored())
	case s.Close:
		op := b.op
		b.op = nil
		return op.Close()
	default:
		return b.use(s)
	}
	return nil
}

// use does what needs an open operator.
func (b *commitBench) use(s *commitStep) error {
	if b.op == nil {
		if err := b.open(nil); err != nil {
			return err
		}
	}
	switch {
	case s.Invoke != nil:
		return b.op.Inputs()[0].Push(kit.Run(b, nil, *s.Invoke))
	case s.Snapshot != nil:
		b.taken[*s.Snapshot] = kit.Take(b, b.op)
		return nil
	case s.Complete != nil:
		return b.op.(operator.CheckpointListener).CheckpointCompleted(*s.Complete + 1)
	}
	return fmt.Errorf("a step without a known word")
}

func (b *commitBench) open(restored *operator.Restored) error {
	s, err := twophase.New(func(connector.WriterContext) (twophase.Transactions[string, int], error) { return b.vault, nil }, b.opts...)
	if err != nil {
		return err
	}
	typ, err := serde.Of[twophase.Pending[int]]()
	if err != nil {
		return err
	}
	b.rt.Restored = restored
	b.op = sink.Committing(kit.TypeOf[string](b), typ, s)
	if err = b.op.Open(b.rt); err != nil {
		kit.Must(b, b.op.Close())
		b.op = nil
	}
	return err
}

func (b *commitBench) check(i int, s *commitStep) {
	b.Helper()
	var got []string
	for _, xs := range b.vault.done {
		got = append(got, xs...)
	}
	slices.Sort(got)
	compare(b.T, i, "committed", got, s.Expect.Committed, false)
	if left := len(b.vault.open); s.Expect.Left != nil && left != *s.Expect.Left {
		b.Errorf("step %d: %d transactions are left, want %d", i, left, *s.Expect.Left)
	}
}
