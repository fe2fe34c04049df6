package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Type is what values of a key look like.
type Type uint8

// The types of keys.
const (
	// Text is anything.
	Text Type = iota
	// Boolean is true or false.
	Boolean
	// Integer is a whole number.
	Integer
	// Number may have a fraction.
	Number
	// Duration: "10 s", "500 ms", "1 h 30 min", Go's "1m30s", "PT10S"; a number alone is milliseconds.
	Duration
	// MemorySize: "20 kb", "4 gb", "4GiB", all in powers of 1024; a number alone is bytes.
	MemorySize
	// Enum is one of Option.Values, in any case of letters.
	Enum
	// Map is "key:value,key:value", or a key below for each entry.
	Map
	// List is "a;b", or a list of YAML.
	List
)

// String is the type's word in the guide.
func (t Type) String() string {
	return [...]string{"text", "boolean", "integer", "number", "duration", "memory size", "enum", "map", "list"}[t]
}

// Option is one line of the table of keys.
type Option struct {
	// Key is the newest name, Older the names that it had, the newest first.
	Key   string
	Older []string
	Type  Type
	// Default is the value of who sets none, as text; "": it has none, or Meaning tells.
	Default string
	// Values are those of an Enum.
	Values []string
	// Least is the least number, size or duration (ns) that is allowed.
	Least int64
	// Launcher says that who starts the program knows better than the program: its value wins over what is set in code.
	Launcher bool
	// Meaning tells users what it does.
	Meaning string
}

// age is 0 for the newest name.
func (o *Option) age(name string) int {
	if name == o.Key {
		return 0
	}
	return 1 + slices.Index(o.Older, name)
}

// name is the name of that age.
func (o *Option) name(age int) string {
	if age == 0 {
		return o.Key
	}
	return o.Older[age-1]
}

// parse is the value that a text means.
func (o *Option) parse(text string) (any, error) {
	text = strings.TrimSpace(text)
	switch o.Type {
	case Boolean:
		switch strings.ToLower(text) {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
		return nil, fmt.Errorf("%q is neither true nor false", text)
	case Integer:
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("%q is no whole number", text)
		}
		return n, o.least(text, int64(n))
	case Number:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || !(f >= float64(o.Least)) {
			return nil, fmt.Errorf("%q is no number of %d or more", text, o.Least)
		}
		return f, nil
	case Duration:
		d, err := ParseDuration(text)
		if err != nil {
			return nil, err
		}
		return d, o.least(text, int64(d))
	case MemorySize:
		n, err := ParseMemorySize(text)
		if err != nil {
			return nil, err
		}
		return n, o.least(text, n)
	case Enum:
		for _, v := range o.Values {
			if strings.EqualFold(v, text) || strings.EqualFold(strings.ReplaceAll(v, "_", "-"), text) {
				return v, nil
			}
		}
		return nil, fmt.Errorf("%q is none of %s", text, strings.Join(o.Values, ", "))
	case Map:
		return orError(ParseMap(text))
	case List:
		return orError(ParseList(text))
	}
	return text, nil
}

func (o *Option) least(text string, n int64) error {
	if n >= o.Least {
		return nil
	}
	if o.Type == Duration {
		return fmt.Errorf("%q is less than %d ms", text, o.Least/1e6)
	}
	return fmt.Errorf("%q is less than %d", text, o.Least)
}

func orError[T any](v T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

// Secret says whether the value of a key must not be shown.
func Secret(key string) bool {
	key = strings.ToLower(key)
	for _, word := range [...]string{"password", "secret", "fs.azure.account.key", "apikey", "api-key", "auth-params", "service-key", "token", "basic-auth", "jaas.config", "http-headers"} {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}
