package csv

import (
	"errors"
	"fmt"
	"io"
)

// openHeader prepares for what the first line of the file is. Behind the begin of a file its header is read at once,
// from the file opened a second time; otherwise it is the first row, which header reads.
func (r *rows) openHeader(targets []target) error {
	fresh := r.in.Start() == 0 && r.in.Offset() == 0
	if r.options.header == noHeader {
		return nil
	}
	if fresh {
		r.targets, r.heading = targets, true
		return nil
	}
	if r.options.header == skipHeader {
		return nil
	}
	in, err := r.in.Head()
	if err != nil {
		return fmt.Errorf("read the header of %s: %w", r.in.Path(), err)
	}
	head := newRows(r.options, nil, in)
	head.targets, head.heading = targets, true
	err = head.header()
	r.plan, r.headEnd = head.plan, head.records.Position()
	return errors.Join(err, in.Close())
}

// header reads the header if it comes next.
func (r *rows) header() error {
	if !r.heading {
		return nil
	}
	if r.options.header == skipHeader {
		return r.skipLine()
	}
	var names []string
	err := errSkip
	for err == errSkip {
		names, err = r.names()
	}
	if err == io.EOF {
		return io.EOF // an empty file
	}
	if f, ok := err.(*fault); ok {
		err = &Error{Path: r.in.Path(), Column: f.column + 1, Text: f.text, Err: f.err}
	}
	if err == nil {
		r.plan, err = named(r.targets, names)
	}
	if err != nil {
		return fmt.Errorf("read the header of %s: %w", r.in.Path(), err)
	}
	r.records.Take(len(r.line), r.next)
	r.heading = false
	return nil
}

// names reads the row at hand as texts and leaves it in the window.
func (r *rows) names() ([]string, error) {
	if err := r.begin(); err != nil {
		return nil, err
	}
	var names []string
	for r.col = 0; ; r.col++ {
		text, _, more, err := r.field()
		if err != nil {
			return nil, err
		}
		names = append(names, string(text))
		if !more {
			return names, nil
		}
	}
}

// skipLine skips the first row whatever it holds. A quote that is not closed in it means nothing.
func (r *rows) skipLine() error {
	err := r.begin()
	if err == errSkip {
		r.heading = false
		return nil
	}
	if err != nil {
		return err
	}
	for more := r.multiLine(); more; {
		var fault *fault
		if _, _, more, err = r.field(); err != nil && !errors.As(err, &fault) {
			return err
		}
	}
	r.records.Take(len(r.line), r.next)
	r.heading = false
	return nil
}
