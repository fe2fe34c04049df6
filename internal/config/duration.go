package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseDuration reads a duration: numbers with units (ns, us, ms, s, min, h, d and their long names, in any case of letters),
// with or without a space between, one or several; a number alone is milliseconds. Go's form ("1m30s", "1.5s") and ISO's
// ("PT1M30S") are read as well.
func ParseDuration(text string) (time.Duration, error) {
	rest := strings.ToLower(strings.TrimSpace(text))
	if n, err := strconv.ParseInt(rest, 10, 64); err == nil {
		if n > math.MaxInt64/int64(time.Millisecond) || n < math.MinInt64/int64(time.Millisecond) {
			return 0, fmt.Errorf("%q is longer than 292 years", text)
		}
		return time.Duration(n) * time.Millisecond, nil
	}
	if iso, ok := strings.CutPrefix(rest, "p"); ok {
		days, clock, found := strings.Cut(iso, "t")
		if rest = days + clock; !found && strings.ContainsAny(rest, "hms") {
			rest = "?" // a P without T has days only
		}
	}
	var sum time.Duration
	for first := true; rest != "" || first; first = false {
		d, left, err := leadingDuration(text, rest)
		if err != nil {
			return 0, err
		}
		if sum += d; sum < 0 {
			return 0, fmt.Errorf("%q is longer than 292 years", text)
		}
		rest = strings.TrimLeft(left, " \t")
	}
	return sum, nil
}

// leadingDuration reads a number and its unit.
func leadingDuration(text, rest string) (d time.Duration, left string, err error) {
	number := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789."))]
	rest = strings.TrimLeft(rest[len(number):], " \t")
	name := rest
	if i := strings.IndexAny(rest, "0123456789. \t"); i >= 0 {
		name = rest[:i]
	}
	unit := durationUnit(name)
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || unit == 0 {
		return 0, "", fmt.Errorf("%q is no duration: write a number and a unit (ms, s, min, h, d), as in 10 s; a number alone is milliseconds", text)
	}
	if n, err := strconv.ParseInt(number, 10, 64); err == nil && n <= math.MaxInt64/int64(unit) {
		return time.Duration(n) * unit, rest[len(name):], nil
	}
	if f*float64(unit) >= math.MaxInt64 {
		return 0, "", fmt.Errorf("%q is longer than 292 years", text)
	}
	return time.Duration(math.Round(f * float64(unit))), rest[len(name):], nil
}

func durationUnit(name string) time.Duration {
	switch name {
	case "d", "day", "days":
		return 24 * time.Hour
	case "h", "hour", "hours":
		return time.Hour
	case "m", "min", "minute", "minutes":
		return time.Minute
	case "s", "sec", "secs", "second", "seconds":
		return time.Second
	case "ms", "milli", "millis", "millisecond", "milliseconds":
		return time.Millisecond
	case "us", "µs", "micro", "micros", "microsecond", "microseconds":
		return time.Microsecond
	case "ns", "nano", "nanos", "nanosecond", "nanoseconds":
		return time.Nanosecond
	}
	return 0
}

// ParseMemorySize reads a number of bytes: a whole number and a unit (b, k, kb, kib, m, mb, mib, g, gb, gib, t, tb, tib and their
// long names, all powers of 1024, in any case of letters); a number alone is bytes.
func ParseMemorySize(text string) (int64, error) {
	rest := strings.ToLower(strings.TrimSpace(text))
	number := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	shift, known := memoryUnit(strings.TrimSpace(rest[len(number):]))
	if number == "" || !known {
		return 0, fmt.Errorf("%q is no size: write a whole number and a unit (b, kb, mb, gb, tb), as in 64 mb; a number alone is bytes", text)
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%q is more than %d bytes", text, int64(math.MaxInt64))
	}
	return n << shift, nil
}

func memoryUnit(name string) (shift int, ok bool) {
	switch name {
	case "", "b", "bytes":
		return 0, true
	case "k", "kb", "kib", "kibibytes":
		return 10, true
	case "m", "mb", "mib", "mebibytes":
		return 20, true
	case "g", "gb", "gib", "gibibytes":
		return 30, true
	case "t", "tb", "tib", "tebibytes":
		return 40, true
	}
	return 0, false
}
