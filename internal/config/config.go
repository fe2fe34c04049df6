// Package config reads configuration: files in the syntax of Flink's, and settings by key from elsewhere, in layers of which
// a higher one wins. It has the table of all keys with their older names, types, defaults and meanings, finds mistakes with
// file and line, and says which keys do nothing here and why. It is pure: it opens no file, reads no environment and changes
// no setting; package env applies what it gives to a job, and the command line reads files for it.
package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Entry is one setting as somebody wrote it.
type Entry struct {
	Key, Text string
	At        Place
}

// Place is where a setting was written.
type Place struct {
	Source string // a file, or what else gave it: "-D"
	Line   int    // 0: it has none
}

// String is the place as errors name it.
func (p Place) String() string {
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d", p.Source, p.Line)
	}
	return p.Source
}

// Layer is what one source sets, in the order of writing: the last of equal keys counts.
type Layer struct {
	Entries  []Entry
	Warnings []string // what was skipped while it was read
}

// Texts is a layer of settings that have no lines, in the order of their keys.
func Texts(source string, settings map[string]string) Layer {
	var l Layer
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		l.Entries = append(l.Entries, Entry{Key: key, Text: settings[key], At: Place{Source: source}})
	}
	return l
}

// Config is what is set, by the newest names of keys, checked and typed. It does not change.
type Config struct {
	options  map[string]*Option
	values   map[string]value
	parts    map[string]map[string]Entry // of map options: what was set by keys below theirs
	warnings []string
}

// value is a setting with what it says.
type value struct {
	Entry
	parsed any // by the option's type
}

// Resolve puts layers on top of each other, the lowest first. The error joins all mistakes, each with its place, key, value
// and what is allowed; what is merely useless here is a warning.
func Resolve(layers ...Layer) (*Config, error) {
	return resolveBy(Options(), notes{}, layers)
}

// resolveBy is Resolve with a table of keys; idle collects those that are not in it.
func resolveBy(options []Option, idle notes, layers []Layer) (*Config, error) {
	c := &Config{options: map[string]*Option{}, values: map[string]value{}, parts: map[string]map[string]Entry{}}
	names, maps := namesOf(options), []string(nil)
	for _, o := range options {
		c.options[o.Key] = &o
		if o.Type == Map {
			maps = append(maps, o.Key)
		}
	}
	for _, l := range layers {
		c.warnings = append(c.warnings, l.Warnings...)
		c.layer(l, names, maps, &idle)
	}
	c.warnings = append(c.warnings, idle.warnings()...)
	return c, c.parse()
}

// namesOf are all names of options, with the newest of each.
func namesOf(options []Option) map[string]string {
	names := map[string]string{}
	for _, o := range options {
		names[o.Key] = o.Key
		for _, older := range o.Older {
			names[older] = o.Key
		}
	}
	return names
}

// layer puts one layer on top: of a key's names in it the newest counts.
func (c *Config) layer(l Layer, names map[string]string, maps []string, idle *notes) {
	age := map[string]int{} // by newest name
	for _, e := range l.Entries {
		if key, ok := names[e.Key]; ok {
			o := c.options[key]
			a := o.age(e.Key)
			before, twice := age[key]
			if twice && before != a && c.values[key].Text != e.Text {
				c.warnings = append(c.warnings, fmt.Sprintf("%v: %s and %s are names of one setting and differ: %s counts", e.At, c.values[key].Key, e.Key, o.name(min(before, a))))
			}
			if !twice || a <= before {
				age[key], c.values[key] = a, value{Entry: e}
				delete(c.parts, key)
			}
			continue
		}
		if i := slices.IndexFunc(maps, func(m string) bool { return strings.HasPrefix(e.Key, m+".") }); i >= 0 {
			part := c.parts[maps[i]]
			if part == nil {
				part = map[string]Entry{}
				c.parts[maps[i]] = part
			}
			part[e.Key[len(maps[i])+1:]] = e
			continue
		}
		idle.take(e, names)
	}
}

// parse gives values their types.
func (c *Config) parse() error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(c.values)) {
		v, o := c.values[key], c.options[key]
		parsed, err := o.parse(v.Text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%v: %s: %w", v.At, v.Key, err))
			delete(c.values, key)
			continue
		}
		v.parsed = parsed
		c.values[key] = v
	}
	for key, parts := range c.parts {
		v := c.values[key]
		m, _ := v.parsed.(map[string]string)
		if m = maps.Clone(m); m == nil {
			m = map[string]string{}
		}
		for name, e := range parts {
			m[name] = e.Text
			if v.Key == "" {
				v.Entry = Entry{Key: key, At: e.At}
			}
		}
		v.parsed = m
		c.values[key] = v
	}
	return errors.Join(errs...)
}

// Warnings say what was skipped, is unknown or does nothing here, each with its place.
func (c *Config) Warnings() []string { return c.warnings }

// Entry is what somebody wrote for a key, under which of its names and where.
func (c *Config) Entry(key string) (Entry, bool) {
	c.option(key)
	v, ok := c.values[key]
	return v.Entry, ok
}

// Keys are the newest names of all keys that are set and that a job takes, sorted.
func (c *Config) Keys() []string { return slices.Sorted(maps.Keys(c.values)) }

func (c *Config) option(key string) *Option {
	o := c.options[key]
	if o == nil {
		panic("config: the table has no key " + key)
	}
	return o
}

func typed[T any](c *Config, key string) (T, bool) {
	c.option(key)
	v, ok := c.values[key].parsed.(T)
	return v, ok
}

// Text is the value of a key of type Text or Enum; an enum's value is as the table spells it. The second result says whether
// it is set, as with the others.
func (c *Config) Text(key string) (string, bool) { return typed[string](c, key) }

// Boolean is the value of a key of type Boolean.
func (c *Config) Boolean(key string) (bool, bool) { return typed[bool](c, key) }

// Integer is the value of a key of type Integer.
func (c *Config) Integer(key string) (int, bool) { return typed[int](c, key) }

// Number is the value of a key of type Number.
func (c *Config) Number(key string) (float64, bool) { return typed[float64](c, key) }

// Duration is the value of a key of type Duration.
func (c *Config) Duration(key string) (time.Duration, bool) { return typed[time.Duration](c, key) }

// Bytes is the value of a key of type MemorySize.
func (c *Config) Bytes(key string) (int64, bool) { return typed[int64](c, key) }

// Map is the value of a key of type Map. It is the caller's to read only.
func (c *Config) Map(key string) (map[string]string, bool) {
	return typed[map[string]string](c, key)
}

// List is the value of a key of type List. It is the caller's to read only.
func (c *Config) List(key string) ([]string, bool) { return typed[[]string](c, key) }

// Mistake is an error about the value of a key, at its place.
func (c *Config) Mistake(key, format string, args ...any) error {
	v := c.values[key]
	return fmt.Errorf("%v: %s: %w", v.At, v.Key, fmt.Errorf(format, args...))
}
