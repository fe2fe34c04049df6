package blob

import (
	"context"
	"fmt"
	"os"
	"time"
)

// waiting is the patience with a store: its context ends when nothing happens for too long.
type waiting struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timer   *time.Timer
	timeout time.Duration
}

// wait begins to wait.
func (f *FS) wait() *waiting {
	w := &waiting{timeout: f.options.Timeout}
	w.ctx, w.cancel = context.WithCancelCause(context.Background())
	w.timer = time.AfterFunc(w.timeout, func() {
		w.cancel(fmt.Errorf("the store did nothing for %v: %w", w.timeout, os.ErrDeadlineExceeded))
	})
	return w
}

// progress says that something happened, or that the next wait begins.
func (w *waiting) progress() { w.timer.Reset(w.timeout) }

// pause says that nothing is asked of the store, until the next progress.
func (w *waiting) pause() { w.timer.Stop() }

// end ends the waiting, and whatever still goes on for it.
func (w *waiting) end() {
	w.timer.Stop()
	w.cancel(context.Canceled)
}
