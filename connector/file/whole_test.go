package file_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/internal/vfs"
)

// A file that can't be read to its end is no element.
func TestWholeFileThatCannotBeReadIsAnError(t *testing.T) {
	for nth := 1; nth <= 3; nth++ {
		bad := vfs.NewFaulty(disk(t, map[string]string{"f": strings.Repeat("z", 1<<20)}))
		bad.Fail(vfs.OpRead, nth, syscall.EIO)
		got, err := filetest.Collect(file.New(file.Whole{}, "f").On(bad), 1, 1)
		at, ok := errors.AsType[*file.Error](err)
		if !errors.Is(err, syscall.EIO) || !ok || at.Path != "f" || len(got) != 0 {
			t.Errorf("read %d fails: %d elements, %v", nth, len(got), err)
		}
	}
}
