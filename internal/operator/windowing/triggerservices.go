package windowing

import (
	"math"
	"reflect"
	"unsafe"

	"github.com/flott-dev/flott/process"
)

// triggerServices is the engine's side of a trigger's context.
type triggerServices struct{ e *engine }

// ProcessingTime implements window.TriggerServices.
func (s *triggerServices) ProcessingTime() int64 { return s.e.rt.Now }

// Watermark implements window.TriggerServices.
func (s *triggerServices) Watermark() int64 { return s.e.watermark }

// Register implements window.TriggerServices.
func (s *triggerServices) Register(d process.Domain, at int64) {
	e := s.e
	if s.cleansUp(d, at) {
		switch e.phase {
		case onElement, onMerge, onMerged:
			return
		}
	}
	e.keys.Register(d, e.at.b, at)
}

// Delete implements window.TriggerServices.
func (s *triggerServices) Delete(d process.Domain, at int64) {
	e := s.e
	if s.cleansUp(d, at) {
		switch e.phase {
		case onElement, onMerge, onMerged:
			return
		case atTime:
			e.forgets = true
		}
	}
	e.keys.Delete(d, e.at.b, at)
}

// cleansUp says whether a timer is the one that removes the window at hand. After an element or a merge the engine sees to
// it that there is one, and deletes those of merged windows, so that what the trigger does with it meanwhile makes no
// difference.
func (s *triggerServices) cleansUp(d process.Domain, at int64) bool {
	return at == s.e.cleanup && d == s.e.domain && at != math.MaxInt64
}

// Window implements window.TriggerServices.
func (s *triggerServices) Window() (unsafe.Pointer, reflect.Type) {
	return s.e.at.p, s.e.windows.Type
}

// MaxTimestamp implements window.TriggerServices.
func (s *triggerServices) MaxTimestamp() int64 { return s.e.at.max }

// EachMerged implements window.TriggerServices.
func (s *triggerServices) EachMerged(f func()) { s.e.eachMerged(f) }
