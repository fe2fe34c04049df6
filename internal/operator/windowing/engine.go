package windowing

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/keyed"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/window"
)

// engine is a windowed operator without its types. Drivers embed it beside what they have of package operator.
type engine struct {
	spec windows.Spec
	binding
	contents contents
	user     user

	rt        *operator.Runtime
	keys      *keyed.Keys
	run       *state.CurrentRun
	trig      trigger
	ctx       *window.TriggerContext
	mergeCtx  *window.MergeContext
	space     space // the trigger's state
	watermark int64
	late      [2]windows.Late          // by input
	pieces    []func(*frame.Run) error // bound once: a method value would be allocated at each use

	assigned row
	at       view  // the window that the trigger is asked about
	looked   bool  // it is one of the element or timer at hand
	cleanup  int64 // its cleanup time
	phase    phase
	merged   *merge
	forgets  bool // the trigger has taken a cleanup timer back: it is set anew with every element

	col      serde.Column   // the keys of the run at hand, if there is one
	timerKey unsafe.Pointer // else the key of the timer at hand, once it is needed
	canon    []byte         // in canonical form
	decoded  bool
	fired    row // the window of the timer at hand
}

// phase is what the trigger is asked for.
type phase uint8

const (
	atTime    phase = iota // a timer
	onElement              // an element; afterwards the engine sees to it that there is a cleanup timer
	onMerge                // a merge; likewise
	onClear                // the window is gone
	onMerged               // the window was merged into another one; afterwards the engine deletes the cleanup timer
)

// init prepares an engine in a driver's constructor. keys are those of the inputs.
func (e *engine) init(spec windows.Spec, b binding, c contents, u user, keys ...*operator.Key) {
	e.spec, e.binding, e.contents, e.user = spec, b, c, u
	e.keys = keyed.NewKeys(keys...)
	for input := range keys {
		e.pieces = append(e.pieces, func(r *frame.Run) error { return e.push(input, r) })
	}
}

// open opens outputs, state and timers, then the trigger and the function.
func (e *engine) open(rt *operator.Runtime, sides *operator.Sides) error {
	if e.err != nil {
		return e.errorf("%w", e.err)
	}
	e.user.outputs(rt)
	e.rt, e.watermark = rt, frame.MinWatermark
	e.restore(rt.Restored)
	if err := e.keys.OpenSpaced(rt, sides, e.windows.Key, e); err != nil {
		return err
	}
	rt.AtHand = e.atHand
	e.run = e.keys.Current()
	e.timerKey = e.keys.NewKey()
	if err := e.fired.set(&e.windows, e.windows.New(), 1); err != nil {
		return e.errorf("%w", err)
	}
	if e.merging != nil {
		if err := e.merging.open(e.keys.Store()); err != nil {
			return err
		}
	}
	if err := e.contents.open(e); err != nil {
		return e.errorf("%w", err)
	}
	for input := range e.pieces {
		tag, in := e.spec.Late, e.spec.In
		if input == 1 {
			tag, in = e.spec.LateSecond, e.spec.Second
		}
		if err := e.late[input].Open(rt, sides, tag, in); err != nil {
			return e.errorf("%w", err)
		}
	}
	if err := e.openTrigger(); err != nil {
		return err
	}
	if err := e.adopt(rt.Restored); err != nil {
		return err
	}
	return e.user.open()
}

func (e *engine) openTrigger() (err error) {
	services := &triggerServices{e}
	e.ctx, e.mergeCtx = window.NewTriggerContext(services), window.NewMergeContext(services)
	e.space = space{prefix: "trigger ", typ: e.windows.namespace(), hand: &e.at}
	e.trig, err = operator.Construct(e.rt, e.keys.Store(), e.run, func(rt *process.Runtime) trigger {
		return e.binding.trigger(process.NewRuntime(&spacedHost{Host: rt.Host, space: &e.space}))
	})
	if err != nil {
		return e.errorf("trigger: %w", err)
	}
	if e.merging != nil && e.trig.merging == nil {
		return e.errorf("the trigger can't be used with windows that merge: it has no OnMerge")
	}
	return nil
}

// close closes the function, then timers and store.
func (e *engine) close() error {
	err := e.user.close()
	if other := e.keys.Close(); err == nil {
		err = other
	}
	return err
}

// errorf makes an error that names the place where the program made the windows.
func (e *engine) errorf(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if e.spec.Place == "" {
		return fmt.Errorf("window: %w", err)
	}
	return fmt.Errorf("window made at %s: %w", e.spec.Place, err)
}

// advance fires what a watermark reaches.
func (e *engine) advance(watermark int64) error {
	e.watermark = watermark
	return e.keys.Advance(watermark)
}

// push takes a run of at most frame.MaxLen elements.
func (e *engine) push(input int, r *frame.Run) error {
	var err error
	if e.col, err = e.keys.Begin(input, r); err != nil {
		return err
	}
	for i := range r.N {
		e.run.Index = i
		if err := e.element(input, r, i); err != nil {
			return err
		}
	}
	return e.Flush()
}

// Flush implements keyed.SpacedHandler: failed accesses first, then what was emitted.
func (e *engine) Flush() error {
	for i := range e.late {
		e.late[i].Count()
	}
	if err := e.keys.Leave(); err != nil {
		return err
	}
	return e.user.flush()
}

// element takes element i of a run.
func (e *engine) element(input int, r *frame.Run, i int) error {
	e.looked = false
	ts := r.Time(i)
	if err := e.assign[input](&e.assigned, r, i, ts, e.rt.Now); err != nil {
		return e.errorf("assign an element to windows: %w", err)
	}
	if err := e.assigned.canonical(&e.windows); err != nil {
		return e.errorf("assign an element to windows: %w", err)
	}
	var taken bool
	var err error
	if e.merging == nil {
		taken, err = e.addAll(input, r, i, ts)
	} else {
		taken, err = e.mergeAll(input, r, i, ts)
	}
	if err == nil && !taken && e.domain == process.EventTime && later(ts, e.spec.Lateness) <= e.watermark {
		return e.late[input].Reject(r, i)
	}
	return err
}

// addAll adds an element to all its windows that are not late; taken says whether there is one.
func (e *engine) addAll(input int, r *frame.Run, i int, ts int64) (taken bool, err error) {
	for k := range e.assigned.n {
		if !e.look(e.assigned.view(&e.windows, k)) {
			continue
		}
		taken = true
		if err := e.add(&e.at, input, r, i, ts, false); err != nil {
			return true, err
		}
	}
	return taken, nil
}

// look puts a window at hand and says whether it is not late.
func (e *engine) look(w view) bool {
	e.at, e.looked = w, true
	e.cleanup = e.cleanupTime(w.max)
	return e.domain == process.ProcessingTime || e.cleanup > e.watermark
}

// cleanupTime is when a window goes away; the end of time is never.
func (e *engine) cleanupTime(end int64) int64 {
	if e.domain == process.ProcessingTime {
		return end
	}
	return later(end, e.spec.Lateness)
}

// later is t + d, or the end of time. d is not negative.
func later(t, d int64) int64 {
	if t > math.MaxInt64-d {
		return math.MaxInt64
	}
	return t + d
}

// add adds an element to the window at hand, whose contents are named by state, and asks the trigger. fresh says that the
// window is new in its merging set, if there is one.
func (e *engine) add(state *view, input int, r *frame.Run, i int, ts int64, fresh bool) error {
	e.contents.choose(state)
	there, err := e.contents.add(input, r, i)
	if err != nil {
		return err
	}
	if e.merging == nil {
		fresh = !there
	}
	e.space.choose(&e.at)
	e.phase = onElement
	var answer window.TriggerResult
	if e.trig.plain != nil {
		answer, err = e.trig.plain.OnElement(e.ctx, ts)
	} else {
		answer, err = e.trig.element(e.ctx, r, i, ts)
	}
	e.phase = atTime
	if err != nil {
		return err
	}
	if answer != window.Continue {
		if err := e.answer(answer); err != nil {
			return err
		}
	}
	if fresh || e.forgets { // else the timer was set by the first element
		e.setCleanup()
	}
	return nil
}

// setCleanup sets the timer that removes the window at hand.
func (e *engine) setCleanup() {
	if e.cleanup != math.MaxInt64 {
		e.keys.Register(e.domain, e.at.b, e.cleanup)
	}
}

// answer does what the trigger said about the window at hand. Contents are chosen.
func (e *engine) answer(r window.TriggerResult) error {
	if r.Fires() {
		if err := e.contents.fire(&e.at); err != nil {
			return err
		}
	}
	if r.Purges() {
		return e.contents.clear()
	}
	return nil
}

// key is the address of the key at hand in Go memory.
func (e *engine) key() (unsafe.Pointer, error) {
	if e.canon == nil {
		return e.col.At(e.run.Index), nil
	}
	if !e.decoded {
		e.decoded = true
		if err := e.keys.Decode(e.canon, e.timerKey); err != nil {
			return nil, err
		}
	}
	return e.timerKey, nil
}

// atHand is operator.Runtime's: the key at hand, the window if it is known, and the element or timer; an element that had
// waited to be folded if it is that one's turn.
func (e *engine) atHand(r *frame.Run) string {
	key, what := e.keys.Hand(r)
	if key == "" && what == "" {
		return ""
	}
	w := ""
	if e.looked && e.windows.Size != 0 {
		w = operator.NamedAt("window", e.windows.Handle, e.at.p)
	}
	if l, ok := e.contents.(*logged); ok && l.reading {
		what = operator.NamedElement(&l.run, l.turn)
	}
	return operator.AtHand(key, w, what)
}

// Timers is the number of timers of a domain, over all keys and windows.
func (e *engine) Timers(d process.Domain) int { return e.keys.Timers(d) }
