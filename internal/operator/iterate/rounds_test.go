package iterate

import (
	"fmt"
	"strings"
	"testing"
)

// script feeds events "head kind number" to the rounds and notes the answers.
func script(t *testing.T, r *Rounds, lines string) string {
	t.Helper()
	kinds := map[string]byte{
		"hold": eventHold, "clean": eventClean, "dirty": eventDirty, "silent": eventSilent, "resumed": eventResumed,
	}
	var out []string
	for line := range strings.SplitSeq(lines, ",") {
		var head int
		var kind string
		var n int64
		if _, err := fmt.Sscan(line, &head, &kind, &n); err != nil {
			t.Fatal(line, err)
		}
		answers, err := r.Handle(head, encodeEvent(kinds[kind], n))
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range answers {
			kind, n, err := decodeEvent(a)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprint(map[byte]string{eventProbe: "probe ", eventRelease: "release "}[kind], n))
		}
	}
	return strings.Join(out, ", ")
}

func TestRoundsReleaseWhatWaitsAfterACleanRound(t *testing.T) {
	for _, c := range []struct{ name, events, want string }{
		{"not before all heads wait", "0 hold -1", ""},
		{"a clean round", "0 hold -1, 1 hold -1, 1 clean 1, 0 clean 1", "probe 1, release -1"},
		{"one head was fed", "0 hold -1, 1 hold -1, 0 clean 1, 1 dirty 1, 0 clean 2, 1 clean 2", "probe 1, probe 2, release -1"},
		{
			"what waits only since the round began", "0 hold -1, 1 hold -1, 0 hold 7, 1 hold 7, 0 clean 1, 1 clean 1, 0 clean 2, 1 clean 2",
			"probe 1, release -1, probe 2, release 7",
		},
		{
			"after a dirty round both wait", "0 hold -1, 1 hold -1, 0 hold 7, 1 hold 7, 0 dirty 1, 1 clean 1, 0 clean 2, 1 clean 2",
			"probe 1, probe 2, release -1, release 7",
		},
		{"an old answer", "0 hold -1, 1 hold -1, 0 clean 9, 1 clean 9", "probe 1"},
		{"one head is silent", "0 hold -1, 1 hold -1, 0 silent 0", "probe 1"},
		{"one is silent no more", "0 hold -1, 1 hold -1, 0 silent 0, 0 resumed 0, 1 silent 0", "probe 1"},
		{"all heads are silent", "0 hold -1, 1 hold -1, 0 silent 0, 1 silent 0", "probe 1, release -1"},
		{"given up for good", "0 hold -1, 1 hold -1, 0 silent 0, 1 silent 0, 0 hold -2, 1 hold -2", "probe 1, release -1, release -2"},
		{"given up before anything waits", "0 silent 0, 1 silent 0, 0 hold -1, 1 hold -1", "release -1"},
		{"an answer after that", "0 hold -1, 1 hold -1, 0 clean 1, 0 silent 0, 1 silent 0, 1 clean 1", "probe 1, release -1"},
	} {
		if got := script(t, NewRounds(2), c.events); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestRoundsRefuseDamagedEvents(t *testing.T) {
	for _, event := range [][]byte{nil, {eventHold}, {eventHold, 0x80}, {eventHold, 0, 0}, {eventRelease, 0}, {99, 0}} {
		if _, err := NewRounds(1).Handle(0, event); err == nil {
			t.Errorf("% x was taken", event)
		}
	}
}
