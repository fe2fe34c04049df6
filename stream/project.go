package stream

// Project replaces each element by fields of it, at positions from 0, in the order asked: R is a struct (or array) of
// their types, or the type of the one field. What does not fit is a build error. A field may be taken several times.
func (s *Stream[T]) Project[R any](positions ...int) *Stream[R] {
	out := typeOf[R](s.c.env)
	found, err := findPositions(s.c.typ, positions)
	return &Stream[R]{s.c.project(out, found, err)}
}

// ProjectFields is Project with paths of fields, as in KeyByFields.
func (s *Stream[T]) ProjectFields[R any](paths ...string) *Stream[R] {
	out := typeOf[R](s.c.env)
	found, err := findPaths(s.c.typ, paths)
	return &Stream[R]{s.c.project(out, found, err)}
}
