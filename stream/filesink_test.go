package stream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/connector/csv"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/stream"
)

// totals is a format of whole files: one number, the sum.
type totals struct {
	w   io.Writer
	sum int64
}

func (s *totals) Write(xs []int64) error {
	for _, x := range xs {
		s.sum += x
	}
	return nil
}

func (s *totals) Held() int64 { return 8 }

func (s *totals) Close() error {
	_, err := fmt.Fprintln(s.w, s.sum)
	return err
}

func TestWriteToFilesWritesRecordsAndWholeFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the hour does not change
		dir := t.TempDir()
		env := stream.NewEnv().SetParallelism(1)
		numbers := env.FromSequence(1, 4)
		numbers.WriteToFiles(filepath.Join(dir, "rows"), file.TextEncoding[int64]("\n"))
		numbers.WriteToFiles(filepath.Join(dir, "whole"), file.BulkEncoding[int64]{
			Open:      func(w io.Writer) (file.BulkWriter[int64], error) { return &totals{w: w}, nil },
			Extension: ".sum",
		})
		plan, err := env.ExecutionPlan()
		if err != nil || strings.Count(plan, `"type": "Sink: File Sink"`) != 2 {
			t.Errorf("the plan does not know two file sinks, %v: %s", err, plan)
		}
		if _, err := env.Execute(context.Background(), "files"); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"rows/*/part-0-0": "1\n2\n3\n4\n", "whole/*/part-0-0.sum": "10\n"} {
			found, err := filepath.Glob(filepath.Join(dir, name))
			if err != nil || len(found) != 1 {
				t.Fatalf("%s: %q, %v", name, found, err)
			}
			if _, err := time.Parse("2006-01-02--15", filepath.Base(filepath.Dir(found[0]))); err != nil {
				t.Error(err)
			}
			if got, err := os.ReadFile(found[0]); err != nil || string(got) != text {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
	})
}

func TestMistakesOfWriteToFilesAreReportedWithTheLine(t *testing.T) {
	own := errors.New("no such column")
	env := stream.NewEnv()
	env.FromSequence(1, 4).WriteToFiles("out", file.Encoding[int64]{Err: own})
	_, err := env.Execute(context.Background(), "files")
	if !errors.Is(err, own) || !strings.Contains(err.Error(), "filesink_test.go:") || !strings.Contains(err.Error(), `"out"`) {
		t.Errorf("got %v", err)
	}
}

// Subtasks write files of their own; keyed by bucket, each bucket has one subtask.
func TestStreamKeyedByBucketHasOneFileInEach(t *testing.T) {
	dir := t.TempDir()
	bucket := func(x int64) string { return fmt.Sprint(x % 7) }
	env := stream.NewEnv().SetParallelism(3)
	env.FromSequence(1, 700).KeyBy(bucket).Stream().
		CommitTo(filesink.New(dir, file.TextEncoding[int64]("\n")).BucketBy(bucket))
	if _, err := env.Execute(context.Background(), "files"); err != nil {
		t.Fatal(err)
	}
	for b := range int64(7) {
		files, err := filepath.Glob(filepath.Join(dir, bucket(b), "part-*"))
		if err != nil || len(files) != 1 {
			t.Fatalf("bucket %d has %q, %v", b, files, err)
		}
		if text, err := os.ReadFile(files[0]); err != nil || strings.Count(string(text), "\n") != 100 {
			t.Errorf("bucket %d has %d elements, %v", b, strings.Count(string(text), "\n"), err)
		}
	}
}

func TestSinksThatWouldTakeEachOthersFilesAreAMistake(t *testing.T) {
	dir := t.TempDir()
	lines := file.TextEncoding[int64]("\n")
	other := filesink.New(dir, lines).PartSuffix(".txt")
	env := stream.NewEnv()
	numbers := env.FromSequence(1, 4)
	numbers.WriteToFiles(dir, lines)
	numbers.CommitTo(other)
	numbers.CommitTo(filesink.New(dir, lines).PartPrefix("other"))
	numbers.CommitTo(filesink.New("file://"+dir+"/", lines))
	_, err := env.Execute(context.Background(), "files")
	if want := "another sink of the job writes files part-* in " + dir + " already"; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "PartPrefix") {
		t.Errorf("got %v, want %q", err, want)
	}
	for range 2 { // jobs that follow one another may
		env.FromSequence(1, 4).CommitTo(other)
		if _, err := env.Execute(context.Background(), "files"); err != nil {
			t.Error(err)
		}
	}
}

// Rows that become visible once and whole.
func ExampleStream_WriteToFiles() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	type reading struct {
		Sensor  string
		Celsius float64
	}
	env := stream.NewEnv().SetParallelism(2)
	env.FromElements(reading{"attic", 31}, reading{"cellar", 12}).
		WriteToFiles(dir, csv.Encoding[reading]())
	if _, err := env.Execute(context.Background(), "readings"); err != nil {
		log.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "part-*"))
	if err != nil {
		log.Fatal(err)
	}
	var rows []string
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			log.Fatal(err)
		}
		rows = append(rows, strings.Split(strings.TrimSpace(string(text)), "\n")...)
	}
	slices.Sort(rows)
	fmt.Println(strings.Join(rows, "\n"))
	// Output:
	// attic,31
	// cellar,12
}
