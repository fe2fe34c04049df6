package timers

import (
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// tables are their names, by domain.
func tables() [2]string {
	return [2]string{process.EventTime: "timers/event", process.ProcessingTime: "timers/processing"}
}

// Types are what snapshots say of timers.
type Types struct {
	// Key is the type of the stream's key, Namespace that of namespaces; nil: there are none.
	Key, Namespace *serde.Key
	// Seed is the job's hash seed.
	Seed uint64
}

// info describes the table of a domain. The time of a timer is its row's map key.
func (t *Types) info(name string) (statebackend.TableInfo, error) {
	at, err := serde.KeyOf[int64]()
	if err != nil {
		return statebackend.TableInfo{}, err
	}
	info := statebackend.TableInfo{Name: name, Kind: statebackend.TimerKind, Key: t.Key.Schema(), MapKey: at.Schema()}
	if t.Namespace != nil {
		info.Namespace = t.Namespace.Schema()
	}
	return info, nil
}

// Freeze adds a copy of all timers to a snapshot: a table for each domain that has some. Those of timers that a store keeps are
// in its own snapshot, with the timers in memory.
func (s *Service) Freeze(o *operator.Snapshot, t Types) error {
	for d, name := range tables() {
		q := &s.queues[d]
		if q.live == 0 || q.horizon.set != nil {
			continue
		}
		info, err := t.info(name)
		if err != nil {
			return fmt.Errorf("snapshot timers: %w", err)
		}
		copied := q.freeze(t.Namespace != nil)
		o.Tables = append(o.Tables, statebackend.FrozenTable{TableInfo: info, Rows: copied.rows(o.Groups)})
	}
	return nil
}

// frozen is a copy of the timers of a queue. The order of rows is made where they are read, off the subtask's goroutine.
type frozen struct {
	heads      []head
	bytes      []byte // keys and namespaces
	namespaces bool
}

// head is a timer; its key and namespace begin at byte from.
type head struct {
	at         int64
	hash       uint64
	from       uint64
	klen, nlen uint32
}

func (q *queue) freeze(namespaces bool) *frozen {
	f := &frozen{heads: make([]head, 0, q.live), bytes: make([]byte, 0, q.live*q.slab.inline), namespaces: namespaces}
	q.slab.each(func(r *record) bool {
		key, ns := q.payload(r)
		f.heads = append(f.heads, head{at: r.at, hash: r.hash, from: uint64(len(f.bytes)), klen: r.klen, nlen: r.nlen})
		f.bytes = append(append(f.bytes, key...), ns...)
		return true
	})
	return f
}

// ahead gives a copy of the timers in memory, nil if there are none, for the snapshot of the store behind.
func (q *queue) ahead(namespaces bool) iter.Seq[*statebackend.Timer] {
	if q.live == 0 {
		return nil
	}
	f := q.freeze(namespaces)
	return func(yield func(*statebackend.Timer) bool) {
		var t statebackend.Timer
		for i := range f.heads {
			h := &f.heads[i]
			b := f.bytes[h.from:]
			t.At, t.Hash, t.Key, t.Namespace = h.at, h.hash, b[:h.klen:h.klen], b[h.klen:h.klen+h.nlen:h.klen+h.nlen]
			if !yield(&t) {
				return
			}
		}
	}
}

// rows gives the timers key group by key group.
func (f *frozen) rows(groups int) iter.Seq2[*statebackend.Row, error] {
	return func(yield func(*statebackend.Row, error) bool) {
		starts := make([]int, groups+1)
		for i := range f.heads {
			starts[keygroup.Of(uint32(f.heads[i].hash), groups)+1]++
		}
		for g := range groups {
			starts[g+1] += starts[g]
		}
		order := make([]uint32, len(f.heads))
		for i := range f.heads {
			g := keygroup.Of(uint32(f.heads[i].hash), groups)
			order[starts[g]] = uint32(i)
			starts[g]++ // from the group's beginning to its end, which is the next one's beginning
		}
		var at [8]byte
		row := statebackend.Row{MapKey: at[:]}
		group := 0
		for n, i := range order {
			for n >= starts[group] {
				group++
			}
			h := &f.heads[i]
			b := f.bytes[h.from:]
			row.Group, row.Hash, row.Key = group, h.hash, b[:h.klen:h.klen]
			if f.namespaces {
				row.Namespace = b[h.klen : h.klen+h.nlen : h.klen+h.nlen]
			}
			binary.LittleEndian.PutUint64(at[:], uint64(h.at))
			if !yield(&row, nil) {
				return
			}
		}
	}
}

// Restore sets the timers that a snapshot has. It is called before any other, on a service that has none. If the service has a
// store, the store sets them.
func (s *Service) Restore(r *operator.Restored, t Types) error {
	for d, name := range tables() {
		if s.store != nil {
			if err := s.open(process.Domain(d), name, t); err != nil {
				return err
			}
			continue
		}
		want, err := t.info(name)
		if err == nil {
			err = s.restore(process.Domain(d), r, &want, t)
		}
		if err != nil {
			return fmt.Errorf("restore %s timers: %w", process.Domain(d), err)
		}
	}
	return nil
}

// open opens the timers of a domain in the store and brings the first of them in.
func (s *Service) open(d process.Domain, name string, t Types) error {
	q, namespaces := &s.queues[d], t.Namespace != nil
	set, err := s.store.Timers(statebackend.TimerSpec{
		Name: name, Namespace: t.Namespace, Ahead: func() iter.Seq[*statebackend.Timer] { return q.ahead(namespaces) },
	})
	if err != nil {
		return err
	}
	q.behind(set)
	if err := q.refill(); err != nil {
		return err
	}
	if at, ok := q.earliest(); ok && d == process.ProcessingTime {
		s.schedule(at)
	}
	return q.account()
}

func (s *Service) restore(d process.Domain, r *operator.Restored, want *statebackend.TableInfo, t Types) error {
	table, err := r.Table(want)
	if table == nil {
		return err
	}
	for row, err := range table.Rows {
		if err == nil {
			err = t.check(row)
		}
		if err != nil {
			return err
		}
		at := int64(binary.LittleEndian.Uint64(row.MapKey))
		if err := s.Register(d, row.Key, t.Key.HashOne(row.Key, t.Seed), row.Namespace, at); err != nil {
			return err
		}
	}
	return nil
}

// check says what is wrong with a row that can be no timer of these types: its snapshot is damaged, or of another program.
func (t *Types) check(row *statebackend.Row) error {
	ns := t.Namespace
	switch {
	case len(row.MapKey) != timeBytes:
		return fmt.Errorf("a time of %d bytes, not %d: the snapshot is damaged", len(row.MapKey), timeBytes)
	case misfits(t.Key, row.Key):
		return fmt.Errorf("a key of %d bytes, where %s takes %d: the snapshot is damaged", len(row.Key), t.Key.Name, t.Key.Width)
	case ns == nil && len(row.Namespace) > 0:
		return fmt.Errorf("a namespace of %d bytes, where timers have none: the snapshot is damaged", len(row.Namespace))
	case ns != nil && misfits(ns, row.Namespace):
		return fmt.Errorf("a namespace of %d bytes, where %s takes %d: the snapshot is damaged", len(row.Namespace), ns.Name, ns.Width)
	}
	return nil
}

// timeBytes are those of a timer's time.
const timeBytes = 8

// misfits says whether bytes can be no key of a type, by their number.
func misfits(k *serde.Key, b []byte) bool {
	fixed := k.Width > 0 || k.Size == 0 // values without bytes are all alike
	return fixed && len(b) != int(k.Width)
}
