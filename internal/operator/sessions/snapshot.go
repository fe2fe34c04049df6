package sessions

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/window"
)

// info describes the table of snapshots.
func (o *driver) info() (statebackend.TableInfo, error) {
	return windows.SessionTable(o.spec.Key.Schema(), o.k.Acc.Schema())
}

// Snapshot implements operator.Snapshotter: the nodes are shared with the snapshot, and what changes is kept for it. Which of
// them are sessions is found out when it is read.
func (o *driver) Snapshot(s *operator.Snapshot) error {
	info, err := o.info()
	if err != nil {
		return fmt.Errorf("snapshot session windows: %w", err)
	}
	f := windows.NewFrozen(o.k, o.spec.Key.Key, o.RT.Seed, s.Groups, o.RT.Memory)
	s.Stores = append(s.Stores, f) // released with the snapshot, whatever happens
	if o.live == 0 {
		return nil
	}
	nodes := o.nodes
	lanes := []windows.Lane{{Memory: &o.chains.memory, Values: unsafe.Pointer(unsafe.SliceData(nodes))}}
	p := &windows.Part{Offset: o.accs.offset}
	if !o.accs.inside {
		p.Lane = len(lanes)
		lanes = append(lanes, f.Accumulators(o.accs.base))
	}
	c := census{keys: &o.k.Keys, lane: -1, offset: o.keys.offset, watermark: o.watermark, live: o.live}
	if !o.keys.inside && o.k.Keys.Size > 0 {
		c.lane = len(lanes)
		lanes = append(lanes, windows.Lane{Memory: c.keys, Values: o.keys.base, Pointers: !o.keys.plain})
	}
	p.Shadow = f.Shadow(&o.shadows, o.used, func(id uint32) bool { return !nodes[id].empty() }, lanes...)
	f.Add(f.Table(info), p)
	f.Prepare = func() error { return c.take(f, p) }
	return nil
}

// census finds the sessions of a snapshot.
type census struct {
	keys      *windows.Memory
	lane      int     // of the keys; -1: they are in the nodes
	offset    uintptr // where
	watermark int64
	live      int
}

// take completes the part of a snapshot.
func (c *census) take(f *windows.Frozen, p *windows.Part) error {
	if err := f.Draw(int64(c.live) * int64(c.keys.Size+8+labelBytes)); err != nil {
		return err
	}
	keys := c.keys.New(max(c.live, 1))
	p.IDs, p.Places = make([]uint32, 0, c.live), make([]uint32, 0, c.live)
	labels := make([]byte, 0, c.live*labelBytes)
	p.Shadow.Each(func(id uint32, first unsafe.Pointer, other func(int) unsafe.Pointer) {
		start, end := (*node)(first).start, (*node)(first).end // no more: the rest of it changes meanwhile
		if start > end {
			return
		}
		key := unsafe.Add(first, c.offset)
		if c.lane >= 0 {
			key = other(c.lane)
		}
		n := len(p.IDs)
		c.keys.Move(c.keys.At(keys, n), key, 1)
		p.IDs, p.Places = append(p.IDs, uint32(n)), append(p.Places, id)
		labels = binary.LittleEndian.AppendUint64(labels, uint64(start))
		labels = binary.LittleEndian.AppendUint64(labels, uint64(end))
		labels = append(labels, byte(one(end-1 <= c.watermark)))
	})
	f.SetKeys(keys, len(p.IDs))
	p.Label = func(j int, row *statebackend.Row) []byte {
		b := labels[j*labelBytes:]
		row.Namespace = b[:16:16]
		return b[16:labelBytes:labelBytes]
	}
	return nil
}

// labelBytes is what labels have of a session: start, end and whether it has fired.
const labelBytes = 17

var errRow = errors.New("a row is malformed")

// restore begins with the sessions of a snapshot, or with those of the general driver. Those that have fired wait for nothing
// but late elements and their end.
func (o *driver) restore() error {
	if err := o.RT.Restored.Without(windows.SlicesTable, windows.TangledTable, windows.WholeTable); err != nil {
		return err
	}
	key := o.k.Keys.New(1)
	if err := o.restoreOwn(key); err != nil {
		return err
	}
	m := &windows.Moved{Restored: o.RT.Restored, K: o.k, Key: o.spec.Key, Domain: o.domain, Lateness: o.lateness}
	err := m.FromGeneral(true, o.In, func(k *windows.Kept) error {
		id, err := o.restoreSession(k.Key, k.Window, k.Fired, key)
		if id != 0 && err == nil {
			o.k.Accs.Move(o.accs.at(id), k.Acc, 1)
		}
		return err
	})
	if err != nil {
		return err
	}
	if o.domain == process.ProcessingTime {
		o.alarm.set(o.wheel.bound())
	}
	return o.wheel.shortage
}

// restoreOwn begins with the sessions that a driver of this kind has written. key is memory for one.
func (o *driver) restoreOwn(key unsafe.Pointer) error {
	info, err := o.info()
	if err != nil {
		return err
	}
	t, err := o.RT.Restored.Table(&info)
	if t == nil {
		return err
	}
	if t.Value == nil || t.Value.Kind != serde.Struct || len(t.Value.Fields) != 2 {
		return errors.New("the snapshot does not say what its sessions hold")
	}
	read, err := operator.Decoder(o.k.Acc, t.Value.Fields[1].Schema)
	if err != nil {
		return fmt.Errorf("%w: keep the function of the windows, or give the operator another UID", err)
	}
	for row, err := range t.Rows {
		if err == nil {
			err = o.restoreRow(row, key, read)
		}
		if err != nil {
			return fmt.Errorf("table %q: %w", info.Name, err)
		}
	}
	return nil
}

func (o *driver) restoreRow(row *statebackend.Row, key unsafe.Pointer, read func([]byte, unsafe.Pointer) error) error {
	if len(row.Namespace) != 16 || len(row.Value) == 0 || row.Value[0] > 1 {
		return errRow
	}
	span := window.Time{
		Start: int64(binary.LittleEndian.Uint64(row.Namespace)), End: int64(binary.LittleEndian.Uint64(row.Namespace[8:])),
	}
	id, err := o.restoreSession(row.Key, span, row.Value[0] == 1, key)
	if id == 0 || err != nil {
		return err
	}
	return read(row.Value[1:], o.accs.at(id))
}

// restoreSession puts a session, whose accumulator is zero, into the chain of its key; 0: the program keeps it for late elements
// no more.
func (o *driver) restoreSession(canonical []byte, span window.Time, fired bool, key unsafe.Pointer) (uint32, error) {
	if width := o.spec.Key.Width; width > 0 && len(canonical) != int(width) || span.Start > span.End {
		return 0, errRow
	}
	if fired && o.lateness == 0 {
		return 0, nil
	}
	if err := o.spec.Key.Decode(canonical, key); err != nil {
		return 0, err
	}
	k := &o.keyer
	if err := k.name(serde.Column{P: key, N: 1, Stride: o.k.Keys.Size}); err != nil {
		return 0, err
	}
	if err := k.table.Slots(0, 1, k.latest, k.fresh); err != nil {
		return 0, err
	}
	latest := (*uint32)(k.latest[0])
	if *latest == 0 {
		if err := o.meet(latest, 0); err != nil {
			return 0, err
		}
	}
	found, newer := o.find(*latest, span.Start, span.End)
	if found != 0 {
		return 0, errRow
	}
	id, err := o.begin(latest, newer, span.Start, span.End)
	if err != nil {
		return 0, err
	}
	if s := &o.nodes[id]; fired {
		s.due = o.cleanup(span.End - 1)
		o.wheel.add(s.due, id)
	}
	return id, nil
}
