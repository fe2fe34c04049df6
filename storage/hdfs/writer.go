package hdfs

import (
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/colinmarc/hdfs/v2"
)

// The pauses between attempts to close a file whose last block the data nodes have not reported yet.
const (
	firstPause   = 10 * time.Millisecond
	longestPause = time.Second
)

// writer writes a file. Sync may be called while another goroutine writes.
type writer struct {
	name    string
	timeout time.Duration

	mu     sync.Mutex
	w      *hdfs.FileWriter
	err    error // the first one: the client does not go on after it
	closed bool
}

// Write appends.
func (w *writer) Write(p []byte) (int, error) {
	n := 0
	err := w.do("write", func() (err error) {
		if len(p) == 0 {
			return nil // the client would begin a block, for whose first byte the name node then waits
		}
		n, err = w.w.Write(p)
		return err
	})
	return n, err
}

// Sync waits until the memory of all data nodes that are to have the file has what was written (hflush): it survives the end of
// this program and of any machine but the last of them. It survives the loss of power of all of them at a time only if they
// write to disk when a file is closed (dfs.datanode.synconclose), as the client knows no hsync.
func (w *writer) Sync() error { return w.do("sync", func() error { return w.w.Flush() }) }

// do does something to the file, unless it is closed or something failed before.
func (w *writer) do(op string, f func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return &fs.PathError{Op: op, Path: w.name, Err: fs.ErrClosed}
	}
	if w.err != nil {
		return w.err
	}
	err := w.w.SetDeadline(time.Now().Add(w.timeout))
	if err == nil {
		err = f()
	}
	if err != nil {
		w.err = &fs.PathError{Op: op, Path: w.name, Err: err}
	}
	return w.err
}

// Close ends the file. It waits until the name node has all of it.
func (w *writer) Close() error {
	err := w.do("close", w.complete)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	return err
}

// complete closes the file, again and again as long as the name node waits for data nodes.
func (w *writer) complete() error {
	give := time.Now().Add(w.timeout)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := w.w.Close()
		if !errors.Is(err, hdfs.ErrReplicating) || time.Now().After(give) {
			return err
		}
		time.Sleep(pause)
	}
}
