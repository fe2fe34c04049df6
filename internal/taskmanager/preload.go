package taskmanager

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/statebackend"
)

// Preloaded are stores of a job that were filled from its snapshot before a task runs, so that reading them is the check of
// the snapshot as well: it is read once. The first attempt takes them.
type Preloaded struct {
	mu     sync.Mutex
	stores map[storeID]*preloaded
}

// storeID names the store of an operator of a subtask.
type storeID struct {
	operator string
	subtask  int
}

// preloaded is a store that is to be an operator's. It runs on the clock of the process until then.
type preloaded struct {
	statebackend.Store
	opt   statebackend.Options
	now   func() int64
	yield func()
}

// opened notes what an operator opens: its store and the tables in it.
type opened struct {
	statebackend.Store
	opt   statebackend.Options
	specs []statebackend.TableSpec
}

// Table implements statebackend.Store.
func (o *opened) Table(spec statebackend.TableSpec) (statebackend.Table, error) {
	o.specs = append(o.specs, spec)
	return o.Store.Table(spec)
}

// List implements statebackend.Store.
func (o *opened) List(spec statebackend.TableSpec) (statebackend.ListTable, error) {
	o.specs = append(o.specs, spec)
	return o.Store.List(spec)
}

// Map implements statebackend.Store.
func (o *opened) Map(spec statebackend.TableSpec) (statebackend.MapTable, error) {
	o.specs = append(o.specs, spec)
	return o.Store.Map(spec)
}

// watch notes what is opened in a store that keeps its state in memory, which others may fill before the subtask begins: those on
// disk, which keep timers as well, are left to their subtasks.
func watch(o statebackend.Options, s statebackend.Store) *opened {
	if _, ok := s.(statebackend.TimerStore); ok {
		return nil
	}
	return &opened{Store: s, opt: o}
}

// Preload opens the stores of the operators that Fit has tried, for each of their subtasks and with the tables that were opened
// then, and fills them from the snapshot that an audit checks, as many at a time as there are processors. After an error nothing is
// held.
func Preload(ctx context.Context, job *Job, opt Options, fits []Fitting, audit *checkpoint.Audit) (*Preloaded, error) {
	p := &Preloaded{stores: map[storeID]*preloaded{}}
	var fills []func() error
	for i := range fits {
		f := &fits[i]
		if f.opened == nil || f.Err != nil {
			continue
		}
		for _, v := range job.Graph.Vertices {
			if slices.Contains(v.Nodes, f.Node) {
				for _, st := range v.Subtasks {
					fills = append(fills, func() error { return p.fill(opt, f, v, st, audit) })
				}
			}
		}
	}
	if err := together(ctx, fills); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// together does all, some at a time, until one fails.
func together(ctx context.Context, all []func() error) error {
	errs := make([]error, len(all))
	var next, failed atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(all)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(all)) && failed.Load() == 0; i = next.Add(1) - 1 {
				if errs[i] = ctx.Err(); errs[i] == nil {
					errs[i] = all[i]()
				}
				if errs[i] != nil {
					failed.Store(1)
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// fill fills the store of one subtask.
func (p *Preloaded) fill(opt Options, f *Fitting, v *plan.ExecutionVertex, st *plan.Subtask, audit *checkpoint.Audit) (err error) {
	n := f.Node
	if opt.Restore.finished(v.Vertex, st.Index) {
		return nil
	}
	s, o := newPreloaded(f.opened.opt, opt.Clock.Millis)
	groups := st.KeyGroups[n.Index]
	o.FirstGroup, o.LastGroup = groups.First, groups.Last
	o.Memory = opt.Memory
	if o.Restored, err = audit.Restore(n.ID.String(), st.Index, v.Parallelism, n.MaxParallelism); err != nil {
		return err
	}
	if s.Store, err = opt.Backend.Open(o); err != nil {
		return err
	}
	for i := range f.opened.specs {
		if err := openTable(s.Store, &f.opened.specs[i]); err != nil {
			return errors.Join(fmt.Errorf("fill the state of subtask %d of %s: %w", st.Index+1, v.Name, err), s.Close())
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stores[storeID{n.ID.String(), st.Index}] = s
	return nil
}

// newPreloaded gives a store that is yet to be opened, for an operator that opens it with some options, and with which options to
// open it: its clock and its courtesy become the operator's when that takes it.
func newPreloaded(opt statebackend.Options, now func() int64) (*preloaded, statebackend.Options) {
	s := &preloaded{opt: opt, now: now}
	opt.Now = func() int64 { return s.now() }
	opt.Yield = func() {
		if s.yield != nil {
			s.yield()
		}
	}
	return s, opt
}

func openTable(s statebackend.Store, spec *statebackend.TableSpec) (err error) {
	switch spec.Kind() {
	case "list":
		_, err = s.List(*spec)
	case "map":
		_, err = s.Map(*spec)
	default:
		_, err = s.Table(*spec)
	}
	return err
}

// take gives the store of an operator, once; nil if there is none, or none for keys of its type.
func (p *Preloaded) take(id storeID, o *statebackend.Options) statebackend.Store {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	s := p.stores[id]
	if s == nil || o.Key != s.opt.Key || o.Seed != s.opt.Seed || o.Operator != s.opt.Operator {
		p.mu.Unlock()
		return nil
	}
	delete(p.stores, id)
	p.mu.Unlock()
	s.yield = o.Yield
	if o.Now != nil {
		s.now = o.Now
	}
	return s.Store
}

// drop closes the store of an operator that a first attempt has not taken: what follows does not begin with it, and needs its
// memory.
func (p *Preloaded) drop(id storeID) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.stores[id]; s != nil {
		delete(p.stores, id)
		_ = s.Close() // memory alone
	}
}

// Close closes the stores that nobody has taken.
func (p *Preloaded) Close() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for id, s := range p.stores {
		errs = append(errs, s.Close())
		delete(p.stores, id)
	}
	return errors.Join(errs...)
}
