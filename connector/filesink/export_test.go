package filesink

// Portions sets how many bytes are merged at a checkpoint and between elements.
func (s Sink[T]) Portions(atCheckpoint, portion int64) *Sink[T] {
	s.compaction.atCheckpoint, s.compaction.portion = atCheckpoint, portion
	return &s
}

// In is the same sink in another folder.
func (s Sink[T]) In(dir string) *Sink[T] { s.dir = dir; return &s }

// OneByOne closes and commits files of a store one after the other, so that a test can say at which one it crashes.
func (s Sink[T]) OneByOne() *Sink[T] { s.requests = 0; return &s }
