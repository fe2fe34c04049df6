package heap

import (
	"slices"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// deletions are the keys of what was removed from a table since the base, in order. A key that was not in the base may be
// among them, too.
type deletions struct {
	log    rowLog
	hasher serde.Hasher
	max    int // key groups
	n      int
	lost   bool // there was no memory
	row    statebackend.Row
}

// leastLog is what deletions may take in any table.
const leastLog = 64 << 10

func newDeletions(l *ledger) *deletions {
	s := l.store
	return &deletions{log: rowLog{ledger: l}, hasher: s.Key.Hasher(s.Seed), max: s.MaxParallelism}
}

// whole marks the log's row of a removed map, among those of removed entries.
const wholeMap = 1

// add notes that the value or list of a key is gone, or an entry of its map.
func (d *deletions) add(key, namespace, mapKey []byte) { d.note(key, namespace, mapKey, 0) }

// addMap notes that all entries of a key's map are gone.
func (d *deletions) addMap(key, namespace []byte) { d.note(key, namespace, nil, wholeMap) }

func (d *deletions) note(key, namespace, mapKey []byte, at int64) {
	if d.lost {
		return
	}
	h := d.hasher.One(key)
	d.row = statebackend.Row{
		Group: keygroup.Of(uint32(h), d.max), Key: key, Hash: h, Namespace: namespace, MapKey: mapKey, At: at,
	}
	if d.log.add(&d.row) != nil || d.log.bytes > leastLog+d.log.ledger.held/2 {
		d.lost = true // more than half of the table is gone anyway
		d.log.close()
		return
	}
	d.n++
}

// frozenDeletions are those of a snapshot, by key group.
type frozenDeletions struct {
	info   *statebackend.TableInfo
	chunks [][]byte
	held   int64
	at     []deletion // by group
	keys   []byte     // of a batch
}

// deletion is where one is in the log.
type deletion struct {
	group uint32
	chunk uint32
	off   int
}

const deletionBytes = 16

// freeze gives what was noted so far to a snapshot, wholly if no more is to be noted.
func (d *deletions) freeze(f *frozen, info *statebackend.TableInfo, keep bool) *frozenDeletions {
	out := &frozenDeletions{info: info, chunks: slices.Clone(d.log.chunks)}
	if keep {
		return out // the log may be written to behind what the snapshot sees
	}
	out.held = d.log.bytes
	d.log.ledger.transfer(f, out.held)
	d.log.chunks, d.log.bytes = nil, 0
	return out
}

// order finds all deletions, those of a group together.
func (d *frozenDeletions) order(f *frozen) error {
	var r statebackend.Row
	for c, b := range d.chunks {
		for rest := b; len(rest) > 0; {
			off := len(b) - len(rest)
			rest = readLogged(rest, &r)
			if len(d.at) == cap(d.at) {
				more := max(256, len(d.at))
				if err := f.reserve(int64(more) * deletionBytes); err != nil {
					return err
				}
				d.held += int64(more) * deletionBytes
				d.at = append(make([]deletion, 0, len(d.at)+more), d.at...)
			}
			d.at = append(d.at, deletion{uint32(r.Group), uint32(c), off})
		}
	}
	slices.SortStableFunc(d.at, func(a, b deletion) int { return int(a.group) - int(b.group) })
	return nil
}

// show yields the deletions of a group.
func (d *frozenDeletions) show(group int, yield func(*statebackend.Row, error) bool) bool {
	for ; len(d.at) > 0 && int(d.at[0].group) == group; d.at = d.at[1:] {
		var r statebackend.Row
		readLogged(d.chunks[d.at[0].chunk][d.at[0].off:], &r)
		if d.info.Namespace == nil {
			r.Namespace = nil
		}
		if d.info.MapKey == nil || r.At == wholeMap {
			r.MapKey = nil
		}
		r.At, r.Deleted = 0, true
		if !yield(&r, nil) {
			return false
		}
	}
	return true
}

// goneBatch is how many deletions are given together.
const goneBatch = 256

// batches yields what show does, of keys of one width without namespaces and map keys, in batches.
func (d *frozenDeletions) batches(group, width int, yield func(*statebackend.RowBatch, error) bool) bool {
	keys := d.keys[:0]
	for len(d.at) > 0 && int(d.at[0].group) == group {
		keys = keys[:0]
		for len(keys) < goneBatch*width && len(d.at) > 0 && int(d.at[0].group) == group {
			var r statebackend.Row
			readLogged(d.chunks[d.at[0].chunk][d.at[0].off:], &r)
			keys = append(keys, r.Key...)
			d.at = d.at[1:]
		}
		d.keys = keys
		column := statebackend.ByteColumn{B: keys, Stride: width, Width: width}
		if !yield(&statebackend.RowBatch{Group: group, N: len(keys) / width, Keys: column, Deleted: true}, nil) {
			return false
		}
	}
	return true
}

// drop gives the memory back.
func (d *frozenDeletions) drop(f *frozen) {
	f.release(d.held)
	d.held, d.chunks, d.at = 0, nil, nil
}
