package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// wantsColour says whether output to a file may have colours: it is a terminal that knows them, and NO_COLOR is not set.
func wantsColour(f *os.File, env func(string) string) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && env("NO_COLOR") == "" && env("TERM") != "" && env("TERM") != "dumb"
}

// The terminal's numbers of styles.
const (
	bold  = 1
	red   = 31
	green = 32
)

// styled is a text in a style, if colours are wanted.
func (a *app) styled(style int, text string) string {
	if !a.colour {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", style, text)
}

// shown is a name out of a file as it may be written to a terminal: quoted if it is empty or holds what can't be seen, or a
// space at an end.
func shown(name string) string {
	plain := name != "" && strings.TrimSpace(name) == name
	for _, r := range name {
		plain = plain && unicode.IsPrint(r) && r != unicode.ReplacementChar
	}
	if plain {
		return name
	}
	return strconv.Quote(name)
}

// orDash is a name, or "-" if there is none.
func orDash(name string) string {
	if name == "" {
		return "-"
	}
	return shown(name)
}

// size is a number of bytes for people.
func size(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n)/(1<<10), 0
	for v >= 1023.95 && unit < 5 {
		v, unit = v/(1<<10), unit+1
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGTPE"[unit])
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// instant is a time in ms since 1970 as RFC 3339 text.
func instant(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// eventTime is the event time of a channel: an instant, "none" before the first watermark, "end" after the last.
func eventTime(ms int64) string {
	switch ms {
	case math.MinInt64:
		return "none"
	case math.MaxInt64:
		return "end"
	}
	return instant(ms)
}
