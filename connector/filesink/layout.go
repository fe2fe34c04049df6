package filesink

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// layout names buckets by time. It is the pattern of a description; a namer uses it.
type layout struct {
	zone   *time.Location
	fields []field
	unit   int64 // ms in which the name does not change, if the zone doesn't
}

// field is a letter of a pattern, repeated, or text.
type field struct {
	letter byte // 0: text
	width  int
	text   string
}

const (
	second = 1000
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
)

// newLayout reads a pattern as Java's DateTimeFormatter does, as far as numbers go.
func newLayout(pattern string, zone *time.Location) (*layout, error) {
	l := &layout{zone: zone, unit: day}
	for rest := pattern; rest != ""; {
		f, n, err := nextField(rest)
		if err != nil {
			return nil, fmt.Errorf("time pattern %q: %w", pattern, err)
		}
		l.fields = append(l.fields, f)
		l.unit = min(l.unit, f.unit())
		rest = rest[n:]
	}
	if len(l.fields) == 0 {
		return nil, errors.New("empty time pattern; NoBuckets writes into the folder itself")
	}
	if err := checkBucket(l.name(time.Unix(0, 0))); err != nil {
		return nil, fmt.Errorf("time pattern %q: %w", pattern, err)
	}
	return l, nil
}

// nextField reads what a pattern begins with and tells its length.
func nextField(pattern string) (f field, n int, err error) {
	c := pattern[0]
	switch {
	case c == '\'':
		return quoted(pattern)
	case strings.IndexByte("[]{}#", c) >= 0:
		return f, 0, fmt.Errorf("%q has a meaning of its own in such patterns and stands in quotes as text", string(c))
	case c|0x20 < 'a' || c|0x20 > 'z':
		return field{text: pattern[:1]}, 1, nil
	}
	for n < len(pattern) && pattern[n] == c {
		n++
	}
	widest := map[byte]int{'y': 9, 'u': 9, 'M': 2, 'd': 2, 'D': 3, 'H': 2, 'm': 2, 's': 2, 'S': 9}[c]
	if widest == 0 {
		return f, 0, fmt.Errorf("unknown letter %q; there are y, M, d, D, H, m, s, S, and text in single quotes", string(c))
	}
	if n > widest {
		return f, 0, fmt.Errorf("%d times %q; %d are the most", n, string(c), widest)
	}
	return field{letter: c, width: n}, n, nil
}

// quoted reads text in single quotes; two of them are one.
func quoted(pattern string) (f field, n int, err error) {
	if strings.HasPrefix(pattern, "''") {
		return field{text: "'"}, 2, nil
	}
	for n = 1; n < len(pattern); n++ {
		if pattern[n] != '\'' {
			f.text += pattern[n : n+1]
			continue
		}
		if !strings.HasPrefix(pattern[n:], "''") {
			return f, n + 1, nil
		}
		f.text += "'"
		n++
	}
	return f, 0, errors.New("a single quote without its partner")
}

// unit is the ms in which a field stays the same.
func (f *field) unit() int64 {
	switch f.letter {
	case 'S':
		return 1
	case 's':
		return second
	case 'm':
		return minute
	case 'H':
		return hour
	}
	return day
}

// name is the bucket of a time, which is in the layout's zone.
func (l *layout) name(t time.Time) string {
	var b []byte
	for i := range l.fields {
		b = l.fields[i].append(b, t)
	}
	return string(b)
}

func (f *field) append(b []byte, t time.Time) []byte {
	switch f.letter {
	case 'y', 'u':
		return f.year(b, t.Year())
	case 'M':
		return padded(b, int(t.Month()), f.width)
	case 'd':
		return padded(b, t.Day(), f.width)
	case 'D':
		return padded(b, t.YearDay(), f.width)
	case 'H':
		return padded(b, t.Hour(), f.width)
	case 'm':
		return padded(b, t.Minute(), f.width)
	case 's':
		return padded(b, t.Second(), f.width)
	case 'S':
		return append(b, fmt.Sprintf("%09d", t.Nanosecond())[:f.width]...)
	}
	return append(b, f.text...)
}

// year writes two digits where two letters ask for them, and a sign where there are more digits than letters.
func (f *field) year(b []byte, year int) []byte {
	switch {
	case f.width == 2:
		return padded(b, (year%100+100)%100, 2)
	case year < 0:
		return padded(append(b, '-'), -year, f.width)
	case f.width >= 4 && len(strconv.Itoa(year)) > f.width:
		b = append(b, '+')
	}
	return padded(b, year, f.width)
}

func padded(b []byte, n, width int) []byte {
	text := strconv.Itoa(n)
	for i := len(text); i < width; i++ {
		b = append(b, '0')
	}
	return append(b, text...)
}

// namer is a layout in use: it makes a name once for all times that share it, as long as they come together.
type namer struct {
	*layout
	from, to int64 // ms, to excluded; equal: nothing yet
	last     string
}

// at is the bucket of a time in ms since 1970.
func (n *namer) at(ms int64) string {
	if ms >= n.from && ms < n.to {
		return n.last
	}
	t := time.UnixMilli(ms).In(n.zone)
	n.last = n.name(t)
	_, offset := t.Zone()
	local := ms + int64(offset)*second
	floor := local % n.unit
	if floor < 0 {
		floor += n.unit
	}
	n.from, n.to = ms-floor, ms-floor+n.unit
	start, end := t.ZoneBounds()
	if !start.IsZero() {
		n.from = max(n.from, start.UnixMilli())
	}
	if !end.IsZero() {
		n.to = min(n.to, end.UnixMilli())
	}
	return n.last
}
