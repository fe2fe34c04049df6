package file_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/internal/vfs"
)

// disk makes a file system with the given files.
func disk(t testing.TB, files map[string]string) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem()
	for name, text := range files {
		put(t, m, name, text)
	}
	return m
}

func put(t testing.TB, m vfs.FS, name, text string) {
	t.Helper()
	if i := strings.LastIndexByte(name, '/'); i > 0 {
		if err := m.MkdirAll(name[:i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := vfs.WriteFile(m, name, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func TestLinesReadsEveryLineOnceAtAnyParallelismAndSplitSize(t *testing.T) {
	var text strings.Builder
	var want []string
	for i := range 200 {
		line := fmt.Sprintf("%d %s", i, strings.Repeat("x", i%17))
		want = append(want, line)
		text.WriteString(line + "\n")
	}
	slices.Sort(want)
	m := disk(t, map[string]string{"d/a.txt": text.String()[:1000], "d/b.txt": text.String()[1000:]})
	cut := strings.Split(text.String()[:1000]+"\n"+text.String()[1000:], "\n")
	want = cut[:len(cut)-1]
	slices.Sort(want)
	for _, parallelism := range []int{1, 2, 4} {
		for _, size := range []int64{1, 8, 100, 1 << 20} {
			got, err := filetest.Collect(file.Lines("d").On(m).SplitSize(size), parallelism, 7)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("parallelism %d, split size %d: %d lines, want %d", parallelism, size, len(got), len(want))
			}
		}
	}
}
