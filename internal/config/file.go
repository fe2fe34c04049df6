package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// FileName is the name of configuration files, OldFileName the one that they had before.
const (
	FileName    = "config.yaml"
	OldFileName = "flink-conf.yaml"
)

// Parse reads a configuration file. One with the old name has lines "key: value", as Flink read it then; all others are YAML,
// where maps in maps are keys with dots.
func Parse(file string, data []byte) (Layer, error) {
	if filepath.Base(file) == OldFileName {
		return parseLines(file, data), nil
	}
	return parseYAML(file, data)
}

// parseLines reads lines "key: value", cut at the first colon and space; "#" begins a comment. What is no such line is
// skipped with a warning.
func parseLines(file string, data []byte) Layer {
	var l Layer
	line := 0
	for raw := range bytes.Lines(data) {
		line++
		at := Place{Source: file, Line: line}
		text, _, _ := strings.Cut(string(raw), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		key, value, ok := strings.Cut(text, ": ")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok || key == "" || value == "" {
			l.Warnings = append(l.Warnings, fmt.Sprintf("%v: skipped a line that is not \"key: value\"", at))
			continue
		}
		l.Entries = append(l.Entries, Entry{Key: key, Text: value, At: at})
	}
	return l
}

func parseYAML(file string, data []byte) (Layer, error) {
	var l Layer
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return l, nil // nothing but comments
	}
	if err != nil {
		return l, fmt.Errorf("read configuration %s: %w", file, err)
	}
	y := yamlFile{file: file, seen: map[string]int{}}
	y.node("", document.Content[0])
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		y.mistake(document.Content[0].Line, "more than one document: a configuration file has one")
	}
	l.Entries = y.entries
	return l, errors.Join(y.errs...)
}

// yamlFile collects the settings of a YAML file.
type yamlFile struct {
	file    string
	entries []Entry
	seen    map[string]int // key to line
	errs    []error
}

func (y *yamlFile) mistake(line int, format string, args ...any) {
	y.errs = append(y.errs, fmt.Errorf("%s:%d: %w", y.file, line, fmt.Errorf(format, args...)))
}

// node takes what stands under a key.
func (y *yamlFile) node(key string, n *yaml.Node) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case n.Kind == yaml.MappingNode:
		y.mapping(key, n)
	case key == "":
		if n.Tag != "!!null" {
			y.mistake(n.Line, "the file is no map of keys to values")
		}
	case n.Kind == yaml.SequenceNode:
		items := make([]string, len(n.Content))
		for i, item := range n.Content {
			for item.Kind == yaml.AliasNode {
				item = item.Alias
			}
			text, ok := itemText(item)
			if !ok {
				y.mistake(item.Line, "%s: an item of a list is a text or a flat map", key)
			}
			items[i] = text
		}
		y.add(key, joinList(items), n.Line)
	case n.Tag == "!!null":
		// a key without a value sets nothing, as in Flink
	default:
		y.add(key, n.Value, n.Line)
	}
}

// itemText is the text of an item of a list; a map as an item is "key:value,key:value", as cached files are.
func itemText(n *yaml.Node) (string, bool) {
	switch n.Kind {
	case yaml.ScalarNode:
		return n.Value, true
	case yaml.MappingNode:
		var parts []string
		for i := 0; i < len(n.Content); i += 2 {
			if n.Content[i].Kind != yaml.ScalarNode || n.Content[i+1].Kind != yaml.ScalarNode {
				return "", false
			}
			parts = append(parts, n.Content[i].Value+":"+n.Content[i+1].Value)
		}
		return strings.Join(parts, ","), true
	}
	return "", false
}

func (y *yamlFile) mapping(key string, n *yaml.Node) {
	for i := 0; i < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		if name.Kind != yaml.ScalarNode || name.Tag == "!!merge" {
			y.mistake(name.Line, "%s: a key is a text", key)
			continue
		}
		full := name.Value
		if key != "" {
			full = key + "." + full
		}
		y.node(full, value)
	}
}

func (y *yamlFile) add(key, text string, line int) {
	if first := y.seen[key]; first != 0 {
		y.mistake(line, "%s is set a second time, after line %d", key, first)
		return
	}
	y.seen[key] = line
	y.entries = append(y.entries, Entry{Key: key, Text: text, At: Place{Source: y.file, Line: line}})
}
