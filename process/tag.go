package process

// OutputTag names a side output and its element type. Tags are values: two tags of one name on one operator must have
// the same type (a build error otherwise).
type OutputTag[X any] struct{ name string }

// NewOutputTag returns the tag of the side output called name.
func NewOutputTag[X any](name string) OutputTag[X] { return OutputTag[X]{name: name} }

// Name is the side output's name.
func (t OutputTag[X]) Name() string { return t.name }
