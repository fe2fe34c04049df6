package avro

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json/jsontext"
	"fmt"
	"io"
	"reflect"

	"github.com/flott-dev/flott/connector/file"
	"github.com/hamba/avro/v2"
)

// DefaultBlockSize is the number of bytes of a block, before compression, unless BlockSize says otherwise.
const DefaultBlockSize = 64 << 10

// Option changes how files are written.
type Option func(*options)

type options struct {
	codec Codec
	block int
}

// Compression sets how blocks are compressed; the default is Snappy.
func Compression(c Codec) Option { return func(o *options) { o.codec = c } }

// BlockSize sets the number of bytes, before compression, from which a block is complete; the default is
// DefaultBlockSize. Blocks are where files are cut into splits and what readers hold at once.
func BlockSize(bytes int) Option { return func(o *options) { o.block = bytes } }

// Encoding writes elements of type T as Avro container files. The schema is JSON and describes T: for a struct a record
// with a field for each of its fields; "" takes the one that SchemaOf makes of T. It is used with filesink.NewBulk.
func Encoding[T any](schema string, opts ...Option) file.BulkEncoding[T] {
	o := options{block: DefaultBlockSize}
	for _, opt := range opts {
		opt(&o)
	}
	e := file.BulkEncoding[T]{Extension: ".avro"}
	d, err := describe[T](schema, &o)
	if err != nil {
		e.Err = fmt.Errorf("avro encoding: %w", err)
	}
	e.Open = func(to io.Writer) (file.BulkWriter[T], error) {
		if e.Err != nil {
			return nil, e.Err
		}
		pack, err := packer(o.codec)
		if err != nil {
			return nil, fmt.Errorf("begin an Avro file: %w", err)
		}
		w := &writer[T]{
			to: to, schema: d.schema, size: o.block, pack: pack,
			block: avro.NewWriter(nil, o.block+o.block/4, avro.WithWriterConfig(d.api)),
		}
		return w, w.begin(d.meta)
	}
	return e
}

// description is what all files of an encoding share.
type description struct {
	api    avro.API
	schema avro.Schema
	meta   []byte // the metadata of the header
}

func describe[T any](text string, o *options) (*description, error) {
	if o.block < 1 || o.block > maxBlock/2 {
		return nil, fmt.Errorf("blocks of %d bytes", o.block)
	}
	codec, err := o.codec.name()
	if err != nil {
		return nil, err
	}
	if text == "" {
		if text, err = SchemaOf[T](); err != nil {
			return nil, err
		}
	}
	d := &description{api: library()}
	if d.schema, err = parse(text); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if err := covers(d.schema, reflect.TypeFor[T]()); err != nil {
		return nil, err
	}
	if err := suits[T](d.api, d.schema, true); err != nil {
		return nil, err
	}
	compact := jsontext.Value(text)
	if err := compact.Compact(); err != nil {
		return nil, fmt.Errorf("schema: %w", err) // the library takes bare names, such as long, which are no JSON
	}
	d.meta = metadata("avro.codec", codec, "avro.schema", string(compact))
	return d, nil
}

// metadata encodes a map.
func metadata(pairs ...string) []byte {
	b := binary.AppendVarint(nil, int64(len(pairs)/2))
	for _, s := range pairs {
		b = append(binary.AppendVarint(b, int64(len(s))), s...)
	}
	return append(b, 0)
}

// writer writes one file.
type writer[T any] struct {
	to      io.Writer
	schema  avro.Schema
	size    int
	pack    func(dst, block []byte) ([]byte, error)
	block   *avro.Writer
	records int64
	sync    [syncSize]byte
	packed  []byte
	out     []byte
}

func (w *writer[T]) begin(meta []byte) error {
	if _, err := rand.Read(w.sync[:]); err != nil {
		return fmt.Errorf("begin an Avro file: make a sync marker: %w", err)
	}
	header := bytes.Join([][]byte{[]byte(magic), meta, w.sync[:]}, nil)
	if _, err := w.to.Write(header); err != nil {
		return fmt.Errorf("begin an Avro file: %w", err)
	}
	return nil
}

// Write implements file.BulkWriter.
func (w *writer[T]) Write(xs []T) error {
	err := file.Guard(func() error {
		for i := range xs {
			if err := w.add(&xs[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write record %d of a block of an Avro file: %w", w.records+1, err)
	}
	return nil
}

func (w *writer[T]) add(x *T) error {
	before := w.block.Buffered()
	put(w.block, w.schema, x)
	if w.block.Error != nil {
		return w.block.Error
	}
	if n := w.block.Buffered() - before; n > maxBlock/2 {
		return fmt.Errorf("it has %d bytes", n)
	}
	w.records++
	if w.block.Buffered() >= w.size {
		return w.flush()
	}
	return nil
}

// flush writes the block.
func (w *writer[T]) flush() (err error) {
	if w.records == 0 {
		return nil
	}
	if w.packed, err = w.pack(w.packed[:0], w.block.Buffer()); err != nil {
		return fmt.Errorf("compress the block: %w", err)
	}
	w.out = binary.AppendVarint(w.out[:0], w.records)
	w.out = binary.AppendVarint(w.out, int64(len(w.packed)))
	w.out = append(append(w.out, w.packed...), w.sync[:]...)
	w.block.Reset(nil)
	w.records = 0
	if _, err := w.to.Write(w.out); err != nil {
		return fmt.Errorf("write the block: %w", err)
	}
	return nil
}

// Held implements file.BulkWriter.
func (w *writer[T]) Held() int64 { return int64(w.block.Buffered()) }

// Close implements file.BulkWriter.
func (w *writer[T]) Close() error {
	if err := w.flush(); err != nil {
		return fmt.Errorf("end an Avro file: %w", err)
	}
	return nil
}
