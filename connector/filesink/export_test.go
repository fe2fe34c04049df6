package filesink

// Portions sets how many bytes are merged at a checkpoint and between elements.
func (s Sink[T]) Portions(atCheckpoint, portion int64) *Sink[T] {
	s.compaction.atCheckpoint, s.compaction.portion = atCheckpoint, portion
	return &s
}

// In is the same sink in another folder.
func (s Sink[T]) In(dir string) *Sink[T] { s.dir = dir; return &s }
