package vfs

// DirectWriter writes new files of this machine, one after the other and each from its beginning to its end, past the machine's
// cache and beside the caller: the disk takes buffers where they lie while the caller fills others. That spares the copy into the
// cache, which holds what nobody will read, and the wait for the disk, which in Go keeps a processor. It belongs to one goroutine.
//
// After an error nothing that it was given since the last Wait may be taken for written; Wait tells the first one.
type DirectWriter interface {
	// Use has memory for buffers reserved from a budget until Wait returns. The first two buffers, of a MiB each, are not: with
	// them it works, however little memory there is.
	Use(b Budget)
	// Create begins a file of a name that no other has, else the error is fs.ErrExist. The file before must have ended.
	Create(name string) error
	// Write appends b, which may be of any size, and returns the buffer for what comes next: it may have bytes of b that are not
	// on their way yet, which are part of what is to be given next. No bytes are copied but these if b is what Write or End
	// returned, with more appended and without exceeding its capacity. The caller must not use b afterwards.
	Write(b []byte) (next []byte, err error)
	// End appends b and ends the file. It is durable, but for its name, when Wait has returned nil. The buffer that it returns
	// is empty.
	End(b []byte) (next []byte, err error)
	// Remove removes a file as FS.Remove does. What it held is freed beside the caller, as far as nobody else needs it.
	Remove(name string) error
	// Wait waits until all files are durable and closed, one that was not ended is closed as it is, and gives back the
	// memory: buffers that Write and End returned must not be used any more.
	Wait() error
	// Close waits for what is on its way and ends the use of the writer. It may take a tenth of a second.
	Close() error
}

// Budget is what memory is reserved from. It may be used by all goroutines.
type Budget interface {
	// Reserve takes n bytes, or fails.
	Reserve(n int64) error
	// Release gives n bytes back.
	Release(n int64)
}

// OnDisk is an FS that knows where it is the machine's own file system.
type OnDisk interface {
	FS
	// OnDisk reports whether the files of a folder are those of OS by the same names, so that a DirectWriter may write them.
	OnDisk(folder string) bool
}

// IsOnDisk reports whether the files of a folder of f may be written by a DirectWriter.
func IsOnDisk(f FS, folder string) bool {
	d, ok := f.(OnDisk)
	return ok && d.OnDisk(folder)
}

// OnDisk implements the interface OnDisk.
func (OS) OnDisk(string) bool { return true }
