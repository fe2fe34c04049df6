//go:build servers && unix

package servers_test

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/stream"
)

// filesDir makes the test binary a program that writes files to the storage of jobURL; its own state lies there.
const filesDir = "FLOTT_FILES_DIR"

// filesNumbers is how many numbers it writes, three times.
const filesNumbers = 3000

// fileSinks are the ways in which it writes them, by folder.
func fileSinks(t *testing.T, where string) map[string]*filesink.Sink[int64] {
	t.Helper()
	to := func(name string) *filesink.Sink[int64] {
		return filesink.New(below(t, where, name), file.TextEncoding[int64]("\n"))
	}
	return map[string]*filesink.Sink[int64]{
		"plain":     to("plain").BucketBy(func(x int64) string { return "last digit " + strconv.FormatInt(x%3, 10) }),
		"merged":    to("merged").NoBuckets().CompactAfter(3),
		"zstandard": to("zstandard").NoBuckets().Compress(filesink.Zstd).MaxPartSize(200),
	}
}

// firstCheckpoint is what the program says when its first checkpoint is complete: what is killed before leaves hidden files.
const firstCheckpoint = "first checkpoint"

// TestFilesProgram is the program; alone it does nothing. It tells each tenth number.
func TestFilesProgram(t *testing.T) {
	dir := os.Getenv(filesDir)
	if dir == "" {
		return
	}
	env := stream.NewEnv(stream.WithStorage(openers()...), stream.WithRecovery(dir)).SetParallelism(2).EnableCheckpointing(200 * time.Millisecond)
	numbers := env.FromGenerator(filesNumbers, func(i int64) int64 { return i + 1 }, 1000).UID("a thousand per second").
		Map(func(x int64) int64 {
			if x%10 == 0 {
				fmt.Println("total", x, 0)
			}
			return x
		}).UID("tell")
	for name, sink := range fileSinks(t, os.Getenv(jobURL)) {
		numbers.CommitTo(sink).UID(name)
	}
	job, err := env.ExecuteAsync(context.Background(), "files")
	if err != nil {
		t.Fatal(err)
	}
	for told := false; !told; {
		select {
		case <-time.After(10 * time.Millisecond):
			if told = job.Checkpoints().Counts.Completed > 0; told {
				fmt.Println(firstCheckpoint)
			}
		case <-job.Done():
			told = true
		}
	}
	if _, err := job.Wait(); err != nil {
		t.Fatal(err)
	}
}

// filesAreWrittenOnce kills the program three times and lets it come to its end: its files hold each number once, and a source
// reads them.
func filesAreWrittenOnce(t *testing.T, o checkpoint.Opener, where string) {
	dir := t.TempDir()
	for _, numbers := range []int{50, 80, 110} {
		p := startFiles(t, where, dir)
		for n := 0; n < numbers || !slices.Contains(p.text, firstCheckpoint); n++ {
			if !p.line(t, map[int64]int64{}) {
				break
			}
		}
		p.kill(t)
	}
	p := startFiles(t, where, dir)
	for p.line(t, map[int64]int64{}) {
	}
	p.end(t)
	f, root := opened(t, o, where)
	for name := range fileSinks(t, where) {
		env := stream.NewEnv(stream.WithStorage(o)).SetParallelism(2)
		lines, err := stream.ExecuteAndCollect(t.Context(), env.ReadTextFile(below(t, where, name), stream.Recursive()), name)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		for _, l := range lines {
			seen[l]++
		}
		for x := range filesNumbers {
			if n := seen[strconv.Itoa(x+1)]; n != 1 {
				t.Fatalf("%s: number %d is there %d times", name, x+1, n)
			}
		}
		if len(seen) != filesNumbers {
			t.Errorf("%s: there are %d lines, want %d", name, len(seen), filesNumbers)
		}
		t.Logf("%s: %d files", name, noneIsHidden(t, f, path.Join(root, name)))
	}
}

func startFiles(t *testing.T, where, dir string) *program {
	t.Helper()
	return startTest(t, "TestFilesProgram", jobURL+"="+where, filesDir+"="+dir)
}

// noneIsHidden counts the files in a folder and below.
func noneIsHidden(t *testing.T, f checkpoint.FS, dir string) (n int) {
	t.Helper()
	entries, err := f.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir():
			n += noneIsHidden(t, f, name)
		case strings.HasPrefix(e.Name(), "."):
			t.Errorf("left over: %s", name)
		default:
			n++
		}
	}
	return n
}
