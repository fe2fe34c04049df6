package parquet

import (
	"errors"
	"fmt"
	"strings"

	pq "github.com/parquet-go/parquet-go"
)

const (
	// maxPageSize is the number of bytes that a page may have, decompressed. Writers make pages of about 1 MiB.
	maxPageSize = 1 << 30
	// maxPageValues is the number of values that a page may have: some bytes can stand for any number of equal ones.
	maxPageValues = 1 << 26
	// maxHeader is the number of bytes that the header of a page may have.
	maxHeader = 1 << 20
	// maxColumnDepth is how deep groups may lie in groups.
	maxColumnDepth = 64
)

var errPage = errors.New("a page can't have the size that it says")

// checkMetadata looks whether the metadata of a file holds what it says, so that the library can take the memory for it.
func checkMetadata(b []byte) error {
	c := &compact{b: b}
	return c.fields(func(id int16, typ byte) error {
		if id == 2 && typ == thriftList {
			return checkSchema(c)
		}
		return c.skip(typ, false, 0)
	})
}

// checkSchema looks at the tree of columns, which is a list: each group is followed by its children.
func checkSchema(c *compact) error {
	n, typ, err := c.list()
	if err != nil {
		return err
	}
	if typ != thriftStruct {
		return c.skipItems(n, typ)
	}
	open := []int64{1} // children that still come, of the groups around
	for ; n > 0; n-- {
		children, err := schemaElement(c)
		if err != nil {
			return err
		}
		for len(open) > 0 && open[len(open)-1] == 0 {
			open = open[:len(open)-1]
		}
		if len(open) == 0 {
			return nil // what follows belongs to nothing; the library says so
		}
		open[len(open)-1]--
		if children > 0 {
			open = append(open, children)
		}
		if children > int64(n) || len(open) > maxColumnDepth {
			return errTooDeep
		}
	}
	return nil
}

func (c *compact) skipItems(n int, typ byte) (err error) {
	for ; err == nil && n > 0; n-- {
		err = c.skip(typ, true, 1)
	}
	return err
}

// schemaElement reads how many children an element of the schema has.
func schemaElement(c *compact) (children int64, err error) {
	err = c.fields(func(id int16, typ byte) (err error) {
		if id == 5 && typ == thriftI32 {
			children, err = c.integer()
			return err
		}
		return c.skip(typ, false, 2)
	})
	return children, err
}

// pageHeader is what the header of a page says about sizes.
type pageHeader struct {
	plain, packed int64 // bytes of the page, decompressed and in the file
	values        int64
}

func (h *pageHeader) read(c *compact) error {
	return c.fields(func(id int16, typ byte) (err error) {
		switch {
		case id == 2 && typ == thriftI32:
			h.plain, err = c.integer()
		case id == 3 && typ == thriftI32:
			h.packed, err = c.integer()
		case (id == 5 || id == 7 || id == 8) && typ == thriftStruct:
			err = c.fields(func(id int16, typ byte) (err error) {
				if id == 1 && typ == thriftI32 {
					h.values, err = c.integer()
					return err
				}
				return c.skip(typ, false, 1)
			})
		default:
			err = c.skip(typ, false, 0)
		}
		return err
	})
}

// checkPages looks at the headers of all pages of a row group that will be read: whether they are there and can be as
// large as they say.
func (o *opened) checkPages(g *group, schema *pq.Schema) error {
	wanted := map[string]bool{}
	all := false // where columns are missing the library looks at others
	for _, path := range schema.Columns() {
		wanted[strings.Join(path, "\x00")] = true
		_, ok := o.Schema().Lookup(path...)
		all = all || !ok
	}
	for i, path := range o.Schema().Columns() {
		if !all && !wanted[strings.Join(path, "\x00")] {
			continue
		}
		if err := o.checkColumn(g.index, i); err != nil {
			return fmt.Errorf("%w: column %s of row group %d: %w", ErrDamaged, strings.Join(path, "."), g.index, err)
		}
	}
	return nil
}

func (o *opened) checkColumn(index, column int) error {
	at, end := o.chunk(index, column)
	left := o.Metadata().RowGroups[index].Columns[column].MetaData.NumValues
	buf := make([]byte, 512)
	for at < end {
		var h pageHeader
		n, err := o.header(&h, &buf, at, end)
		if err != nil {
			return err
		}
		at += n
		if h.packed < 0 || h.packed > end-at || h.plain < 0 || h.plain > maxPageSize || h.values < 0 || h.values > min(left, maxPageValues) {
			return fmt.Errorf("%w: %d bytes (%d in the file) of %d values, at %d", errPage, h.plain, h.packed, h.values, at)
		}
		at += h.packed
	}
	return nil
}

// header reads the header of a page at a place, with a buffer that grows to the length of the longest.
func (o *opened) header(h *pageHeader, buf *[]byte, at, end int64) (n int64, err error) {
	for {
		p := (*buf)[:min(int64(len(*buf)), end-at)]
		if err := readFull(o.from, p, at); err != nil {
			return 0, err
		}
		*h = pageHeader{}
		c := &compact{b: p}
		err := h.read(c)
		if err == nil {
			return int64(c.at), nil
		}
		if !errors.Is(err, errShort) || int64(len(p)) == end-at {
			return 0, fmt.Errorf("header of a page at %d: %w", at, err)
		}
		if len(*buf) >= maxHeader {
			return 0, fmt.Errorf("header of a page at %d: more than %d bytes", at, maxHeader)
		}
		*buf = make([]byte, 8*len(*buf))
	}
}
