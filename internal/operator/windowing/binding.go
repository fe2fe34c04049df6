package windowing

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/window"
)

// assigner is what assigners of all kinds have.
type assigner interface {
	Domain() process.Domain
	DefaultTrigger() window.Trigger
}

// binding is a definition without its types: the closures that are compiled for them.
type binding struct {
	windows windowType
	domain  process.Domain
	assign  []assignFunc // by input
	trigger func(rt *process.Runtime) trigger
	evict   *evictor // nil: there is none
	merging mergingSets
	err     error
}

// assignFunc writes the windows of element i of a run to to.
type assignFunc func(to *row, r *frame.Run, i int, ts, now int64) error

// trigger is a subtask's trigger, whether it looks at elements or not.
type trigger struct {
	plain   window.TriggerFunction // nil: element is set
	element func(ctx *window.TriggerContext, r *frame.Run, i int, ts int64) (window.TriggerResult, error)
	time    window.TimeTrigger
	merging window.Merging // nil: its windows can't merge
}

// evictor is an evictor, whether it looks at elements or not.
type evictor struct {
	before, after func(e *window.Eviction, r *frame.Run)
}

// bind compiles a definition. What is wrong with it is in err.
func bind[T any, W window.Window](d Definition[T, W]) binding {
	b := binding{err: d.check()}
	if b.err != nil {
		return b
	}
	key, err := serde.KeyOf[W]()
	if err != nil {
		b.err = fmt.Errorf("make windows of type %T the namespace of state: %w", *new(W), err)
		return b
	}
	b.windows = windowType{Key: key, plain: key.Direct && key.Width > 0, maxes: maxes[W]}
	a, _ := d.assigner()
	b.domain = a.Domain()
	b.assign = []assignFunc{bindAssigner(&d)}
	b.trigger, b.err = bindTrigger(&d, a)
	b.evict = bindEvictor(&d)
	if m, ok := a.(window.Merger[W]); ok && b.err == nil {
		b.merging = newSets(&b.windows, m)
		if !canMerge(&d, a) {
			b.err = errors.New("the trigger can't be used with windows that merge")
		}
	}
	return b
}

// maxes appends the max timestamps of the n windows at p.
func maxes[W window.Window](dst []int64, p unsafe.Pointer, n int) []int64 {
	for _, w := range unsafe.Slice((*W)(p), n) {
		dst = append(dst, w.MaxTimestamp())
	}
	return dst
}

func bindAssigner[T any, W window.Window](d *Definition[T, W]) assignFunc {
	var ws []W
	if d.Assigner != nil {
		a := d.Assigner
		return func(to *row, _ *frame.Run, _ int, ts, now int64) (err error) {
			ws, err = a.Assign(ws[:0], ts, now)
			fillRow(to, ws)
			return err
		}
	}
	a := d.ElementAssigner
	return func(to *row, r *frame.Run, i int, ts, now int64) (err error) {
		ws, err = a.AssignElement(ws[:0], (*T)(r.At(i)), ts, now)
		fillRow(to, ws)
		return err
	}
}

// fillRow makes ws the windows of a row; the caller makes their canonical form.
func fillRow[W window.Window](to *row, ws []W) {
	to.p, to.n, to.maxes = unsafe.Pointer(unsafe.SliceData(ws)), len(ws), to.maxes[:0]
	for i := range ws {
		to.maxes = append(to.maxes, ws[i].MaxTimestamp())
	}
}

// bindTrigger makes the constructor of the definition's trigger.
func bindTrigger[T any, W window.Window](d *Definition[T, W], a assigner) (func(*process.Runtime) trigger, error) {
	if et := d.ElementTrigger; et != nil {
		return func(rt *process.Runtime) trigger {
			fn := et.New(rt)
			merging, _ := fn.(window.Merging)
			return trigger{time: fn, merging: merging, element: func(ctx *window.TriggerContext, r *frame.Run, i int, ts int64) (window.TriggerResult, error) {
				return fn.OnElement(ctx, (*T)(r.At(i)), ts)
			}}
		}, nil
	}
	t := d.Trigger
	if t == nil {
		t = a.DefaultTrigger()
	}
	if t == nil {
		return nil, errors.New("windows need a trigger: their assigner has no default")
	}
	return func(rt *process.Runtime) trigger {
		fn := t.New(rt)
		merging, _ := fn.(window.Merging)
		return trigger{plain: fn, time: fn, merging: merging}
	}, nil
}

func canMerge[T any, W window.Window](d *Definition[T, W], a assigner) bool {
	switch {
	case d.ElementTrigger != nil:
		return d.ElementTrigger.CanMerge()
	case d.Trigger != nil:
		return d.Trigger.CanMerge()
	}
	return a.DefaultTrigger().CanMerge()
}

func bindEvictor[T any, W window.Window](d *Definition[T, W]) *evictor {
	if e := d.Evictor; e != nil {
		return &evictor{
			before: func(ev *window.Eviction, _ *frame.Run) { e.EvictBefore(ev) },
			after:  func(ev *window.Eviction, _ *frame.Run) { e.EvictAfter(ev) },
		}
	}
	if e := d.ElementEvictor; e != nil {
		return &evictor{
			before: func(ev *window.Eviction, r *frame.Run) { e.EvictBefore(ev, frame.Values[T](r)) },
			after:  func(ev *window.Eviction, r *frame.Run) { e.EvictAfter(ev, frame.Values[T](r)) },
		}
	}
	return nil
}
