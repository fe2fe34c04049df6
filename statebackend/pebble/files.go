package pebble

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/flott-dev/flott/statebackend"
)

// A snapshot as files is a checkpoint of the tree, by links, and a table of rows to be put on top of it. The checkpoint is
// made by the writer when it comes to it, so that it has what was written to the tree until then. The table on top makes it
// the state of the moment again: it has the rows that were dirty in the cache then, and those that were written to the tree
// since, as they were.

// Files implements statebackend.FrozenFiles. Who wants them asks for them before Tables.
func (f *frozen) Files() (*statebackend.FileSet, error) {
	if f.meta == nil {
		return nil, errors.New("the state was frozen for rows, not for files")
	}
	set, err := f.files()
	if err = errors.Join(err, f.tree.broken()); err != nil {
		return nil, fmt.Errorf("gather the files of state: %w", err)
	}
	f.gathered = true
	return set, nil
}

func (f *frozen) files() (*statebackend.FileSet, error) {
	if f.over || f.folder != "" {
		return nil, errors.New("files are gathered once, before the release")
	}
	if err := f.tree.Flush(); err != nil {
		return nil, err
	}
	number := f.tree.number()
	f.folder = filepath.Join(f.tree.folder, fmt.Sprintf("snapshot-%d", number))
	if err := f.tree.Checkpoint(f.folder); err != nil {
		return nil, err
	}
	if err := f.view.collect(); err != nil {
		return nil, err
	}
	rows, err := f.overlay(f.view.untrace())
	if err != nil {
		return nil, err
	}
	if len(rows) > 0 {
		f.meta.overlay = "overlay.sst"
		if err := f.tree.writeTable(filepath.Join(f.folder, f.meta.overlay), false, func(w *sstable.Writer) error { return writeOverlay(w, rows) }); err != nil {
			return nil, err
		}
	}
	return f.gather(number)
}

// overlayRow is a row of the table on top.
type overlayRow struct {
	key, value []byte
	live       bool
}

// overlay gives the rows of the cache, and those of keys that were written to the tree since, in the order of their keys.
func (f *frozen) overlay(written []string) (rows []overlayRow, err error) {
	slices.Sort(written)
	written = slices.Compact(written)
	rows = make([]overlayRow, 0, len(f.view.rows)+len(written))
	it, err := f.lower.NewIter(nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for upper := f.view.rows; len(upper) > 0 || len(written) > 0; {
		side := 1
		if len(upper) > 0 {
			side = -1
			if len(written) > 0 {
				side = strings.Compare(string(f.view.key(upper[0])), written[0])
			}
		}
		if side <= 0 {
			h := upper[0]
			rows = append(rows, overlayRow{f.view.key(h), f.view.value(h), h.live})
			upper = upper[1:]
			if side == 0 {
				written = written[1:]
			}
			continue
		}
		row, err := before(it, written[0])
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
		written = written[1:]
	}
	return rows, nil
}

// before gives the row of a key as it is in a snapshot of the tree.
func before(it *pebble.Iterator, key string) (overlayRow, error) {
	row := overlayRow{key: []byte(key)}
	if !it.SeekPrefixGE(row.key) {
		return row, it.Error()
	}
	value, err := it.ValueAndErr()
	row.value, row.live = append([]byte{}, value...), true
	return row, err
}

func writeOverlay(w *sstable.Writer, rows []overlayRow) error {
	for i := range rows {
		r := &rows[i]
		var err error
		if r.live {
			err = w.Set(r.key, r.value)
		} else {
			err = w.Delete(r.key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// gather makes the set of the files in the folder: tables of rows, which never change, are its files; what is small is in its
// meta.
func (f *frozen) gather(number int64) (*statebackend.FileSet, error) {
	names, err := f.tree.fs.List(f.folder)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	set := &statebackend.FileSet{Format: Format}
	for _, local := range names {
		path := f.tree.fs.PathJoin(f.folder, local)
		if !strings.HasSuffix(local, ".sst") {
			body, err := f.tree.read(path)
			if err != nil {
				return nil, err
			}
			f.meta.files = append(f.meta.files, metaFile{local: local, body: body})
			continue
		}
		info, err := f.tree.fs.Stat(path)
		if err != nil {
			return nil, err
		}
		name, ok := f.tree.names[local]
		switch {
		case local == f.meta.overlay:
			name = fmt.Sprintf("%s-%d-%s", f.tree.id, number, local)
		case !ok:
			name = f.tree.id + "-" + local
		}
		f.meta.files = append(f.meta.files, metaFile{local: local, name: name})
		set.Files = append(set.Files, statebackend.File{
			Name: name, Size: info.Size(), Open: func() (io.ReadCloser, error) { return f.tree.fs.Open(path) },
		})
	}
	set.Meta = f.meta.encode()
	return set, nil
}

// read reads a small file.
func (t *tree) read(path string) (b []byte, err error) {
	file, err := t.fs.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return io.ReadAll(file)
}

// trace notes that rows are about to be written to the tree, for the snapshots whose files are not gathered yet.
func (s *store) trace(rows []*row) {
	for _, v := range s.views {
		v.mu.Lock()
		if v.tracing && !v.over {
			for _, r := range rows {
				v.written = append(v.written, string(r.key()))
			}
		}
		v.mu.Unlock()
	}
}

// untrace ends the noting and gives what was noted.
func (v *view) untrace() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	written := v.written
	v.written, v.tracing = nil, false
	return written
}
