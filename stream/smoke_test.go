package stream_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/flott-dev/flott/stream"
)

func TestWordCountCountsEachWord(t *testing.T) {
	env := stream.NewEnv().SetParallelism(2)
	var mu sync.Mutex
	got := map[string]int64{}
	env.FromElements("to be or not", "to be that is", "the question").
		FlatMapSeq(strings.FieldsSeq).
		KeyBy(func(w string) string { return w }).
		Count().
		ForEach(func(c stream.KeyValue[string, int64]) {
			mu.Lock()
			defer mu.Unlock()
			got[c.Key] = max(got[c.Key], c.Value)
		})
	if _, err := env.Execute(context.Background(), "words"); err != nil {
		t.Fatal(err)
	}
	if got["to"] != 2 || got["be"] != 2 || got["question"] != 1 || len(got) != 8 {
		t.Errorf("counts %v", got)
	}
}

func TestPrintPrefixesSubtasks(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	var b bytes.Buffer
	env.FromSequence(1, 5).Map(func(x int64) int64 { return x * x }).Filter(func(x int64) bool { return x%2 == 1 }).PrintTo(&b)
	if _, err := env.Execute(context.Background(), "squares"); err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(b.String()); !slices.Equal(got, []string{"1", "9", "25"}) {
		t.Errorf("printed %q", got)
	}
}
