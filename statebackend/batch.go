package statebackend

import "iter"

// RowBatch is rows of one key group of a table of values, in columns: a backend takes them in together, without a call for each.
// Keys and values have a fixed width each; there are no namespaces. It and its bytes are valid until the next one is asked for.
// It means what its rows mean one by one, in their order.
type RowBatch struct {
	// Group is the key group of all keys.
	Group int
	// N is the number of rows, at least 1.
	N int
	// Keys are the canonical keys, Values the values in the encoding of the table's value type.
	Keys, Values ByteColumn
	// Times are when the values were last written (or read), for tables with a TTL: ms, little-endian. Empty for others.
	Times ByteColumn
	// Deleted is set in tables of changes (FrozenTable.Changes) only: the values of all keys are there no more. Values and Times
	// are empty then.
	Deleted bool
}

// Packed is the bytes of all rows if these lie one behind the other, stride bytes each, as a key and its value; nil if not.
func (b *RowBatch) Packed(stride int) []byte {
	k, v := &b.Keys, &b.Values
	if k.Stride != stride || v.Stride != stride || k.Width+v.Width != stride || len(b.Times.B) > 0 || len(k.B) < b.N*stride || &k.B[k.Width] != &v.B[0] {
		return nil
	}
	return k.B[:b.N*stride]
}

// ByteColumn is pieces of bytes of one width, Stride bytes apart: piece i is the Width bytes from B[i*Stride] on.
type ByteColumn struct {
	B             []byte
	Stride, Width int
}

// At is piece i.
func (c *ByteColumn) At(i int) []byte {
	from := i * c.Stride
	return c.B[from : from+c.Width : from+c.Width]
}

// RestoredBatches is a Restored that knows how many rows its tables have and gives those of some of them in batches. Who wraps
// a Restored to change its rows hides it.
type RestoredBatches interface {
	Restored
	// Batches gives the rows that Table gives, in the same order; ok is false if the table has to be read by rows. They are
	// read instead of Table's.
	Batches(name string) (batches iter.Seq2[*RowBatch, error], ok bool)
	// Expect is about how many rows a table has: what memory to set up for them. No more than the bytes that hold them allow.
	Expect(name string) int64
}
