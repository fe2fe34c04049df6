package file_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/internal/vfs"
)

// vector is a case of csv.json of the kinds that are about files and lines of text.
type vector struct {
	ID            string   `json:"id"`
	Kind          string   `json:"kind"`
	Content       string   `json:"content"`
	ContentBase64 []byte   `json:"content_base64"`
	Files         []string `json:"files"`
	Splits        [][2]int64
	Options       struct {
		LineDelimiter string `json:"line_delimiter"`
		Charset       string `json:"charset"`
		Recursive     bool   `json:"recursive"`
	} `json:"options"`
	Expect struct {
		Rows            json.RawMessage `json:"rows"`
		RecordsPerSplit [][]string      `json:"records_per_split"`
		Concatenated    []string        `json:"records_concatenated"`
		FilesRead       []string        `json:"files_read"`
		Splits          [][2]int64      `json:"splits"`
	} `json:"expect"`
}

func (v *vector) text() string {
	if v.ContentBase64 != nil {
		return string(v.ContentBase64)
	}
	return v.Content
}

func TestVectorsOfTextLines(t *testing.T) {
	for _, v := range filetest.Vectors[vector](t, "text") {
		t.Run(v.ID, func(t *testing.T) {
			var want []string
			if err := json.Unmarshal(v.Expect.Rows, &want); err != nil {
				t.Fatal(err)
			}
			m := disk(t, map[string]string{"f": v.text()})
			for _, size := range []int64{1, 5, 12, 1 << 20} {
				src := file.New(file.Text{Delimiter: v.Options.LineDelimiter}, "f").On(m).SplitSize(size)
				got, err := filetest.Collect(src.Charset(file.Charset(v.Options.Charset)), 1, 3)
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("split size %d: got %q, %v, want %q", size, got, err, want)
				}
			}
		})
	}
}

// TestVectorsOfSplits reads given splits; those of the source are covered by others. A vector's second number is a
// length; Flink's cases let splits reach beyond the end of the file.
func TestVectorsOfSplits(t *testing.T) {
	for _, v := range filetest.Vectors[vector](t, "splits") {
		t.Run(v.ID, func(t *testing.T) {
			if v.Files != nil {
				checkUncut(t, v)
				return
			}
			m := disk(t, map[string]string{"f": v.Content})
			var each [][]string
			for _, s := range v.Splits {
				nothing := []byte{1, 0, 0} // no pending split, no file seen
				state := &filetest.State[file.Split]{Enumerator: nothing, Splits: []file.Split{{Path: "f", Start: s[0], Length: s[1], Position: s[0]}}}
				d, err := filetest.Start(file.New(file.Text{Delimiter: v.Options.LineDelimiter}, "f").On(m), 1, 4, state)
				if err != nil {
					t.Fatal(err)
				}
				if err := d.Run(); err != nil {
					t.Fatal(err)
				}
				each = append(each, d.Out[0])
			}
			if want := v.Expect.Concatenated; want != nil {
				if got := slices.Concat(each...); !slices.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
				return
			}
			if !slices.EqualFunc(each, v.Expect.RecordsPerSplit, slices.Equal[[]string]) {
				t.Errorf("got %q, want %q", each, v.Expect.RecordsPerSplit)
			}
		})
	}
}

// checkUncut checks the splits that the source makes of compressed files, and of one that is not.
func checkUncut(t *testing.T, v vector) {
	t.Helper()
	m := vfs.NewMem()
	for _, name := range append(v.Files, "z.txt") {
		put(t, m, "d/"+name, "12345")
	}
	d, err := filetest.Start(file.Lines("d").On(m), 1, 4, nil)
	if err != nil {
		t.Fatal(err)
	}
	splits, err := d.Splits()
	if err != nil {
		t.Fatal(err)
	}
	var got [][2]int64
	for _, s := range splits {
		got = append(got, [2]int64{s.Start, s.Length})
	}
	if want := append(v.Expect.Splits, [2]int64{0, 5}); !slices.Equal(got, want) {
		t.Errorf("splits %v, want %v", got, want)
	}
}

func TestVectorsOfFolders(t *testing.T) {
	for _, v := range filetest.Vectors[vector](t, "dir") {
		t.Run(v.ID, func(t *testing.T) {
			m := vfs.NewMem()
			root, alone := ".", len(v.Files) == 1
			if alone {
				root = v.Files[0]
			} else if dir, _, ok := strings.Cut(v.Files[0], "/"); ok {
				root = dir
			}
			for _, name := range v.Files {
				put(t, m, name, name)
			}
			src := file.Lines(root).On(m)
			if v.Options.Recursive {
				src = src.Recursive()
			}
			got, err := filetest.Collect(src, 1, 4)
			slices.Sort(got)
			slices.Sort(v.Expect.FilesRead)
			if err != nil || !slices.Equal(got, v.Expect.FilesRead) {
				t.Errorf("got %q, %v, want %q", got, err, v.Expect.FilesRead)
			}
		})
	}
}
