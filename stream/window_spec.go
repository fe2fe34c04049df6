package stream

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/flott-dev/flott/internal/env"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/sessions"
	slicing "github.com/flott-dev/flott/internal/operator/slices"
	"github.com/flott-dev/flott/internal/operator/windowing"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

// Paths that windows take, as plans show them.
const (
	generalPath = "general"
	slicedPath  = "slices"
	sessionPath = "sessions"
)

// WithGeneralWindows makes all windows take the general path, also those whose results slices and the like would give
// faster: for tests and comparisons. The results are the same.
func WithGeneralWindows() Option { return func(s *env.Settings) { s.GeneralWindows = true } }

func isTime(w reflect.Type) bool { return w == reflect.TypeFor[window.Time]() }

// windowSpec is what was said of windows, without types: it is written once for all streams. It is a value that methods copy.
type windowSpec struct {
	assigner any // window.Assigner[W] or window.ElementAssigner[T, W]
	trigger  any // window.Trigger or window.ElementTrigger[T]; nil is the default one
	evictor  any // window.Evictor or window.ElementEvictor[T]; nil is none
	// define makes the three typed again: timeDefinition, or windowDefinition if one of them looks at elements.
	define func(*windowSpec) windowing.Windows

	domain     process.Domain
	lateness   time.Duration
	late       [2]string // by input
	merges     bool
	grid       window.Gridded // nil: windows don't lie on a grid
	gap        *sessions.Gap  // nil: they are no sessions
	mergeable  bool           // the trigger
	unkeyed    bool
	inMemory   bool // also where the backend spills
	unassigned bool // there was no assigner
	mistakes   []windowMistake
}

// timed is what assigners of both kinds have.
type timed interface {
	Domain() process.Domain
	DefaultTrigger() window.Trigger
}

func (w *windowSpec) copy() *windowSpec {
	d := *w
	return &d
}

// defined is for a copy to which something that looks at elements was added.
func (w *windowSpec) defined(define func(*windowSpec) windowing.Windows) *windowSpec {
	w.define = define
	return w
}

// windowMistake is what is wrong with a description of windows, and the user's line. It is reported when the operator is
// there, so that the error can name it.
type windowMistake struct {
	caller string
	err    error
}

func (w *windowSpec) mistake(err error) {
	w.mistakes = append(slices.Clip(w.mistakes), windowMistake{env.Caller(packagePath), err})
}

// newTimeSpec looks at an assigner that does not look at elements.
//
//go:noinline
func newTimeSpec[W window.Window](a window.Assigner[W]) *windowSpec {
	_, merges := a.(window.Merger[W])
	return newWindowSpec(a, merges, reflect.TypeFor[W](), timeDefinition[W])
}

// newWindowSpec looks at an assigner.
//
//go:noinline
func newWindowSpec(assigner any, merges bool, w reflect.Type, define func(*windowSpec) windowing.Windows) *windowSpec {
	s := &windowSpec{merges: merges, mergeable: true, define: define}
	if missing(assigner) {
		s.mistake(errors.New("assign windows: there is no assigner"))
		s.unassigned = true
		return s
	}
	s.assigner, s.domain = assigner, assigner.(timed).Domain()
	s.check("assign windows by "+called(assigner), assigner)
	if !isTime(w) {
		return s
	}
	s.grid, _ = assigner.(window.Gridded)
	if x, ok := assigner.(window.Sessional); ok && merges {
		s.gap = &sessions.Gap{Millis: x.Gap()}
	}
	return s
}

// check reports what x, an assigner, trigger or evictor, finds wrong with itself.
func (w *windowSpec) check(what string, x any) {
	if c, ok := x.(interface{ Check() error }); ok {
		if err := c.Check(); err != nil {
			w.mistake(fmt.Errorf("%s: %w", what, err))
		}
	}
}

func missing(x any) bool {
	if x == nil {
		return true
	}
	v := reflect.ValueOf(x)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// called is how plans and errors call an assigner, trigger or evictor: as it prints itself, or its type.
func called(x any) string {
	if s, ok := x.(fmt.Stringer); ok {
		return s.String()
	}
	name := strings.TrimPrefix(fmt.Sprintf("%T", x), "*")
	name, _, _ = strings.Cut(name, "[")
	name = name[strings.LastIndexByte(name, '.')+1:]
	return strings.ToUpper(name[:1]) + name[1:]
}

// triggered gives the windows a trigger of their own.
//
//go:noinline
func (w *windowSpec) triggered(t any) *windowSpec {
	w = w.copy()
	if missing(t) {
		w.mistake(errors.New("set the trigger of windows: there is none"))
		return w
	}
	w.trigger = t
	c, ok := t.(interface{ CanMerge() bool })
	w.mergeable = ok && c.CanMerge()
	w.check("trigger windows by "+called(t), t)
	return w
}

//go:noinline
func (w *windowSpec) evicted(x any) *windowSpec {
	w = w.copy()
	if missing(x) {
		w.mistake(errors.New("set the evictor of windows: there is none"))
		return w
	}
	w.evictor = x
	w.check("evict from windows by "+called(x), x)
	return w
}

//go:noinline
func (w *windowSpec) allow(d time.Duration) *windowSpec {
	w = w.copy()
	if d < 0 {
		w.mistake(fmt.Errorf("allow windows a lateness of %v: it must not be negative", d))
	}
	w.lateness = d
	return w
}

//go:noinline
func (w *windowSpec) lateTo(input int, tag string) *windowSpec {
	w = w.copy()
	if tag == "" {
		w.mistake(errors.New("send late elements to a side output: the tag has no name (make it with NewOutputTag)"))
	}
	w.late[input] = tag
	return w
}

// plain says that windows fire by their default trigger and keep what they get.
func (w *windowSpec) plain() bool { return w.trigger == nil && w.evictor == nil }

// path chooses between the ways that give the same results. k is nil for functions that need the elements.
func (w *windowSpec) path(e *Env, k *windows.Incremental) string {
	if k == nil || !w.plain() || e.e.Settings.GeneralWindows || w.unassigned {
		return generalPath
	}
	switch {
	case w.gap != nil && k.Merge != nil:
		return sessionPath
	case w.grid == nil || w.merges:
		return generalPath
	}
	if g := w.grid.Grid(); g.Period != nil || g.Size <= g.Slide || k.Regroupable {
		return slicedPath
	}
	return generalPath
}

// inStep says that the operator knows by the one watermark of its subtask which windows have fired of those that it keeps
// (for a lateness, or as parts of later ones): state of subtasks whose barriers came at different watermarks could not be
// merged, so that no barrier may overtake their input.
func (w *windowSpec) inStep(path string) bool {
	switch path {
	case slicedPath:
		g := w.grid.Grid()
		return w.lateness > 0 || g.Period == nil && g.Size > g.Slide
	case sessionPath:
		return w.lateness > 0
	}
	return false
}

// windowFunction is what is done with a window, without types.
type windowFunction struct {
	name     string // of the operator
	contents string // what is kept per window, as plans show it: a list, or the kind of accumulator
	// k are the kernels of an incremental function that needs no context, so that windows may take another path.
	k *windows.Incremental
	// general makes the operator of the general path.
	general func(windows.Spec) operator.Operator
}

// What windows keep.
const (
	listContents        = "list"
	reducingContents    = "reducing"
	aggregatingContents = "aggregating"
	foldingContents     = "folding"
)

// window adds a windowed operator.
//
//go:noinline
func (c *core) window(f windowFunction, w *windowSpec, key *operator.Key, out *frame.Type) *core {
	n := newNode(graph.Operator, f.name, out)
	w.report(c.env, n)
	path := w.path(c.env, f.k)
	w.show(n, path, f.contents)
	in := c.typ
	spec := func() windows.Spec {
		return windows.Spec{
			In: in, Out: out, Key: key, Sides: n.Side, Lateness: w.lateness.Milliseconds(), Late: w.late[0], Place: n.Caller,
		}
	}
	general := func() operator.Operator { return f.general(spec()) }
	switch path {
	case slicedPath:
		n.New = func() operator.Operator { return slicing.New(spec(), w.grid.Grid(), w.domain, f.k) }
	case sessionPath:
		n.New = func() operator.Operator { return sessions.New(spec(), *w.gap, w.domain, f.k) }
	default:
		n.New = general
	}
	if path != generalPath {
		n.OnDisk = w.onDisk(path, general)
	}
	n.Inputs, n.NonParallel, n.NeedsTimestamps = c.edges(), w.unkeyed, w.inEventTime()
	n.AlignedInputs = w.inStep(path)
	d := c.env.add(n).sided().timed() // results have the end of their window, whatever time it is in
	d.keyed(key)
	return d
}

// onDisk is what an operator with a path of its own is where the state backend keeps more than memory holds.
func (w *windowSpec) onDisk(path string, general func() operator.Operator) *graph.Alternative {
	if w.inMemory {
		return nil
	}
	return &graph.Alternative{New: general, Attributes: map[string]string{"window path": generalPath + " (windows on disk, not " + path + ")"}}
}

// pair adds a windowed operator with two inputs, which takes the general path.
//
//go:noinline
func pair(name string, c [2]*core, w *windowSpec, keys [2]*operator.Key, out *frame.Type, open func(windows.Spec) operator.Operator) *core {
	d := join(name, c, out, func(n *graph.Node) operator.Operator {
		return open(windows.Spec{
			Out: out, Sides: n.Side, Lateness: w.lateness.Milliseconds(), Late: w.late[0], LateSecond: w.late[1], Place: n.Caller,
		})
	})
	w.report(c[0].env, d.node)
	w.show(d.node, generalPath, listContents)
	d.node.NeedsTimestamps = w.inEventTime()
	d.sided().timed().keyed(keys[:]...)
	return d
}

func (w *windowSpec) inEventTime() bool { return w.domain == process.EventTime && !w.unassigned }

// report reports the mistakes of an operator, and what does not go together.
func (w *windowSpec) report(e *Env, n *graph.Node) {
	if w.merges && !w.mergeable {
		w.mistake(fmt.Errorf("trigger windows by %s: windows by %s merge, and that trigger can't", called(w.trigger), called(w.assigner)))
	}
	if w.inEventTime() && e.time == ProcessingTime {
		w.mistake(fmt.Errorf("assign windows by %s: it needs event time, the environment is set to processing time", called(w.assigner)))
	}
	for _, m := range w.mistakes {
		e.e.Report(m.caller, fmt.Errorf("operator %q: %w", n.Name, m.err))
	}
}

// show puts what was said into the plan.
func (w *windowSpec) show(n *graph.Node, path, contents string) {
	if w.evictor != nil {
		contents = listContents
	}
	n.Attributes = map[string]string{"window path": path, "window contents": contents}
	if w.unassigned {
		return
	}
	n.Attributes["windows"] = called(w.assigner)
	n.Attributes["trigger"] = called(w.assigner.(timed).DefaultTrigger())
	if w.trigger != nil {
		n.Attributes["trigger"] = called(w.trigger)
	}
	if w.evictor != nil {
		n.Attributes["evictor"] = called(w.evictor)
	}
}

// timeDefinition is what was said, typed, if nothing looks at elements.
func timeDefinition[W window.Window](w *windowSpec) windowing.Windows {
	var d windowing.TimeDefinition[W]
	d.Assigner, _ = w.assigner.(window.Assigner[W])
	d.Trigger, _ = w.trigger.(window.Trigger)
	d.Evictor, _ = w.evictor.(window.Evictor)
	return d
}

// windowDefinition is what was said in the types of the stream.
func windowDefinition[T any, W window.Window](w *windowSpec) windowing.Windows {
	var d windowing.Definition[T, W]
	var ok bool
	if d.Assigner, ok = w.assigner.(window.Assigner[W]); !ok {
		d.ElementAssigner, _ = w.assigner.(window.ElementAssigner[T, W])
	}
	if d.Trigger, ok = w.trigger.(window.Trigger); !ok {
		d.ElementTrigger, _ = w.trigger.(window.ElementTrigger[T])
	}
	if d.Evictor, ok = w.evictor.(window.Evictor); !ok {
		d.ElementEvictor, _ = w.evictor.(window.ElementEvictor[T])
	}
	return d
}
