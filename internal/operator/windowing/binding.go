package windowing

import (
	"errors"
	"fmt"
	"reflect"
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
	assigner assigner
	windows  windowType
	domain   process.Domain
	assign   []assignFunc // by input
	trigger  func(rt *process.Runtime) trigger
	evict    *evictor // nil: there is none
	merging  mergingSets
	looks    bool // the trigger or the evictor looks at elements
	// byDefault: the trigger is the assigner's default one.
	byDefault bool
	err       error
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
func (d Definition[T, W]) bind() binding {
	err := check(count(d.Assigner != nil, d.ElementAssigner != nil), count(d.Trigger != nil, d.ElementTrigger != nil),
		count(d.Evictor != nil, d.ElementEvictor != nil))
	if err != nil {
		return binding{err: err}
	}
	if d.ElementAssigner == nil {
		return d.rest(bindByTime(d.Assigner))
	}
	b := bindWindows[W](d.ElementAssigner)
	b.assign = []assignFunc{assignByElement(d.ElementAssigner)}
	return d.rest(b)
}

// rest adds trigger and evictor.
func (d *Definition[T, W]) rest(b binding) binding {
	b.looks = d.ElementTrigger != nil || d.ElementEvictor != nil
	if d.ElementTrigger != nil {
		b.triggered(d.ElementTrigger, elementTrigger(d.ElementTrigger))
	} else {
		b.plainTrigger(d.Trigger)
	}
	if d.ElementEvictor != nil {
		b.evict = elementEvictor(d.ElementEvictor)
	} else {
		b.plainEvictor(d.Evictor)
	}
	return b
}

func (d TimeDefinition[W]) bind() binding {
	if d.Assigner == nil {
		return binding{err: check(0, 0, 0)}
	}
	b := bindByTime(d.Assigner)
	b.plainTrigger(d.Trigger)
	b.plainEvictor(d.Evictor)
	return b
}

func bindByTime[W window.Window](a window.Assigner[W]) binding {
	b := bindWindows[W](a)
	b.assign = []assignFunc{assignByTime(a)}
	return b
}

// check reports a definition that is none, by how many parts of each kind it has.
func check(assigners, triggers, evictors int) error {
	switch {
	case assigners != 1:
		return errors.New("windows need exactly one assigner")
	case triggers > 1:
		return errors.New("windows have at most one trigger")
	case evictors > 1:
		return errors.New("windows have at most one evictor")
	}
	return nil
}

func count(are ...bool) (n int) {
	for _, is := range are {
		if is {
			n++
		}
	}
	return n
}

// bindWindows compiles what depends on the type of windows only.
func bindWindows[W window.Window](a assigner) binding {
	key, err := serde.KeyOf[W]()
	if err != nil {
		return binding{assigner: a, err: fmt.Errorf("make windows of type %T the namespace of state: %w", *new(W), err)}
	}
	b := binding{
		assigner: a, domain: a.Domain(),
		windows: windowType{Key: key, plain: key.Direct && key.Width > 0, maxes: maxes[W]},
	}
	if m, ok := a.(window.Merger[W]); ok {
		b.merging = newSets(b.windows, m)
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

func assignByTime[W window.Window](a window.Assigner[W]) assignFunc {
	var ws []W
	return func(to *row, _ *frame.Run, _ int, ts, now int64) (err error) {
		ws, err = a.Assign(ws[:0], ts, now)
		fillRow(to, ws)
		return err
	}
}

func assignByElement[T any, W window.Window](a window.ElementAssigner[T, W]) assignFunc {
	var ws []W
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

// plainTrigger makes t, or the assigner's default, the trigger.
func (b *binding) plainTrigger(t window.Trigger) {
	usual := b.assigner.DefaultTrigger()
	if t == nil {
		t = usual
	}
	b.byDefault = t != nil && reflect.ValueOf(t).Comparable() && t == usual
	if t == nil {
		b.fail(errors.New("windows need a trigger: their assigner has no default"))
		return
	}
	b.triggered(t, func(rt *process.Runtime) trigger {
		fn := t.New(rt)
		return trigger{plain: fn, time: fn}
	})
}

// triggered says which trigger there is and how it is made.
func (b *binding) triggered(t interface{ CanMerge() bool }, make func(*process.Runtime) trigger) {
	b.trigger = func(rt *process.Runtime) trigger {
		fn := make(rt)
		fn.merging, _ = fn.time.(window.Merging)
		return fn
	}
	if b.merging != nil && !t.CanMerge() {
		b.fail(errors.New("the trigger can't be used with windows that merge"))
	}
}

func (b *binding) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

func elementTrigger[T any](t window.ElementTrigger[T]) func(*process.Runtime) trigger {
	return func(rt *process.Runtime) trigger {
		fn := t.New(rt)
		return trigger{time: fn, element: func(ctx *window.TriggerContext, r *frame.Run, i int, ts int64) (window.TriggerResult, error) {
			return fn.OnElement(ctx, (*T)(r.At(i)), ts)
		}}
	}
}

// plainEvictor makes e, if there is one, the evictor.
func (b *binding) plainEvictor(e window.Evictor) {
	if e == nil {
		return
	}
	b.evict = &evictor{
		before: func(ev *window.Eviction, _ *frame.Run) { e.EvictBefore(ev) },
		after:  func(ev *window.Eviction, _ *frame.Run) { e.EvictAfter(ev) },
	}
}

func elementEvictor[T any](e window.ElementEvictor[T]) *evictor {
	return &evictor{
		before: func(ev *window.Eviction, r *frame.Run) { e.EvictBefore(ev, frame.Values[T](r)) },
		after:  func(ev *window.Eviction, r *frame.Run) { e.EvictAfter(ev, frame.Values[T](r)) },
	}
}
