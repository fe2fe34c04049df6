package operator

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/process"
)

// Sides are the side outputs of an operator that somebody reads.
type Sides struct {
	byTag map[string]*sideOutput
	all   []*sideOutput
}

type sideOutput struct {
	Output
	process.SideBuffer
	run frame.Run
}

// NewSides returns outputs for the tags of a node.
func NewSides(types map[string]*frame.Type) *Sides {
	s := &Sides{byTag: map[string]*sideOutput{}}
	for tag, t := range types {
		o := &sideOutput{Output: NewOutput(t)}
		s.byTag[tag] = o
		s.all = append(s.all, o)
	}
	return s
}

// Output is the output of a tag; nil if nobody reads it.
func (s *Sides) Output(tag string) *Output {
	if o := s.byTag[tag]; o != nil {
		return &o.Output
	}
	return nil
}

// Open binds the outputs and makes their buffers.
func (s *Sides) Open(rt *Runtime) {
	for _, o := range s.all {
		o.Bind(rt)
		o.Column = frame.NewColumn(o.Type, o.Type.FrameLen(frame.Bytes))
		o.SideBuffer.Flush = o.push
	}
}

func (o *sideOutput) push() error {
	o.run = o.Column.Run()
	return o.Push(&o.run)
}

// Buffer is where emitted elements of a tag go; nil if nobody reads it.
func (s *Sides) Buffer(tag string) *process.SideBuffer {
	if o := s.byTag[tag]; o != nil {
		return &o.SideBuffer
	}
	return nil
}

// Flush pushes what was emitted and returns the first error of any push.
func (s *Sides) Flush() error {
	for _, o := range s.all {
		if o.Column.Len() != 0 {
			if err := o.push(); err != nil && o.Err == nil {
				o.Err = err
			}
			o.Column.Reset()
		}
		if o.Err != nil {
			return o.Err
		}
	}
	return nil
}

// Mark hands a mark to all side outputs.
func (s *Sides) Mark(m frame.Mark) error {
	for _, o := range s.all {
		if err := o.Output.Mark(m); err != nil {
			return err
		}
	}
	return nil
}
