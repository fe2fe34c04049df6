package env

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/element"
)

// Random programs that take checkpoints and fail at random moments give, behind sinks that commit with checkpoints, what a
// plain loop gives: nothing is lost and nothing comes twice, whatever the schedule.
func TestRandomGraphsThatFailGiveWhatALoopGives(t *testing.T) {
	first := number(t, "FLOTT_SEED", 1)
	restored := int64(0)
	for seed := first; seed < first+20*number(t, "FLOTT_SOAK", 1); seed++ {
		for _, schedule := range []uint64{1, 2} {
			e := New()
			p := growKept(t, e, uint64(seed))
			if _, err := e.Simulate(t.Context(), "random", schedule); err != nil {
				t.Fatalf("FLOTT_SEED=%d, schedule %d: %v\n%s", seed, schedule, err, p)
			}
			p.checkKept(t, fmt.Sprintf("FLOTT_SEED=%d, schedule %d", seed, schedule))
		}
		synctest.Test(t, func(t *testing.T) {
			e := New()
			p := growKept(t, e, uint64(seed))
			x, err := e.Start(t.Context(), "random")
			if err != nil {
				t.Fatalf("FLOTT_SEED=%d: %v\n%s", seed, err, p)
			}
			<-x.Done()
			if x.Err() != nil {
				t.Fatalf("FLOTT_SEED=%d, goroutines: %v\n%s", seed, x.Err(), p)
			}
			restored += x.Checkpoints().Counts.Restored
			p.checkKept(t, fmt.Sprintf("FLOTT_SEED=%d, goroutines", seed))
		})
		if t.Failed() {
			return
		}
	}
	if restored == 0 {
		t.Error("no job was ever restored from a checkpoint: the test tests nothing")
	}
}

// growKept makes the program of a seed whose sources can be resumed and whose sinks commit.
func growKept(t *testing.T, e *Env, seed uint64) *plant {
	c := &e.Settings.Checkpoints
	c.Enabled, c.Interval = true, 10*time.Millisecond
	e.Settings.Restart = FixedDelay(1000, time.Millisecond)
	p := growWith(t, e, seed, true)
	if p.rng.IntN(3) == 0 {
		c.MaxConcurrent = 3
	}
	return p
}

// mine fails after so many elements, over all attempts.
type mine struct {
	mu    sync.Mutex
	after []int // ascending
	seen  int
}

func newMine(rng *rand.Rand, elements int) *mine {
	m := &mine{}
	for range rng.IntN(3) {
		m.after = append(m.after, 1+rng.IntN(2*elements+1))
	}
	slices.Sort(m.after)
	return m
}

// step reports whether the mine goes off.
func (m *mine) step(n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen += n
	if len(m.after) == 0 || m.seen < m.after[0] {
		return false
	}
	m.after = m.after[1:]
	return true
}

var errMine = errors.New("a mine went off")

// lay puts a mine into a stream.
func (p *plant) lay(b branch) {
	typ, m := p.typ, newMine(p.rng, len(b.xs))
	n := p.add(graph.Operator, fmt.Sprint("mine ", m.after), typ, func() operator.Operator {
		return element.TryMap(typ, typ, func(_ context.Context, x int64) (int64, error) {
			if m.step(1) {
				return 0, errMine
			}
			return x, nil
		})
	}, p.edge(b, 0))
	p.streams = append(p.streams, branch{node: n, xs: b.xs})
}

// trailer emits one more element at the end.
type trailer struct {
	operator.Unary
}

func (o *trailer) Inputs() []operator.Input { return []operator.Input{o} }
func (o *trailer) Push(r *frame.Run) error  { return o.Out.Push(r) }

func (o *trailer) Mark(m frame.Mark) error {
	if m.Kind == frame.End {
		col := frame.NewColumn(o.In, 1)
		frame.Add(col, int64(777), frame.NoTime)
		r := col.Run()
		if err := o.Out.Push(&r); err != nil {
			return err
		}
	}
	return o.Out.Mark(m)
}

// trail lets the subtasks of an operator emit one more element each, at the end.
func (p *plant) trail(b branch) {
	typ := p.typ
	n := p.add(graph.Operator, "trailer", typ, func() operator.Operator {
		return &trailer{operator.Unary{In: typ, Out: operator.NewOutput(typ)}}
	}, p.edge(b, 0))
	xs := slices.Clone(b.xs)
	for range p.parallelism(n) {
		xs = append(xs, 777)
	}
	p.streams = append(p.streams, branch{node: n, xs: xs})
}

// resumed is a source of a slice that goes on where a snapshot found it. It pauses now and then.
type resumed struct {
	out  operator.Output
	rt   *operator.Runtime
	xs   []int64
	left [][2]int // from, to
	rng  *rand.Rand
	col  *frame.Column
	rest bool // it pauses
}

func (s *resumed) Inputs() []operator.Input { return nil }

func (s *resumed) Output(tag string) *operator.Output {
	if tag == "" {
		return &s.out
	}
	return nil
}

func (s *resumed) Open(rt *operator.Runtime) error {
	s.rt = rt
	s.out.Bind(rt)
	s.col = frame.NewColumn(s.out.Type, frame.DefaultLen)
	s.rng = rand.New(rand.NewPCG(uint64(len(s.xs)), uint64(rt.Subtask)))
	if rt.Restored == nil {
		s.left = [][2]int{{len(s.xs) * rt.Subtask / rt.Parallelism, len(s.xs) * (rt.Subtask + 1) / rt.Parallelism}}
		return nil
	}
	for _, item := range rt.Restored.List("position").Items {
		s.left = append(s.left, [2]int{int(binary.LittleEndian.Uint64(item)), int(binary.LittleEndian.Uint64(item[8:]))})
	}
	return nil
}

func (s *resumed) Close() error { return nil }

func (s *resumed) Snapshot(to *operator.Snapshot) error {
	l := checkpoint.List{Name: "position"}
	for _, r := range s.left {
		l.Items = append(l.Items, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(r[0])), uint64(r[1])))
	}
	to.Lists = append(to.Lists, l)
	return nil
}

func (s *resumed) Poll() (operator.Status, error) {
	for len(s.left) > 0 && s.left[0][0] == s.left[0][1] {
		s.left = s.left[1:]
	}
	switch {
	case s.rest:
		return operator.Nothing, nil
	case len(s.left) == 0:
		return operator.Done, nil
	case s.rng.IntN(4) == 0:
		s.rest = true
		s.rt.Timers.Schedule(s.rt.Now+s.rng.Int64N(5), func(int64) error {
			s.rest = false
			return nil
		})
		return operator.Nothing, nil
	}
	at := &s.left[0]
	n := min(1+s.rng.IntN(60), at[1]-at[0])
	s.col.Reset()
	for _, x := range s.xs[at[0] : at[0]+n] {
		frame.Add(s.col, x, frame.NoTime)
	}
	at[0] += n
	r := s.col.Run()
	return operator.More, s.out.Push(&r)
}

// vault is where committing sinks commit: each transaction once, however often it is committed.
type vault struct {
	mu        sync.Mutex
	committed map[[2]int64][]int64 // by checkpoint and subtask
	err       error
}

func (v *vault) commit(id, subtask int64, xs []int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if have, ok := v.committed[[2]int64{id, subtask}]; ok && !slices.Equal(have, xs) {
		v.err = fmt.Errorf("transaction %d of subtask %d was committed with %d elements, and then with %d", id, subtask, len(have), len(xs))
	}
	v.committed[[2]int64{id, subtask}] = slices.Clone(xs)
}

func (v *vault) all() []int64 {
	var xs []int64
	for _, of := range v.committed {
		xs = append(xs, of...)
	}
	slices.Sort(xs)
	return xs
}

// committer takes transactions; the same one twice is the same as once.
type committer interface {
	commit(id, subtask int64, xs []int64)
}

// teller is a sink that commits with checkpoints.
type teller struct {
	drain
	to      committer
	fuse    *mine // goes off when a checkpoint is complete, after the commit
	open    []int64
	pending []transaction
}

type transaction struct {
	id, subtask int64
	xs          []int64
}

func (d *teller) Inputs() []operator.Input { return []operator.Input{d} }

func (d *teller) Open(rt *operator.Runtime) error {
	if err := d.drain.Open(rt); err != nil {
		return err
	}
	if !rt.FinalCheckpoint {
		return errors.New("no checkpoint follows the end")
	}
	if rt.Restored == nil {
		return nil
	}
	for _, item := range rt.Restored.List("transactions").Items {
		var xs []int64
		for b := item[16:]; len(b) > 0; b = b[8:] {
			xs = append(xs, int64(binary.LittleEndian.Uint64(b)))
		}
		d.to.commit(int64(binary.LittleEndian.Uint64(item)), int64(binary.LittleEndian.Uint64(item[8:])), xs)
	}
	return nil
}

func (d *teller) Push(r *frame.Run) error {
	d.open = append(d.open, frame.Values[int64](r)...)
	return nil
}

func (d *teller) Snapshot(to *operator.Snapshot) error {
	d.pending = append(d.pending, transaction{to.ID, int64(d.subtask), d.open})
	d.open = nil
	l := checkpoint.List{Name: "transactions"}
	for _, t := range d.pending {
		item := binary.LittleEndian.AppendUint64(nil, uint64(t.id))
		item = binary.LittleEndian.AppendUint64(item, uint64(t.subtask))
		for _, x := range t.xs {
			item = binary.LittleEndian.AppendUint64(item, uint64(x))
		}
		l.Items = append(l.Items, item)
	}
	to.Lists = append(to.Lists, l)
	return nil
}

func (d *teller) CheckpointCompleted(id int64) error {
	for len(d.pending) > 0 && d.pending[0].id <= id {
		d.to.commit(d.pending[0].id, d.pending[0].subtask, d.pending[0].xs)
		d.pending = d.pending[1:]
	}
	if d.fuse.step(1) {
		return errMine
	}
	return nil
}

func (d *teller) CheckpointAborted(int64) error { return nil }

// checkKept compares what was committed with what a loop gives.
func (p *plant) checkKept(t *testing.T, how string) {
	t.Helper()
	for _, s := range p.sinks {
		if s.vault.err != nil {
			t.Errorf("%s: %s: %v\n%s", how, s.name, s.vault.err, p)
		}
		if got := s.vault.all(); !slices.Equal(got, s.want) {
			t.Errorf("%s: %s committed %d elements, a loop gives %d, or others\n%s", how, s.name, len(got), len(s.want), p)
		}
	}
}
