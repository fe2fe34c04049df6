package checkpoint

import "github.com/flott-dev/flott/internal/vfs"

// diskIfNil gives the machine's file system in place of nil.
func diskIfNil(f vfs.FS) vfs.FS {
	if f == nil {
		return vfs.OS{}
	}
	return f
}
