package checkpoint

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"github.com/flott-dev/flott/statebackend"
)

// lines is a state backend's own format for tests: files of a row a line.
type lines struct{}

const linesFormat = "lines/1"

// linesOf are files, by their names.
func linesOf(files map[string][]byte) *statebackend.FileSet {
	set := &statebackend.FileSet{Format: linesFormat, Meta: []byte("meta")}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		b := files[name]
		set.Files = append(set.Files, statebackend.File{
			Name: name, Size: int64(len(b)), Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil },
		})
	}
	return set
}

// line is a row as a line.
func line(t *statebackend.TableInfo, r *statebackend.Row) []byte {
	return fmt.Appendf(nil, "%s %d %d .%x .%x .%x .%x\n", t.Name, r.Group, r.At, r.Key, r.Namespace, r.MapKey, r.Value)
}

// Formats implements FileReader.
func (lines) Formats() []string { return []string{linesFormat} }

// Rows implements FileReader.
func (lines) Rows(set *statebackend.FileSet, table statebackend.TableInfo, first, last int) iter.Seq2[*statebackend.Row, error] {
	return func(yield func(*statebackend.Row, error) bool) {
		var rows []statebackend.Row
		for i := range set.Files {
			more, err := readLines(&set.Files[i], &table)
			if err != nil {
				yield(nil, err)
				return
			}
			rows = append(rows, more...)
		}
		slices.SortStableFunc(rows, func(a, b statebackend.Row) int { return cmp.Compare(a.Group, b.Group) })
		for i := range rows {
			if r := &rows[i]; r.Group >= first && r.Group <= last && !yield(r, nil) {
				return
			}
		}
	}
}

func readLines(f *statebackend.File, table *statebackend.TableInfo) (rows []statebackend.Row, err error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	all := bufio.NewScanner(r)
	for all.Scan() {
		var name string
		var row statebackend.Row
		fields := bytes.ReplaceAll(all.Bytes(), []byte("."), nil)
		if n := bytes.Count(fields, []byte(" ")); n != 6 {
			return nil, fmt.Errorf("a line of %d fields", n+1)
		}
		parts := bytes.Split(fields, []byte(" "))
		_, err := fmt.Sscan(string(bytes.Join(parts[:3], []byte(" "))), &name, &row.Group, &row.At)
		for i, to := range []*[]byte{&row.Key, &row.Namespace, &row.MapKey, &row.Value} {
			if len(parts[3+i]) > 0 {
				_, err2 := fmt.Sscanf(string(parts[3+i]), "%x", to)
				err = errors.Join(err, err2)
			}
		}
		if err != nil {
			return nil, err
		}
		if table.Namespace != nil && row.Namespace == nil {
			row.Namespace = []byte{}
		}
		if table.MapKey != nil && row.MapKey == nil {
			row.MapKey = []byte{}
		}
		if name == table.Name {
			rows = append(rows, row)
		}
	}
	return rows, all.Err()
}

// changes freezes changes, in their order within a group.
func changes(i statebackend.TableInfo, rows ...statebackend.Row) statebackend.FrozenTable {
	t := table(i, rows...)
	t.Changes = true
	return t
}
