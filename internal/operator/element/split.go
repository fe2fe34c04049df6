package element

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
)

// Selection is an output of a split: the elements that carry one of the names.
type Selection struct {
	Tag   string // of the side output
	Names []string
}

// splitter asks a selector for each element's names, once, and copies the element to every selection of one of them.
type splitter[T any] struct {
	divider
	f func(T) []string
}

// Split returns the driver of a split; it has a side output for each selection.
func Split[T any](typ *frame.Type, selections []Selection, f func(T) []string) operator.Operator {
	o := &splitter[T]{f: f}
	o.init(typ, selections)
	return o
}

func (o *splitter[T]) Inputs() []operator.Input { return []operator.Input{o} }

func (o *splitter[T]) Push(r *frame.Run) error {
	xs := frame.Values[T](r)
	at := r.Hand()
	for from := 0; from < len(xs); from += frame.MaxLen {
		o.piece = r.Slice(from, min(r.N, from+frame.MaxLen))
		for i, x := range xs[from : from+o.piece.N] {
			*at = from + i
			for _, name := range o.f(x) {
				o.take(i, name)
			}
		}
		*at = frame.Passed // what is sent is of no one element
		if err := o.push(); err != nil {
			return err
		}
	}
	return nil
}

// divider is what a split does without looking at elements.
type divider struct {
	operator.Unary
	all    []division
	byName map[string][]int // positions in all
	piece  frame.Run
}

// division is one selection at work.
type division struct {
	tag string
	out operator.Output
	at  []uint16 // positions of the elements of the run at hand
	col *frame.Column
	run frame.Run
}

func (d *divider) init(typ *frame.Type, selections []Selection) {
	d.In, d.Out = typ, operator.NewOutput(typ)
	d.all, d.byName = make([]division, len(selections)), map[string][]int{}
	for i, s := range selections {
		d.all[i].tag, d.all[i].out = s.Tag, operator.NewOutput(typ)
		for _, name := range s.Names {
			d.byName[name] = append(d.byName[name], i)
		}
	}
}

// Output implements operator.Operator.
func (d *divider) Output(tag string) *operator.Output {
	for i := range d.all {
		if d.all[i].tag == tag {
			return &d.all[i].out
		}
	}
	return d.Unary.Output(tag)
}

// Open implements operator.Operator.
func (d *divider) Open(rt *operator.Runtime) error {
	for i := range d.all {
		v := &d.all[i]
		v.out.Bind(rt)
		v.at = make([]uint16, 0, frame.MaxLen)
		v.col = frame.NewColumn(d.In, frame.MaxLen)
	}
	return d.Unary.Open(rt)
}

// take gives element i of the piece at hand to the selections of a name, to each once.
func (d *divider) take(i int, name string) {
	for _, k := range d.byName[name] {
		v := &d.all[k]
		if n := len(v.at); n == 0 || v.at[n-1] != uint16(i) {
			v.at = append(v.at, uint16(i))
		}
	}
}

// push sends what was taken.
func (d *divider) push() error {
	for i := range d.all {
		v := &d.all[i]
		if len(v.at) == 0 {
			continue
		}
		v.col.Gather(&d.piece, v.at)
		v.at = v.at[:0]
		v.run = v.col.Run()
		err := v.out.Push(&v.run)
		v.col.Reset()
		if err != nil {
			return err
		}
	}
	return nil
}

// Mark implements operator.Input.
func (d *divider) Mark(m frame.Mark) error {
	for i := range d.all {
		if err := d.all[i].out.Mark(m); err != nil {
			return err
		}
	}
	return d.Out.Mark(m)
}
