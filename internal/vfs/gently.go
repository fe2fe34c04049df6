package vfs

import (
	"path"
	"runtime"
)

// gentleStep is how much of a file is removed at a time.
const gentleStep = 4 << 20

// RemoveGently removes a file that nobody else needs, not even who has it open or knows it by another name. On the machine's own
// disks a large one is shortened first, piece by piece: a file system may take 10 ms and more to free all of it at once, in which
// Go keeps a processor. A crash in between leaves a short file.
func RemoveGently(f FS, name string) error {
	if IsOnDisk(f, path.Dir(name)) {
		info, err := f.Stat(name)
		if err != nil {
			return err
		}
		for size := info.Size() - gentleStep; info.Mode().IsRegular() && size > 0; size -= gentleStep {
			if err := f.Truncate(name, size); err != nil {
				return err
			}
			runtime.Gosched()
		}
	}
	return f.Remove(name)
}
