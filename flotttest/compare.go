package flotttest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Equal compares two lists element by element, by their printed form (%+v), and reports the difference.
func Equal[T any](t testing.TB, got, want []T) {
	t.Helper()
	if diff := difference(printed(got), printed(want)); diff != "" {
		t.Errorf("the elements differ (- wanted, + came):\n%s", diff)
	}
}

// Same compares two lists regardless of order, by the printed form of their elements (%+v): what parallel subtasks emit
// comes in no order. It reports what is missing and what is too much.
func Same[T any](t testing.TB, got, want []T) {
	t.Helper()
	g, w := printed(got), printed(want)
	slices.Sort(g)
	slices.Sort(w)
	if diff := difference(g, w); diff != "" {
		t.Errorf("the elements differ, order aside (- wanted, + came):\n%s", diff)
	}
}

// Sorted is a sorted copy.
func Sorted[T cmp.Ordered](xs []T) []T {
	out := slices.Clone(xs)
	slices.Sort(out)
	return out
}

func printed[T any](xs []T) []string {
	out := make([]string, len(xs))
	for i, x := range xs {
		out[i] = fmt.Sprintf("%+v", x)
	}
	return out
}

// maxDiff bounds the lines of a reported difference.
const maxDiff = 40

// difference shows two lists line by line from where they begin to differ; "" if they are equal.
func difference(got, want []string) string {
	if slices.Equal(got, want) {
		return ""
	}
	from := 0
	for from < len(got) && from < len(want) && got[from] == want[from] {
		from++
	}
	to := 0 // equal at the end
	for to < len(got)-from && to < len(want)-from && got[len(got)-1-to] == want[len(want)-1-to] {
		to++
	}
	var lines []string
	if from > 0 {
		lines = append(lines, fmt.Sprintf("  (%d equal)", from))
	}
	for _, s := range want[from : len(want)-to] {
		lines = append(lines, "- "+s)
	}
	for _, s := range got[from : len(got)-to] {
		lines = append(lines, "+ "+s)
	}
	if to > 0 {
		lines = append(lines, fmt.Sprintf("  (%d equal)", to))
	}
	if len(lines) > maxDiff {
		lines = append(lines[:maxDiff], fmt.Sprintf("  ... %d lines more", len(lines)-maxDiff))
	}
	return strings.Join(lines, "\n")
}
