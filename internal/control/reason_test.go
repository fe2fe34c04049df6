package control

import (
	"fmt"
	"strings"
	"testing"
)

func TestEveryReasonHasWords(t *testing.T) {
	seen := map[string]bool{}
	for r := ReasonNone; r < reasons; r++ {
		word := r.String()
		if r.Text() == "" || r.Text() == word || seen[word] {
			t.Errorf("reason %d: %q, %q", r, word, r.Text())
		}
		if strings.HasPrefix(r.Text(), "reason ") {
			t.Errorf("reason %d has no text", r)
		}
		seen[word] = true
	}
	if got := reasons.Text(); got != fmt.Sprint("reason ", uint8(reasons)) {
		t.Errorf("a reason of a newer program is called %q", got)
	}
}
