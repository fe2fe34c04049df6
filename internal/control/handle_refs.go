package control

// handleRefs counts which handles pending and completed snapshots refer to.
type handleRefs map[Handle]handleRef

type handleRef struct {
	count int
	// kept: a snapshot that belongs to somebody named the handle, too: it must stay for good.
	kept bool
}

func (r handleRefs) add(handles []Handle) {
	for _, h := range handles {
		ref := r[h]
		ref.count++
		r[h] = ref
	}
}

// addSnapshot counts a task's part.
func (r handleRefs) addSnapshot(s *TaskSnapshot) {
	r.add(s.New)
	r.add(s.Reused)
}

// drop takes references back and appends those handles to gone that nobody refers to any more. kept says that they were a
// kept snapshot's: its bytes are not the job's to discard.
func (r handleRefs) drop(gone, handles []Handle, kept bool) []Handle {
	for _, h := range handles {
		ref := r[h]
		ref.count--
		ref.kept = ref.kept || kept
		if ref.count > 0 {
			r[h] = ref
			continue
		}
		delete(r, h)
		if !ref.kept {
			gone = append(gone, h)
		}
	}
	return gone
}

func (r handleRefs) dropSnapshot(gone []Handle, s *TaskSnapshot, kept bool) []Handle {
	return r.drop(r.drop(gone, s.New, kept), s.Reused, kept)
}

// unknown appends those of the handles to gone that nobody refers to.
func (r handleRefs) unknown(gone, handles []Handle) []Handle {
	for _, h := range handles {
		if _, ok := r[h]; !ok {
			gone = append(gone, h)
		}
	}
	return gone
}

// missing is the first of the handles that nobody refers to: it may have been discarded.
func (r handleRefs) missing(handles []Handle) (Handle, bool) {
	for _, h := range handles {
		if _, ok := r[h]; !ok {
			return h, true
		}
	}
	return "", false
}
