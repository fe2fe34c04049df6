package jobmanager

// holds is what a coordinator wants to send and may not yet: after its state for a checkpoint was taken it sends nothing until
// its readers have been triggered, so that what it has handed out in its state is what they have got in theirs. Checkpoints
// that are given up may end after later ones have begun.
type holds []hold

type hold struct {
	checkpoint int64
	sends      []func()
}

// begin takes the word that the state for a checkpoint has been taken.
func (h *holds) begin(checkpoint int64) { *h = append(*h, hold{checkpoint: checkpoint}) }

// keep keeps a send if it is to wait.
func (h holds) keep(send func()) bool {
	if len(h) == 0 {
		return false
	}
	last := &h[len(h)-1]
	last.sends = append(last.sends, send)
	return true
}

// end takes the word that the readers have been triggered for all checkpoints up to this one, or never will be, and gives what
// may be sent now.
func (h *holds) end(checkpoint int64) (sends []func()) {
	for len(*h) > 0 && (*h)[0].checkpoint <= checkpoint {
		sends = append(sends, (*h)[0].sends...)
		*h = (*h)[1:]
	}
	return sends
}
