// Package windowing holds the general driver of windowed operators: any assigner, trigger, evictor and window function,
// with the contract of Flink's WindowOperator and EvictingWindowOperator to the letter. It owns the windows' contents, the
// merging sets, the state of triggers and window functions (tables of the operator's store), their timers, and what is
// late. It never decides which window, when or what: the program's assigner, trigger and function do. Package stream makes
// its drivers wherever a faster path (packages slices and sessions) could be told apart.
//
// # Structure
//
// The engine is written once: it holds windows as addresses, canonical bytes and max timestamps, and goes element by
// element. What is compiled for the program's types are the closures of a binding (assign, call the trigger, decode, merge)
// and the call of the window function. State lies in tables whose namespace is the window; the table of contents is
// addressed by the state window of a merged window, all else by the window itself. Namespaces are chosen when they change.
package windowing

import "github.com/flott-dev/flott/window"

// Windows is what a program says about its windows: a TimeDefinition, or a Definition if something looks at elements. Of
// the former nothing is compiled for their type.
type Windows interface {
	bind() binding
}

// TimeDefinition is a definition in which nothing looks at elements.
type TimeDefinition[W window.Window] struct {
	Assigner window.Assigner[W]
	Trigger  window.Trigger // nil: the assigner's default
	Evictor  window.Evictor // nil: there is none
}

// Definition is what a program says about its windows.
type Definition[T any, W window.Window] struct {
	// Assigner or ElementAssigner assigns windows: exactly one.
	Assigner        window.Assigner[W]
	ElementAssigner window.ElementAssigner[T, W]
	// Trigger or ElementTrigger fires them: at most one; without any it is the assigner's default.
	Trigger        window.Trigger
	ElementTrigger window.ElementTrigger[T]
	// Evictor or ElementEvictor evicts elements: at most one.
	Evictor        window.Evictor
	ElementEvictor window.ElementEvictor[T]
}
