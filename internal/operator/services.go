package operator

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/process"
)

// Services is the engine's side of a context on a stream that is not keyed. Keyed drivers embed it and add timers.
type Services struct {
	RT      *Runtime
	Sides   *Sides
	Current int64 // watermark, ms
}

// NewServices returns services at the watermark "none yet".
func NewServices(rt *Runtime, sides *Sides) *Services {
	return &Services{RT: rt, Sides: sides, Current: frame.MinWatermark}
}

// ProcessingTime implements process.Services.
func (s *Services) ProcessingTime() int64 { return s.RT.Now }

// Watermark implements process.Services.
func (s *Services) Watermark() int64 { return s.Current }

// Side implements process.Services.
func (s *Services) Side(tag string) *process.SideBuffer { return s.Sides.Buffer(tag) }

// Register implements process.Services: without a key there are no timers.
func (s *Services) Register(d process.Domain, at int64) {
	panic("register a " + d.String() + " timer: timers are only available on keyed streams")
}

// Delete implements process.Services.
func (s *Services) Delete(d process.Domain, at int64) {
	panic("delete a " + d.String() + " timer: timers are only available on keyed streams")
}
