//go:build !unix

package env

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// lock takes a file's lock for this process by making the file. It does not end with a process that is killed: the error
// says what to do then.
func lock(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("lock %s: another process runs the job; if it was killed, remove the file", name)
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return func() {
		_ = f.Close()
		_ = os.Remove(name)
	}, nil
}
