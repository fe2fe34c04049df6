package filesink

import (
	"strconv"
	"strings"
)

// inProgress stands between the name that a hidden file will have and the id of its writer.
const inProgress = ".inprogress."

// partName is the visible name of a file.
func (s *settings) partName(subtask int, count int64) string {
	return s.prefix + "-" + strconv.Itoa(subtask) + "-" + strconv.FormatInt(count, 10) + s.ending()
}

// ending is what follows the count.
func (s *settings) ending() string { return s.suffix + s.compression.extension() }

// tempName is the hidden name of a file that is not complete.
func tempName(name, id string) string { return "." + name + inProgress + id }

// parsed is what the name of a file says.
type parsed struct {
	subtask int
	count   int64
	ending  string
	id      string // of a hidden file; "": it is visible
}

// parse reads the name of a file with the sink's prefix.
func (s *settings) parse(name string) (p parsed, ok bool) {
	if rest, hidden := strings.CutPrefix(name, "."); hidden {
		if name, p.id, ok = strings.Cut(rest, inProgress); !ok || p.id == "" {
			return p, false
		}
	}
	rest, ok := strings.CutPrefix(name, s.prefix+"-")
	if !ok {
		return p, false
	}
	subtask, rest, ok := number(rest)
	if !ok || subtask > 1<<31-1 {
		return p, false
	}
	if rest, ok = strings.CutPrefix(rest, "-"); !ok {
		return p, false
	}
	p.subtask = int(subtask)
	p.count, p.ending, ok = number(rest)
	return p, ok
}

// number reads the number that a text begins with.
func number(text string) (n int64, rest string, ok bool) {
	end := 0
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(text[:end], 10, 64)
	return n, text[end:], err == nil
}
