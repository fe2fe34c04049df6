package main

import (
	"context"
	"strings"
	"sync"

	"github.com/flott-dev/flott/bench/loops"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/stream"
)

// words is a word with its rolling count.
type words = stream.KeyValue[string, int64]

// wordCount reads files of text, cuts them into words and counts these; reading is inside on both sides.
func wordCount(ctx context.Context, o options) (*pair, error) {
	files, err := o.files(ctx)
	if err != nil {
		return nil, err
	}
	_, n, _ := loops.WordCount(files)
	rolling := func(word string, n uint64) uint64 { return uint64(len(word)) * n }
	job := func(ctx context.Context, sum func([]words) uint64) (uint64, error) {
		out := newTally(sum)
		err := execute(ctx, "wordcount", 1, func(env *stream.Env) {
			env.FromSource(file.Lines(files...), "Files").
				FlatMap(cutWords).
				KeyBy(func(word string) string { return word }).
				Count().
				SinkTo(out)
		})
		return out.total.Load(), err
	}
	return &pair{
		elements: n,
		loop: func() uint64 {
			_, _, sum := loops.WordCount(files)
			return sum
		},
		digest: func() uint64 {
			counts, _, _ := loops.WordCount(files)
			return counts.Rolling(rolling)
		},
		ours: func(ctx context.Context) (uint64, error) {
			return job(ctx, func(ws []words) (sum uint64) {
				for i := range ws {
					sum += rolling(ws[i].Key, uint64(ws[i].Value))
				}
				return sum
			})
		},
		exact: func(ctx context.Context) (uint64, error) {
			last := newFinals()
			if _, err := job(ctx, last.add); err != nil {
				return 0, err
			}
			var sum uint64
			for w, n := range last.counts {
				sum += loops.WordChecksum(w, n)
			}
			return sum, nil
		},
	}, nil
}

// finals keeps the last count of each word.
type finals struct {
	mu     sync.Mutex
	counts map[string]int64
}

func newFinals() *finals { return &finals{counts: map[string]int64{}} }

func (f *finals) add(ws []words) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range ws {
		f.counts[w.Key] = w.Value
	}
	return 0
}

// cutWords emits the runs of ASCII letters of a line in lower case, cut off as the loop cuts them. A word that is in
// lower case already is a part of the line, not a copy.
func cutWords(line string, emit func(string)) {
	start, upper := -1, false
	for i := range len(line) {
		c := line[i]
		lower := 'a' <= c && c <= 'z'
		if (lower || 'A' <= c && c <= 'Z') && (start < 0 || i-start < loops.MaxWord) {
			if start < 0 {
				start = i
			}
			upper = upper || !lower
			continue
		}
		if start >= 0 {
			emit(toLower(line[start:i], upper))
			start, upper = -1, false
		}
	}
	if start >= 0 {
		emit(toLower(line[start:], upper))
	}
}

func toLower(word string, upper bool) string {
	if upper {
		return strings.ToLower(word)
	}
	return word
}
