package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// timerSet is a set of timers: rows without values, whose keys are {space}{key group}{time}{key}{namespace}, the time
// big-endian with its sign bit flipped. Within a key group they lie in time order, so that a snapshot is a scan, a rescale
// moves a stretch, and the earliest of all groups are at the fronts of the groups. They do not go through the cache: they
// are written blindly, some at a time, and read once.
type timerSet struct {
	store *store
	spec  statebackend.TimerSpec
	shape shape
	info  statebackend.TableInfo
	batch *pebble.Batch // written, and not told to the tree yet
	some  bool          // there may be timers
	front position
	span  uint64 // time between the front and what Take should look at, in ms
	key   []byte
	found picked
}

// position is a place in the order of all timers: by time, then key group, key and namespace. There are no timers before
// it: what Take leaves behind are deletions, which are slow to pass over.
type position struct {
	at int64
	// last is the key of the row before the position, one of time at; nil: the position is before all rows of time at.
	last []byte
}

const (
	// timeAt is where the time of a timer begins in the key of its row, timeBytes how long it is.
	timeAt    = headBytes
	timeBytes = 8
	// timerBatch is how many bytes of timers are written at once.
	timerBatch = 64 << 10
	// leastTake and groupTake bound how many timers Take looks for: enough that the seek in each key group is worth it.
	leastTake = 2048
	groupTake = 16
	// firstSpan is how far Take looks at first.
	firstSpan = 60_000
)

var _ statebackend.TimerStore = (*store)(nil)

// Timers implements statebackend.TimerStore.
func (s *store) Timers(spec statebackend.TimerSpec) (statebackend.Timers, error) {
	if err := spec.Check(); err != nil {
		return nil, err
	}
	if s.validGroups != nil {
		return nil, fmt.Errorf("operator %q: timers %q: %w", s.Operator, spec.Name, s.validGroups)
	}
	_, taken := s.names[spec.Name]
	if taken || slices.ContainsFunc(s.timers, func(t *timerSet) bool { return t.spec.Name == spec.Name }) {
		return nil, fmt.Errorf("operator %q: timers %q: the name is taken", s.Operator, spec.Name)
	}
	t, err := newTimerSet(s, spec)
	if err == nil {
		err = t.refill()
	}
	if err != nil {
		return nil, fmt.Errorf("operator %q: restore timers %q: %w", s.Operator, spec.Name, err)
	}
	s.timers = append(s.timers, t)
	return t, nil
}

func newTimerSet(s *store, spec statebackend.TimerSpec) (*timerSet, error) {
	at, err := serde.KeyOf[int64]()
	if err != nil {
		return nil, err
	}
	t := &timerSet{
		store: s, spec: spec, front: position{at: math.MinInt64}, span: firstSpan,
		shape: shape{kind: timerRows, key: int(s.Key.Width)},
		info:  statebackend.TableInfo{Name: spec.Name, Kind: statebackend.TimerKind, Key: s.Key.Schema(), MapKey: at.Schema()},
	}
	if spec.Namespace != nil {
		t.shape.namespaced, t.shape.namespace = true, int(spec.Namespace.Width)
		t.info.Namespace = spec.Namespace.Schema()
	}
	return t, nil
}

// refill gives a set that was just opened what the snapshot has for it: its part of the tree, and rows.
func (t *timerSet) refill() error {
	s := t.store
	if i := slices.IndexFunc(s.kept, func(k *keptTable) bool { return k.Name == t.spec.Name && k.like(t.shape) }); i >= 0 {
		if err := sameTypes(&s.kept[i].TableInfo, &t.info); err != nil {
			return err
		}
		t.shape.spaces, t.some = s.kept[i].spaces, true
		s.kept = slices.Delete(s.kept, i, i+1)
	} else {
		t.shape.give(s)
	}
	b := newBulk(s.tree)
	for _, k := range s.kept {
		if k.Name != t.spec.Name {
			continue
		}
		if err := sameTypes(&k.TableInfo, &t.info); err != nil {
			return err
		}
		return errRow // rows of these types lie as the set's
	}
	if s.Restored != nil && !s.frozen {
		if old, ok := s.Restored.Table(t.spec.Name); ok {
			if err := sameTypes(&old.TableInfo, &t.info); err != nil {
				return err
			}
			if err := t.load(&old, b); err != nil {
				return err
			}
		}
	}
	return errors.Join(b.finish(), s.failed)
}

// load brings the rows of a snapshot into the set.
func (t *timerSet) load(old *statebackend.FrozenTable, b *bulk) error {
	s := t.store
	for row, err := range old.Rows {
		switch {
		case err != nil:
			return err
		case len(row.MapKey) != timeBytes:
			return fmt.Errorf("a time of %d bytes", len(row.MapKey))
		case s.Key.Width > 0 && len(row.Key) != int(s.Key.Width):
			return fmt.Errorf("a key of %d bytes: %s takes %d", len(row.Key), s.Key.Name, s.Key.Width)
		case t.shape.namespace > 0 && len(row.Namespace) != t.shape.namespace:
			return fmt.Errorf("a namespace of %d bytes: %s takes %d", len(row.Namespace), t.spec.Namespace.Name, t.shape.namespace)
		}
		hash := s.Key.HashOne(row.Key, s.Seed)
		if g := keygroup.Of(uint32(hash), s.MaxParallelism); g < s.FirstGroup || g > s.LastGroup {
			return fmt.Errorf("a key of group %d: the subtask has groups %d to %d of %d", g, s.FirstGroup, s.LastGroup, s.MaxParallelism)
		}
		at := int64(binary.LittleEndian.Uint64(row.MapKey))
		t.some = true
		if err := b.add(t.compose(&statebackend.Timer{At: at, Key: row.Key, Hash: hash, Namespace: row.Namespace}), nil); err != nil {
			return err
		}
	}
	return nil
}

// compose makes the key of a timer's row, in the set's scratch.
func (t *timerSet) compose(x *statebackend.Timer) []byte {
	b := binary.BigEndian.AppendUint16(t.key[:0], t.shape.spaces[0])
	b = binary.BigEndian.AppendUint16(b, uint16(keygroup.Of(uint32(x.Hash), t.store.MaxParallelism)))
	b = binary.BigEndian.AppendUint64(b, ordered(x.At))
	b = appendPart(b, t.store.Key, x.Key)
	if ns := t.spec.Namespace; ns != nil {
		b = appendPart(b, ns, x.Namespace)
	}
	t.key = b
	return b
}

// parse makes a timer of the key of its row.
func (t *timerSet) parse(key []byte, x *statebackend.Timer) error {
	var r statebackend.Row
	if err := t.shape.parse(key, &r); err != nil {
		return err
	}
	x.At, x.Key, x.Namespace = timeOf(key), r.Key, r.Namespace
	x.Hash = t.store.Key.HashOne(r.Key, t.store.Seed)
	return nil
}

// ordered maps times to unsigned numbers in the same order.
func ordered(at int64) uint64 { return uint64(at) ^ 1<<63 }

// timeOf is the time in the key of a timer's row.
func timeOf(key []byte) int64 { return int64(binary.BigEndian.Uint64(key[timeAt:]) ^ 1<<63) }

// Put implements statebackend.Timers.
func (t *timerSet) Put(x *statebackend.Timer) error {
	key := t.compose(x)
	t.some = true
	if x.At < t.front.at || x.At == t.front.at && t.front.last != nil && string(key) <= string(t.front.last) {
		t.front = position{at: x.At}
	}
	return t.write(key, (*pebble.Batch).Set)
}

// Delete implements statebackend.Timers.
func (t *timerSet) Delete(x *statebackend.Timer) error {
	return t.remove(t.compose(x))
}

func (t *timerSet) write(key []byte, how func(b *pebble.Batch, key, value []byte, o *pebble.WriteOptions) error) error {
	if t.store.failed != nil {
		return t.store.failed
	}
	if t.batch == nil {
		t.batch = t.store.tree.NewBatch()
	}
	if err := how(t.batch, key, nil, pebble.NoSync); err != nil {
		return t.wrap("write", err)
	}
	if t.batch.Len() < timerBatch {
		return nil
	}
	return t.flush()
}

// flush tells the tree what was written.
func (t *timerSet) flush() error {
	s := t.store
	if t.batch == nil || s.failed != nil {
		return s.failed
	}
	b := t.batch
	t.batch = nil
	s.cache.pay(s.tree.fill(int64(b.Len())))
	err := s.traceBatch(b)
	if err == nil {
		err = b.Commit(pebble.NoSync)
	}
	if err = errors.Join(err, b.Close(), s.tree.broken()); err != nil {
		err = t.wrap("write", err)
		s.fail(err)
	}
	return err
}

// traceBatch is trace for what is in a batch.
func (s *store) traceBatch(b *pebble.Batch) error {
	for _, v := range s.views {
		v.mu.Lock()
		tracing := v.tracing && !v.over
		v.mu.Unlock()
		if !tracing {
			continue
		}
		var keys []string
		for r := b.Reader(); ; {
			_, key, _, ok, err := r.Next()
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			keys = append(keys, string(key))
		}
		v.mu.Lock()
		if v.tracing && !v.over {
			v.written = append(v.written, keys...)
		}
		v.mu.Unlock()
	}
	return nil
}

// Range implements statebackend.Timers.
func (t *timerSet) Range(f func(x *statebackend.Timer) error) error {
	if err := t.flush(); err != nil {
		return err
	}
	from, to := bounds(t.shape.spaces[0])
	var x statebackend.Timer
	var stop error
	err := scan(t.store.tree, from, to, func(key, _ []byte) (bool, error) {
		if err := t.parse(key, &x); err != nil {
			return false, err
		}
		stop = f(&x)
		return stop == nil, nil
	})
	if err != nil {
		return t.wrap("read", err)
	}
	return stop
}

// AheadBytes implements statebackend.Timers.
func (t *timerSet) AheadBytes() int64 { return t.store.cache.limit / 8 }

// settle finds out whether the set has a timer, before a snapshot.
func (t *timerSet) settle() (err error) {
	if err := t.flush(); err != nil || !t.some {
		return err
	}
	from, to := bounds(t.shape.spaces[0])
	it, err := t.store.tree.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return t.wrap("read", err)
	}
	t.some = false
	for valid := it.SeekGE(t.start(&t.front, t.store.FirstGroup)); valid && !t.some; {
		start := t.start(&t.front, groupOf(it.Key()))
		if t.some = string(it.Key()) >= string(start); !t.some {
			valid = it.SeekGE(start)
		}
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return t.wrap("read", err)
	}
	return nil
}

func (t *timerSet) wrap(verb string, err error) error {
	return fmt.Errorf("operator %q: %s timers %q: %w", t.store.Operator, verb, t.spec.Name, err)
}

// dropTimers drops timers of the snapshot that nobody has opened.
func (s *store) dropTimers() {
	for _, k := range slices.Clone(s.kept) {
		if k.kind == timerRows {
			s.forsake(k.Name)
		}
	}
}

// settleTimers prepares the sets of timers for a snapshot.
func (s *store) settleTimers() error {
	for _, t := range s.timers {
		if err := t.settle(); err != nil {
			return err
		}
	}
	return nil
}

// freezeTimers adds the sets of timers to a snapshot, those that have some.
func (s *store) freezeTimers(f *frozen) {
	for _, t := range s.timers {
		var ahead iter.Seq[*statebackend.Timer]
		if t.spec.Ahead != nil {
			ahead = t.spec.Ahead()
		}
		if !t.some && ahead == nil {
			continue
		}
		key, seed := s.Key, s.Seed
		c := &timerSet{store: &store{Options: s.Options}, spec: t.spec, shape: t.shape} // for the goroutine that reads
		g := &reading{
			shape: t.shape, last: 1<<16 - 1, scan: f.scan,
			hash: func(b []byte) uint64 { return key.HashOne(b, seed) },
			wrap: func(err error) error { return c.wrap("snapshot of", err) },
		}
		f.tables = append(f.tables, statebackend.FrozenTable{TableInfo: t.info, Rows: g.rows()})
		f.timers = append(f.timers, metaTable{name: t.spec.Name, shape: t.shape, n: -1})
		if ahead != nil {
			f.view.later = append(f.view.later, func() { f.view.hold(c, ahead) })
		}
	}
}

// hold adds the rows of timers that are not in the set, as if the cache had them. The reader calls it.
func (v *view) hold(t *timerSet, ahead iter.Seq[*statebackend.Timer]) {
	var rows []heldRow
	var data []byte
	for x := range ahead {
		key := t.compose(x)
		rows = append(rows, heldRow{at: len(data), klen: len(key), live: true})
		data = append(data, key...)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.over {
		return
	}
	for _, r := range rows {
		r.at += len(v.data)
		v.rows = append(v.rows, r)
	}
	v.data = append(v.data, data...)
	v.account()
}

// sameTypes says whether timers of a snapshot are of the types that the program declares.
func sameTypes(old, now *statebackend.TableInfo) error {
	if old.Kind != now.Kind {
		return fmt.Errorf("table %q of the snapshot holds %s, not %s", now.Name, old.Kind, now.Kind)
	}
	for _, part := range []struct {
		what     string
		old, now *serde.Schema
	}{{"key", old.Key, now.Key}, {"namespace", old.Namespace, now.Namespace}, {"map key", old.MapKey, now.MapKey}} {
		if was, is := schemaText(part.old), schemaText(part.now); was != is {
			return fmt.Errorf("the snapshot has the %s type %s, the program %s: types of keys can't change", part.what, was, is)
		}
	}
	return nil
}

func schemaText(s *serde.Schema) string {
	if s == nil {
		return "(none)"
	}
	return s.String()
}
