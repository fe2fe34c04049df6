package parquet

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/flott-dev/flott/connector/file"
	pq "github.com/parquet-go/parquet-go"
)

// group is a row group that a split reads.
type group struct {
	index int // in the file
	begin int64
	rows  int64
}

// opened is a file whose metadata was read.
type opened struct {
	*pq.File
	from io.ReaderAt
	size int64
}

// open reads the metadata of a file and tells which row groups a split reads.
func open(in *file.Input, schema *pq.Schema) (*opened, []group, error) {
	r, size, err := in.ReaderAt()
	if err != nil {
		return nil, nil, err
	}
	if err := checkFooter(r, size); err != nil {
		return nil, nil, err
	}
	// The indexes of pages and the bloom filters are for those who look for values. Here they would be more to read, and
	// more that can be damaged.
	f, err := pq.OpenFile(r, size, pq.SkipPageIndex(true), pq.SkipBloomFilters(true), pq.ReadBufferSize(32<<10))
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	o := &opened{File: f, from: r, size: size}
	if err := fits(schema, f.Schema()); err != nil {
		return nil, nil, err
	}
	groups, err := o.groups(in)
	return o, groups, err
}

// checkFooter looks at the ends of a file and at its metadata, before anything trusts the lengths that are in there.
func checkFooter(r io.ReaderAt, size int64) error {
	const ends = 4 + 8 // a mark at the begin, the length of the metadata and a mark at the end
	if size < ends {
		return fmt.Errorf("%w: it has %d bytes", ErrDamaged, size)
	}
	var tail [8]byte
	if err := readFull(r, tail[:], size-8); err != nil {
		return err
	}
	if mark := string(tail[4:]); mark == "PARE" {
		return fmt.Errorf("the file is encrypted, which is not supported")
	} else if mark != "PAR1" {
		return fmt.Errorf("%w: it ends with %q instead of PAR1, so it is another format or cut off", ErrDamaged, mark)
	}
	length := int64(binary.LittleEndian.Uint32(tail[:4]))
	if length > size-ends {
		return fmt.Errorf("%w: metadata of %d bytes in a file of %d", ErrDamaged, length, size)
	}
	metadata := make([]byte, length)
	if err := readFull(r, metadata, size-8-length); err != nil {
		return err
	}
	if err := checkMetadata(metadata); err != nil {
		return fmt.Errorf("%w: metadata: %w", ErrDamaged, err)
	}
	return nil
}

// readFull reads what is known to be there.
func readFull(r io.ReaderAt, p []byte, off int64) error {
	if n, err := r.ReadAt(p, off); n < len(p) {
		if err == io.EOF {
			err = fmt.Errorf("%w: it has become shorter", ErrDamaged)
		}
		return err
	}
	return nil
}

// groups are the row groups of a split: those that begin in it, from where it goes on. As all formats do, a split takes
// what begins exactly at its end, and leaves what begins exactly at its start to the one before.
func (o *opened) groups(in *file.Input) (groups []group, err error) {
	fresh := in.Offset() <= in.Start()
	found, last := false, int64(0)
	for i := range o.Metadata().RowGroups {
		begin, err := o.begin(i)
		if err != nil {
			return nil, err
		}
		g := group{index: i, begin: begin, rows: o.Metadata().RowGroups[i].NumRows}
		if g.rows > 0 && begin <= last {
			return nil, fmt.Errorf("%w: row group %d begins before the one before it", ErrDamaged, i)
		}
		last = begin
		switch {
		case g.rows == 0 || begin > in.Stop():
		case fresh && (begin > in.Start() || in.Start() == 0), !fresh && begin > in.Offset():
			groups = append(groups, g)
		case !fresh && begin == in.Offset() && g.rows >= in.Skip():
			groups, found = append(groups, g), true
		}
	}
	if !fresh && !found {
		return nil, fmt.Errorf("go on at row %d of the row group at %d: there is none; the file is another one than before", in.Skip(), in.Offset())
	}
	return groups, nil
}

// begin is where a row group begins. It checks that all of it lies within the file.
func (o *opened) begin(index int) (int64, error) {
	g := &o.Metadata().RowGroups[index]
	if g.NumRows < 0 || len(g.Columns) != len(o.Schema().Columns()) {
		return 0, fmt.Errorf("%w: row group %d has %d rows in %d columns", ErrDamaged, index, g.NumRows, len(g.Columns))
	}
	begin := o.size
	for i := range g.Columns {
		first, end := o.chunk(index, i)
		if g.Columns[i].FilePath != "" {
			return 0, fmt.Errorf("columns of row group %d are in another file, %q, which is not supported", index, g.Columns[i].FilePath)
		}
		if first < 4 || end < first || end > o.size {
			return 0, fmt.Errorf("%w: column %d of row group %d goes from %d to %d", ErrDamaged, i, index, first, end)
		}
		begin = min(begin, first)
	}
	return begin, nil
}

// chunk is where the pages of a column of a row group are.
func (o *opened) chunk(index, column int) (begin, end int64) {
	m := &o.Metadata().RowGroups[index].Columns[column].MetaData
	begin = m.DataPageOffset
	if d := m.DictionaryPageOffset; d > begin {
		return begin, -1
	} else if d != 0 {
		begin = d
	}
	if m.TotalCompressedSize < 0 || m.TotalCompressedSize > o.size || m.NumValues < 0 {
		return begin, -1
	}
	return begin, begin + m.TotalCompressedSize
}
