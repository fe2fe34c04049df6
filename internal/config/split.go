package config

import (
	"fmt"
	"strings"
)

// ParseList reads "a;b;c". An item may stand in single or double quotes, in which the quote itself is written twice.
func ParseList(text string) ([]string, error) {
	items, err := split(text, ';')
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(items))
	for _, item := range items {
		if item != "" {
			out = append(out, item)
		}
	}
	return out, nil
}

// ParseMap reads "key:value,key:value". Entries and values may stand in quotes as the items of lists.
func ParseMap(text string) (map[string]string, error) {
	entries, err := split(text, ',')
	if err != nil {
		return nil, err
	}
	m := map[string]string{}
	for _, e := range entries {
		if e == "" {
			continue
		}
		pair, err := splitN(e, ':', 2)
		if err != nil {
			return nil, err
		}
		if len(pair) != 2 {
			return nil, fmt.Errorf("%q is no entry of a map: write key:value", e)
		}
		m[pair[0]] = pair[1]
	}
	return m, nil
}

func split(text string, at byte) ([]string, error) { return splitN(text, at, -1) }

// splitN cuts a text at a separator outside of quotes, into n pieces at most, and takes the quotes off.
func splitN(text string, at byte, n int) ([]string, error) {
	var out []string
	for {
		text = strings.TrimLeft(text, " \t")
		if text != "" && (text[0] == '\'' || text[0] == '"') {
			item, rest, err := unquote(text)
			if err != nil {
				return nil, err
			}
			if rest = strings.TrimLeft(rest, " \t"); rest != "" && rest[0] != at {
				return nil, fmt.Errorf("%q: after a quoted piece comes a %q or the end", text, at)
			}
			if out = append(out, item); rest == "" {
				return out, nil
			}
			text = rest[1:]
			continue
		}
		i := strings.IndexByte(text, at)
		if i < 0 || len(out) == n-1 {
			return append(out, strings.TrimSpace(text)), nil
		}
		out = append(out, strings.TrimSpace(text[:i]))
		text = text[i+1:]
	}
}

// unquote takes the quoted piece from the beginning of a text.
func unquote(text string) (item, rest string, err error) {
	quote := text[0]
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] != quote:
			b.WriteByte(text[i])
		case i+1 < len(text) && text[i+1] == quote:
			b.WriteByte(quote)
			i++
		default:
			return b.String(), text[i+1:], nil
		}
	}
	return "", "", fmt.Errorf("%q: the quote has no end", text)
}

// joinList is the text of a list.
func joinList(items []string) string {
	quoted := make([]string, len(items))
	for i, item := range items {
		if strings.ContainsAny(item, ";'\"") || strings.TrimSpace(item) != item {
			item = "'" + strings.ReplaceAll(item, "'", "''") + "'"
		}
		quoted[i] = item
	}
	return strings.Join(quoted, ";")
}
