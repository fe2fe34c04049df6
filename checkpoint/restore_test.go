package checkpoint

import (
	"fmt"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
)

func TestRowsComeBackAtAnyParallelism(t *testing.T) {
	fs := vfs.NewMem()
	j := newJob(t, fs)
	s := openStorage(t, fs)
	for id, parallelism := range []int{1, 2, 3, 16} {
		j.parallelism = parallelism
		if _, err := j.checkpoint(s, int64(id+1)); err != nil {
			t.Fatal(err)
		}
		m, err := s.Latest()
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Verify(fs); err != nil {
			t.Error(err)
		}
		for _, now := range []int{1, 2, 3, 5, 16} {
			t.Run(fmt.Sprint(parallelism, " to ", now), func(t *testing.T) {
				got, err := restoredState(fs, m, now, j.groups)
				if want := j.wholeState(); err != nil || got != want {
					t.Errorf("%v\ngot:\n%.2000s\nwant:\n%.2000s", err, got, want)
				}
			})
		}
	}
}
