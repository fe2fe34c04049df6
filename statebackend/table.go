package statebackend

import "unsafe"

// Lookahead holds the slots that a table has looked up for the keys of the current run before anyone asked, so that the
// handle of a per-element function finds most of its slots by an index and no call. Slots[i] is the address for key i, or
// nil if the key had no value when the table looked. The table empties it (length 0) whenever addresses may have changed
// and when a run or namespace begins; only the table writes it. A table that can't hand out addresses, or has a TTL,
// leaves it empty.
type Lookahead struct {
	Slots []unsafe.Pointer
}

// Table is the state of one value per key (and namespace). Calls with an index mean a key of the store's current run.
//
// Addresses of slots are valid until the next call of a method of the same table other than Find, and until BeginRun or
// Freeze; the Lookahead's until it is empty. Values of Fixed layout may be read and written through them by whoever got
// them, but through those of Find they may only be read.
type Table interface {
	// Spec is the declaration of the table. It must not be changed.
	Spec() *TableSpec
	// SetNamespace selects the namespace of the following calls, by its canonical bytes; the table copies them. Only for
	// tables with a Namespace, where it must be called before anything else.
	SetNamespace(canonical []byte)
	// Slots finds or inserts the values of keys [from,to) of the run: out[i-from] becomes the address of the slot, and
	// fresh[i-from] says whether it was just made (its memory is zero). A key that comes twice in the range is fresh once.
	// With a TTL it counts as a write, and an expired value is fresh. Only for Fixed layout. An error leaves some keys
	// inserted; the task fails with it.
	Slots(from, to int, out []unsafe.Pointer, fresh []bool) error
	// Find gives the address of the slot of key i, for reading, or nil if the key has no value or an expired one. It may
	// fill the Lookahead. Only for Fixed layout. With a TTL it counts as a read.
	Find(i int) unsafe.Pointer
	// Lookahead gives the table's lookahead, the same one at every call.
	Lookahead() *Lookahead
	// Load copies the value of key i to the Go value at v, which shares no memory with the table that could change; false
	// if there is none.
	Load(i int, v unsafe.Pointer) (bool, error)
	// Save copies the Go value at v in as the value of key i.
	Save(i int, v unsafe.Pointer) error
	// Has says whether key i has a value. With a TTL, expired values don't count, and it is no read.
	Has(i int) bool
	// Delete removes the value of key i, if there is one.
	Delete(i int) error
	// Len is the number of values in all namespaces, expired ones that nobody removed yet included.
	Len() int
	// Range calls f for every value that has not expired, in no particular order, until f returns false. The table must
	// not be used meanwhile, other than through the entry.
	Range(f func(e *Entry) bool) error
	// MemoryBytes is the memory that the table holds.
	MemoryBytes() int64
}

// ListTable is the state of a list per key (and namespace).
type ListTable interface {
	// Spec is the declaration of the table. It must not be changed.
	Spec() *TableSpec
	// SetNamespace selects the namespace as Table.SetNamespace does.
	SetNamespace(canonical []byte)
	// Append copies the element at v to the end of the list of key i.
	Append(i int, v unsafe.Pointer) error
	// Count is the number of elements of the list of key i that have not expired.
	Count(i int) int
	// Has says whether the list of key i has an element that has not expired.
	Has(i int) bool
	// Each copies the elements of the list of key i to v, one after the other from the first, and calls f after each,
	// until f returns false. f must not change the table: Each notices and returns ErrChanged.
	Each(i int, v unsafe.Pointer, f func() bool) error
	// MoveTo moves all elements of the list of key i from the selected namespace to the end of the list of the same key
	// in another, without looking at them. Only for tables with a Namespace.
	MoveTo(i int, canonical []byte) error
	// Delete removes the list of key i.
	Delete(i int) error
	// Len is the number of lists that are not empty, in all namespaces.
	Len() int
	// Range calls f for every element that has not expired, the elements of one list in order and together.
	// The table must not be used meanwhile, other than through the entry.
	Range(f func(e *Entry) bool) error
	// MemoryBytes is the memory that the table holds.
	MemoryBytes() int64
}

// MapTable is the state of a map per key (and namespace). Map keys are given as the address of a Go value of
// Spec().MapKey's type. Iteration is in the order of insertion.
type MapTable interface {
	// Spec is the declaration of the table. It must not be changed.
	Spec() *TableSpec
	// SetNamespace selects the namespace as Table.SetNamespace does.
	SetNamespace(canonical []byte)
	// Slot finds or inserts the entry of map key k in the map of key i; fresh says whether it was just made (zero).
	// The address is valid until the next call of a method of the table. Only for values of Fixed layout.
	Slot(i int, k unsafe.Pointer) (slot unsafe.Pointer, fresh bool, err error)
	// Load copies the value of map key k to v; false if there is none.
	Load(i int, k, v unsafe.Pointer) (bool, error)
	// Save copies the value at v in as the value of map key k.
	Save(i int, k, v unsafe.Pointer) error
	// Has says whether map key k has a value that has not expired. It is no read.
	Has(i int, k unsafe.Pointer) (bool, error)
	// Remove removes the entry of map key k; false if there was none.
	Remove(i int, k unsafe.Pointer) (bool, error)
	// Count is the number of entries of the map of key i, expired ones that nobody removed yet included.
	Count(i int) int
	// Each copies the entries of the map of key i to k and v (v may be nil), one after the other in order of insertion,
	// and calls f after each, until f returns false. f may use the table freely: an entry removed before its turn is not
	// shown, one that is added is.
	Each(i int, k, v unsafe.Pointer, f func() bool) error
	// Delete removes the whole map of key i.
	Delete(i int) error
	// Len is the number of entries of all maps.
	Len() int
	// Range calls f for every entry that has not expired, the entries of one map in order and together. The table must
	// not be used meanwhile, other than through the entry.
	Range(f func(e *Entry) bool) error
	// MemoryBytes is the memory that the table holds.
	MemoryBytes() int64
}

// NearMapTable is a MapTable that can find the maps of many keys at once. Who is about to use those of a run in one namespace, key
// by key, and calls Near before, doesn't wait for memory at each. It changes nothing, and a table without it is as good.
type NearMapTable interface {
	MapTable
	// Near brings the maps of keys [from,to) of the run in the selected namespace near the processor, as far as they are in
	// memory.
	Near(from, to int)
}

// Entry is one value, list element or map entry as Range shows it. It and its bytes are valid during the call only.
type Entry struct {
	// Key is the canonical key, Hash its hash with the store's seed.
	Key  []byte
	Hash uint64
	// Namespace is the canonical namespace, nil for tables without one.
	Namespace []byte
	// MapKey is the canonical map key, nil but for maps.
	MapKey []byte
	// At is when the value was last written (or read) in ms, for tables with a TTL.
	At int64
	// Load copies the value to the Go value at dst.
	Load func(dst unsafe.Pointer) error
}
