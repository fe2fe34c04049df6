package config

import (
	"fmt"
	"slices"
	"strings"
)

// notes collects the settings that do nothing here, so that each reason is told once.
type notes struct {
	// others are names of keys that do something elsewhere, with the reason why not here; cluster is the reason for keys of
	// clusters, "": the one of jobs.
	others  map[string]string
	cluster string

	reasons []string            // in the order in which they came up
	keys    map[string][]string // by reason
	first   map[string]Place
}

// take notes a setting that no option has.
func (n *notes) take(e Entry, names map[string]string) {
	reason := "unknown keys"
	key := e.Key
	if why := n.others[e.Key]; why != "" {
		reason = why
	} else if near := nearest(e.Key, names, n.others); near != "" {
		key += " (did you mean " + near + "?)"
	} else if why := idleReason(e.Key); why != "" {
		if reason = why; why == cluster && n.cluster != "" {
			reason = n.cluster
		}
	}
	if n.keys == nil {
		n.keys, n.first = map[string][]string{}, map[string]Place{}
	}
	if len(n.keys[reason]) == 0 {
		n.reasons = append(n.reasons, reason)
		n.first[reason] = e.At
	}
	if !slices.Contains(n.keys[reason], key) {
		n.keys[reason] = append(n.keys[reason], key)
	}
}

func (n *notes) warnings() []string {
	var out []string
	for _, reason := range n.reasons {
		out = append(out, fmt.Sprintf("%v: ignored, %s: %s", n.first[reason], reason, strings.Join(n.keys[reason], ", ")))
	}
	return out
}

// nearest is a known key that differs in few letters, "" if none does.
func nearest(key string, known ...map[string]string) string {
	best, found := 2+len(key)/12, "" // one letter of a short key, four of a long one; no key of Flink's is that near to another
	for _, names := range known {
		for name := range names {
			if d := distance(key, name); d < best || d == best && found != "" && name < found {
				best, found = d, name
			}
		}
	}
	return found
}

// distance is how many letters must be put in, taken out or changed to make a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
