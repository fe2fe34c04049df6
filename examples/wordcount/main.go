// Command wordcount counts the words of text files with rolling counts: every word updates its count as it is read.
// Without arguments it reads the Go tree's own sources, about 100 MB that every machine with Go has.
//
//	wordcount [-parallelism n] [-top n] [file, folder, glob or - for standard input ...]
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"go/build"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
)

// count is a word with how often it has come so far.
type count = stream.KeyValue[string, int64]

func main() {
	parallelism := flag.Int("parallelism", runtime.GOMAXPROCS(0), "subtasks of each operator")
	top := flag.Int("top", 20, "how many of the most frequent words to show")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	source := file.Lines(flag.Args()...).Recursive()
	if flag.NArg() == 0 {
		source = file.Lines(filepath.Join(build.Default.GOROOT, "src", "**", "*.go")).Hidden()
	}
	if err := run(ctx, source, *parallelism, *top, os.Stdout, terminal(os.Stderr)); err != nil {
		log.Fatal(err)
	}
}

// run counts the words of source, shows progress (nil: not) and writes the table to out.
func run(ctx context.Context, source *file.Source[string], parallelism, top int, out, progress io.Writer, opts ...stream.Option) error {
	if top < 1 {
		return fmt.Errorf("show the %d most frequent words: there must be at least one", top)
	}
	env := stream.NewEnv(opts...).SetParallelism(parallelism)
	var best []count
	env.FromSource(source, "Files").
		FlatMap(words).Name("Words").
		KeyBy(func(word string) string { return word }).
		Count().UID("count").
		Process(newTop(top)).Name("Top").
		Global().
		ForEach(func(c count) { best = append(best, c) }).Name("Table").Parallelism(1)

	job, err := env.ExecuteAsync(ctx, "wordcount")
	if err != nil {
		return err
	}
	if progress != nil {
		job.ShowProgress(progress)
	}
	result, err := job.Wait()
	if err != nil {
		return err
	}
	slices.SortFunc(best, byCount)
	for i, c := range best[:min(top, len(best))] {
		fmt.Fprintf(out, "%4d  %-24s %12d\n", i+1, c.Key, c.Value)
	}
	read := int64(0)
	for _, m := range job.Metrics() {
		if m.Name == "Words" {
			read = m.RecordsOut
		}
	}
	fmt.Fprintf(out, "%d words in %.2f s: %.1f M words/s at parallelism %d\n",
		read, result.Duration.Seconds(), float64(read)/result.Duration.Seconds()/1e6, parallelism)
	return nil
}

// words emits the runs of ASCII letters of a line in lower case. A word that is in lower case already is a part of the
// line, not a copy.
func words(line string, emit func(string)) {
	start, upper := -1, false
	for i := range len(line) {
		c := line[i]
		switch {
		case 'a' <= c && c <= 'z':
		case 'A' <= c && c <= 'Z':
			upper = true
		default:
			if start >= 0 {
				emit(lower(line[start:i], upper))
			}
			start, upper = -1, false
			continue
		}
		if start < 0 {
			start = i
		}
	}
	if start >= 0 {
		emit(lower(line[start:], upper))
	}
}

func lower(word string, upper bool) string {
	if upper {
		return strings.ToLower(word)
	}
	return word
}

// byCount puts the most frequent first, equal ones in the order of the alphabet.
func byCount(a, b count) int {
	return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Key, b.Key))
}

// topper keeps the n most frequent words that its subtask has seen and emits them at the end of the input.
type topper struct {
	n     int
	best  map[string]int64
	floor int64 // no word with a smaller count can be among the best
}

func newTop(n int) func(*process.Runtime) *topper {
	return func(*process.Runtime) *topper { return &topper{n: n, best: map[string]int64{}} }
}

// ProcessElement keeps c if it may be among the best. Counts only grow, so a word below the floor can wait.
func (t *topper) ProcessElement(_ *process.Context, c count, _ *process.Collector[count]) error {
	if c.Value <= t.floor {
		return nil
	}
	t.best[c.Key] = c.Value
	if len(t.best) > 2*t.n { // a low limit keeps the floor high, and most words below it
		t.prune()
	}
	return nil
}

// prune drops all but the n best.
func (t *topper) prune() {
	all := t.sorted()
	for _, c := range all[t.n:] {
		delete(t.best, c.Key)
	}
	t.floor = all[t.n-1].Value
}

func (t *topper) sorted() []count {
	all := make([]count, 0, len(t.best))
	for k, v := range t.best {
		all = append(all, count{Key: k, Value: v})
	}
	slices.SortFunc(all, byCount)
	return all
}

// Finish emits the best.
func (t *topper) Finish(out *process.Collector[count]) error {
	all := t.sorted()
	for _, c := range all[:min(t.n, len(all))] {
		out.Collect(c)
	}
	return nil
}

// terminal is f if somebody looks at it.
func terminal(f *os.File) io.Writer {
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return f
}
