package checkpoint

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"unicode/utf8"
)

// difficultTexts are strings that a dump must not take for each other.
func difficultTexts() []string {
	return []string{
		"", "a", "\xff", "\xfe", "\xff\xfe", "\ufffd", "a\xc3", "é", "\xed\xa0\x80", // half a character, and half a pair
		`{"base64":"/w=="}`, `{"base64":""}`, `{"base64":`, `{"base64": "/w=="}`, `"{\"base64\":\"/w==\"}"`,
	}
}

// fromName is how a reader gets the string back of which TextAsName has made a text.
func fromName(t *testing.T, text string) string {
	t.Helper()
	if !strings.HasPrefix(text, `{"base64":`) {
		return text
	}
	return fromJSON(t, text)
}

// fromJSON is how a reader gets a string back that stands as JSON.
func fromJSON(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	if s, ok := v.(string); ok {
		return s
	}
	b, err := base64.StdEncoding.DecodeString(v.(map[string]any)["base64"].(string))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestStringsStayDifferentAndComeBack(t *testing.T) {
	for _, s := range difficultTexts() {
		name := TextAsName(s)
		if got := fromName(t, name); got != s || !utf8.ValidString(name) {
			t.Errorf("%q as a name is %q, read as %q", s, name, got)
		}
		for what, text := range map[string]string{"value": jsonOf(t, s), "key": keyJSON(t, s)} {
			if got := fromJSON(t, text); got != s || !utf8.ValidString(text) {
				t.Errorf("%q as a %s is %q, read as %q", s, what, text, got)
			}
		}
	}
}

// The keys of a map are the names of an object, as many as there are.
func TestKeysOfMapsStayDifferentAndComeBack(t *testing.T) {
	want := map[string]int{}
	for i, s := range difficultTexts() {
		want[s] = i
	}
	var names map[string]int
	if err := json.Unmarshal([]byte(jsonOf(t, want)), &names); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for name, i := range names {
		got[fromName(t, name)] = i
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
