package avro

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
	"github.com/hamba/avro/v2"
)

// Format reads the records of Avro container files into elements of type T. The schema is JSON and describes T; where it
// differs from a file's, Avro's rules hold: fields are matched by name and alias, those that the file lacks get their
// defaults, numbers may widen. "" takes each file's own schema: its fields go to the fields of T by name, and one of T that
// the file lacks is an error. In both cases fields that T lacks are skipped.
//
// Files are cut into splits anywhere: a block belongs to the split in which it begins, found by sync markers. After a
// restore reading goes on at the record. A file that is damaged fails the job with its name and the place; there are no
// bad records to skip. Blocks have up to 256 MiB, arrays up to 4 Mi items; more is taken for damage.
func Format[T any](schema string) file.Format[T] {
	f := &format[T]{api: library()}
	if f.err = f.describe(schema); f.err != nil {
		f.err = fmt.Errorf("avro format: %w", f.err)
	}
	return f
}

// Source reads the files at paths, each by its own schema; it is short for file.New with a Format.
func Source[T any](paths ...string) *file.Source[T] { return file.New(Format[T](""), paths...) }

type format[T any] struct {
	api    avro.API
	schema avro.Schema // nil: the file's
	err    error
}

func (f *format[T]) describe(text string) (err error) {
	if text == "" {
		return nil
	}
	if f.schema, err = parse(text); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	if err := covers(f.schema, reflect.TypeFor[T]()); err != nil {
		return err
	}
	return suits[T](f.api, f.schema, false)
}

// Check implements file.Format.
func (f *format[T]) Check() error { return f.err }

// Splittable implements file.Format.
func (f *format[T]) Splittable() bool { return true }

// Decoder implements file.Format.
func (f *format[T]) Decoder(in *file.Input) (file.Decoder[T], error) {
	return &decoder[T]{format: f, in: in, at: max(in.Start(), in.Offset()), skip: in.Skip()}, nil
}

// decoder reads the blocks of one split.
type decoder[T any] struct {
	*format[T]
	in     *file.Input
	begun  bool   // the header is known
	synced bool   // the Input is at the begin of a block
	sync   []byte // the marker
	schema avro.Schema
	unpack func(dst, packed []byte) ([]byte, error)
	packed bool   // by a codec that copies
	plain  []byte // memory for blocks

	at     int64 // where the block begins, or the next one if there is none
	skip   int64 // records of it that were emitted, or that a restored decoder leaves out
	left   int64 // records of it that are still to emit
	block  blockReader
	values *avro.Reader
	buf    []T
}

// readRun is how many records are decoded at once.
const readRun = 256

// Decode implements file.Decoder.
func (d *decoder[T]) Decode(out *connector.Output[T]) error {
	if !d.begun {
		if err := d.begin(); err != nil {
			return err
		}
	}
	for out.Room() > 0 {
		if d.left == 0 {
			if err := d.next(); err != nil {
				return err
			}
			continue // a block may be empty
		}
		n := int(min(int64(out.Room()), d.left, readRun))
		if err := d.decode(n); err != nil {
			return err
		}
		out.EmitSlice(d.buf[:n])
		d.skip, d.left = d.skip+int64(n), d.left-int64(n)
		if d.left > 0 {
			continue
		}
		if err := d.endBlock(); err != nil {
			return err
		}
	}
	return nil
}

// begin reads the header, and the schema in it.
func (d *decoder[T]) begin() error {
	h, err := d.header()
	if err != nil {
		return err
	}
	if d.unpack, err = unpacker(h.codec); err != nil {
		return d.fail(0, err)
	}
	d.packed = h.codec != "" && h.codec != "null"
	theirs, err := parse(h.schema)
	if err != nil {
		return d.fail(0, fmt.Errorf("%w: schema: %w", ErrDamaged, err))
	}
	d.schema = theirs
	if ours := d.format.schema; ours != nil {
		d.schema, err = resolve(ours, theirs)
	} else if err = covers(theirs, reflect.TypeFor[T]()); err == nil {
		err = suits[T](d.api, theirs, false)
	}
	if err != nil {
		return d.fail(0, fmt.Errorf("the file's schema does not fit: %w", err))
	}
	d.sync = h.sync[:]
	d.values = avro.NewReader(&d.block, 16<<10, avro.WithReaderConfig(d.api))
	d.buf = make([]T, readRun)
	d.begun = true
	return nil
}

// resolve is the schema by which values of theirs are read as ours. Where both have records within themselves, which the library
// would follow without end, they must be the same.
func resolve(ours, theirs avro.Schema) (s avro.Schema, err error) {
	if ours.Fingerprint() == theirs.Fingerprint() {
		return ours, nil
	}
	if name := recursive(ours, nil); name != "" && recursive(theirs, nil) != "" {
		return nil, fmt.Errorf("record %s has itself within it: such records are only read by the schema that they were written with", name)
	}
	err = file.Guard(func() (err error) {
		s, err = avro.NewSchemaCompatibility().Resolve(ours, theirs)
		return err
	})
	return s, err
}

// header reads the header from this Input, if it begins with it, or from another.
func (d *decoder[T]) header() (*header, error) {
	in := d.in
	if d.whole() {
		h, err := readHeader(in)
		if err == nil {
			d.at, d.synced = in.Offset(), true
		}
		return h, d.name(err)
	}
	head, err := in.Head()
	if err != nil {
		return nil, err
	}
	h, err := readHeader(head)
	return h, d.name(errors.Join(err, head.Close()))
}

// whole tells whether the Input begins at the begin of the file and the split does, too.
func (d *decoder[T]) whole() bool { return d.in.Start() == 0 && d.in.Offset() == 0 }

// next goes to the next block of the split.
func (d *decoder[T]) next() error {
	if !d.synced {
		if err := d.find(); err != nil {
			return err
		}
	}
	if d.in.Offset() > d.in.Stop() {
		return io.EOF
	}
	c := cursor{}
	records, size, err := d.head(&c)
	if err != nil {
		return err
	}
	if err := d.fill(c.at + size + syncSize); err != nil {
		return err
	}
	window := d.in.Window()
	packed, mark := window[c.at:c.at+size], window[c.at+size:c.at+size+syncSize]
	if !bytes.Equal(mark, d.sync) {
		return d.fail(d.at, fmt.Errorf("%w: no sync marker behind a block of %d bytes", ErrDamaged, size))
	}
	if err := d.open(packed, records); err != nil {
		return d.fail(d.at, fmt.Errorf("%w: block of %d records in %d bytes: %w", ErrDamaged, records, size, err))
	}
	d.in.Advance(c.at + size + syncSize)
	return d.leaveOut()
}

// head reads the two numbers at the begin of a block. io.EOF says that there is no more.
func (d *decoder[T]) head(c *cursor) (records int64, size int, err error) {
	for {
		*c = cursor{b: d.in.Window()}
		records, err = c.long()
		var n int64
		if err == nil {
			n, err = c.long()
		}
		switch {
		case err == nil && (records < 0 || n < 0 || n > maxBlock):
			return 0, 0, d.fail(d.at, fmt.Errorf("%w: block of %d records in %d bytes", ErrDamaged, records, n))
		case err == nil:
			return records, int(n), nil
		case !errors.Is(err, errShort):
			return 0, 0, d.fail(d.at, fmt.Errorf("%w: %w", ErrDamaged, err))
		}
		if err := d.in.Fill(); err == io.EOF && len(d.in.Window()) > 0 {
			return 0, 0, d.fail(d.at, fmt.Errorf("%w: it ends within a block", ErrDamaged))
		} else if err != nil {
			return 0, 0, err
		}
	}
}

// fill makes the window as long as the block.
func (d *decoder[T]) fill(n int) error {
	err := d.in.FillTo(n)
	if err == io.EOF {
		return d.fail(d.at, fmt.Errorf("%w: it ends within a block", ErrDamaged))
	}
	return err
}

// open decompresses a block.
func (d *decoder[T]) open(packed []byte, records int64) error {
	block, err := d.unpack(d.plain, packed)
	if err != nil {
		return err
	}
	if d.packed {
		d.plain = block
	}
	if records > int64(len(block)) && !empty(d.schema, 0) {
		return fmt.Errorf("%d bytes can't hold that many", len(block))
	}
	d.block = blockReader{rest: block}
	d.left = records
	return nil
}

// leaveOut decodes what was emitted before the restore.
func (d *decoder[T]) leaveOut() error {
	skip := d.skip
	if skip > d.left {
		return d.fail(d.at, fmt.Errorf("go on at record %d of a block of %d: the file is another one than before", skip, d.left))
	}
	for n := skip; n > 0; n -= readRun {
		if err := d.decode(int(min(n, readRun))); err != nil {
			return err
		}
	}
	if d.left -= skip; d.left == 0 {
		return d.endBlock()
	}
	return nil
}

// decode decodes the next n records into the buffer.
func (d *decoder[T]) decode(n int) error {
	clear(d.buf[:n]) // or the library writes into the slices of what was emitted
	err := file.Guard(func() error {
		for i := range n {
			d.values.ReadVal(d.schema, &d.buf[i])
			if d.values.Error != nil {
				return d.values.Error
			}
		}
		return nil
	})
	if err != nil {
		return d.fail(d.at, fmt.Errorf("records %d to %d of a block: %w", d.skip+1, d.skip+int64(n), err))
	}
	return nil
}

// endBlock checks that the block has nothing left.
func (d *decoder[T]) endBlock() error {
	d.block.over = true
	d.values.Peek()
	if d.values.Error != io.EOF {
		return d.fail(d.at, fmt.Errorf("%w: bytes are left behind the records of a block", ErrDamaged))
	}
	d.values.Error = nil
	d.at, d.skip = d.in.Offset(), 0
	return nil
}

// find goes behind the first sync marker that ends behind the start of the split.
func (d *decoder[T]) find() error {
	in := d.in
	if in.Offset() > in.Start() || in.Start() == 0 { // restored: it is a block's begin
		d.synced = true
		return nil
	}
	for {
		window := in.Window()
		from := max(0, int(in.Start()-in.Offset())-syncSize+1)
		if from < len(window) {
			if i := bytes.Index(window[from:], d.sync); i >= 0 {
				in.Advance(from + i + syncSize)
				d.at, d.synced = in.Offset(), true
				return nil
			}
			in.Advance(max(from, len(window)-syncSize+1))
		}
		if in.Offset() > in.Stop() {
			return io.EOF
		}
		if err := in.Fill(); err != nil {
			return err
		}
	}
}

// Position implements file.Decoder.
func (d *decoder[T]) Position() int64 { return d.at }

// Skip implements file.BlockDecoder.
func (d *decoder[T]) Skip() int64 { return d.skip }

// fail is an error at a place of the file.
func (d *decoder[T]) fail(at int64, err error) error {
	return &file.Error{Path: d.in.Path(), Offset: at, Err: err}
}

// name adds the file to errors of its format, and leaves those of an Input.
func (d *decoder[T]) name(err error) error {
	if errors.Is(err, ErrDamaged) {
		return d.fail(0, err)
	}
	return err
}

// blockReader is the block for the library. A value that reaches beyond it ends in a panic: some of the library's loops
// look at no error.
type blockReader struct {
	rest []byte
	over bool // all records were read
}

// Read implements io.Reader.
func (b *blockReader) Read(p []byte) (int, error) {
	if len(b.rest) == 0 && !b.over {
		panic(fmt.Errorf("%w: a record reaches beyond its block", ErrDamaged))
	}
	if len(b.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}
