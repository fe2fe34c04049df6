package operator

import "sync/atomic"

// SplitHolder is a source that knows its splits apart.
type SplitHolder interface {
	// HeldSplit is the name of the split that holds the source's watermark back, "" if none does. Any goroutine may ask.
	HeldSplit() string
}

// HeldSplit is a name that one goroutine notes and any may read.
type HeldSplit struct {
	last string // what the noting goroutine has noted
	name atomic.Pointer[string]
}

// Note sets the name.
func (h *HeldSplit) Note(name string) {
	if name != h.last {
		h.last = name
		h.name.Store(&name)
	}
}

// Read is the name, "" at first.
func (h *HeldSplit) Read() string {
	if p := h.name.Load(); p != nil {
		return *p
	}
	return ""
}
