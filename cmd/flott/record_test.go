package main

import (
	"bufio"
	"strings"
	"testing"
)

// What stands in a cell tells null from texts, and what a row does not have is empty.
func TestCSVTellsNullFromText(t *testing.T) {
	var out strings.Builder
	w := bufio.NewWriter(&out)
	to, _ := newRecorder("csv", w)
	want := []string{"state,key,namespace,mapKey,value,time"}
	for _, c := range []struct{ value, cell string }{
		{`null`, ``},
		{``, ``},
		{`"null"`, `"null"`},
		{`""`, `""`},
		{`"\\N"`, `"\N"`},
		{`"say \"hi\", \"\""`, `"say ""hi"", """""`},
		{`"two\nlines"`, "\"two\nlines\""},
		{`"caf\u00e9"`, `"café"`},
		{`7`, `7`},
		{`true`, `true`},
		{`[]`, `[]`},
		{`{"base64":"/w=="}`, `"{""base64"":""/w==""}"`}, // bytes
		{`"{\"base64\":\"/w==\"}"`, `"{""base64"":""eyJiYXNlNjQiOiIvdz09In0=""}"`}, // a text that looks like them
		{`[null,"null"]`, `"[null,""null""]"`},
		{`{"A":null}`, `"{""A"":null}"`},
		{`[1,2]`, `"[1,2]"`},
	} {
		r := record{state: `s"t`, key: []byte(`"ada"`), value: []byte(c.value), time: []byte(`"1970-01-01T00:00:01.000Z"`)}
		if err := to.write(&r); err != nil {
			t.Fatal(err)
		}
		want = append(want, `"s""t","ada",,,`+c.cell+`,"1970-01-01T00:00:01.000Z"`)
	}
	if err := to.end(); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != strings.Join(want, "\n")+"\n" {
		t.Errorf("got\n%swant\n%s", got, strings.Join(want, "\n"))
	}
}
