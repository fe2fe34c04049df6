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

// tableName is the table of a snapshot: a row for each session, which is the namespace. The value says whether the session
// has fired, so that it is kept for late elements only, and what its accumulator is.
const tableName = "sessions"

// info describes the table.
func (o *driver) info() (statebackend.TableInfo, error) {
	span, err := serde.KeyOf[window.Time]()
	if err != nil {
		return statebackend.TableInfo{}, err
	}
	fired, err := serde.Of[bool]()
	if err != nil {
		return statebackend.TableInfo{}, err
	}
	return statebackend.TableInfo{
		Name: tableName, Kind: tableName, Key: o.spec.Key.Schema(), Namespace: span.Schema(),
		Value: &serde.Schema{Kind: serde.Struct, Fields: []serde.Field{
			{Name: "Fired", Schema: fired.Schema()}, {Name: "Accumulator", Schema: o.k.Acc.Schema()},
		}},
	}, nil
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

// restore begins with the sessions of a snapshot. Those that have fired wait for nothing but late elements and their end.
func (o *driver) restore() error {
	if err := o.RT.Restored.Without("window contents", "slices", "slices/tangled"); err != nil {
		return err
	}
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
	key := o.k.Keys.New(1)
	for row, err := range t.Rows {
		if err == nil {
			err = o.restoreRow(row, key, read)
		}
		if err != nil {
			return fmt.Errorf("table %q: %w", tableName, err)
		}
	}
	if o.domain == process.ProcessingTime {
		o.alarm.set(o.wheel.bound())
	}
	return o.wheel.shortage
}

// restoreRow puts a session into the chain of its key. key is memory for one.
func (o *driver) restoreRow(row *statebackend.Row, key unsafe.Pointer, read func([]byte, unsafe.Pointer) error) error {
	width := o.spec.Key.Width
	if len(row.Namespace) != 16 || len(row.Value) == 0 || row.Value[0] > 1 || width > 0 && len(row.Key) != int(width) {
		return errRow
	}
	start, end := int64(binary.LittleEndian.Uint64(row.Namespace)), int64(binary.LittleEndian.Uint64(row.Namespace[8:]))
	fired := row.Value[0] == 1
	if fired && o.lateness == 0 {
		return nil // the program keeps it for late elements no more
	}
	if err := o.spec.Key.Decode(row.Key, key); err != nil {
		return err
	}
	k := &o.keyer
	if err := k.name(serde.Column{P: key, N: 1, Stride: o.k.Keys.Size}); err != nil {
		return err
	}
	if err := k.table.Slots(0, 1, k.latest, k.fresh); err != nil {
		return err
	}
	latest := (*uint32)(k.latest[0])
	if *latest == 0 {
		if err := o.meet(latest, 0); err != nil {
			return err
		}
	}
	found, newer := o.find(*latest, start, end)
	if found != 0 || start > end {
		return errRow
	}
	id, err := o.begin(latest, newer, start, end)
	if err != nil {
		return err
	}
	if s := &o.nodes[id]; fired {
		s.due = o.cleanup(end - 1)
		o.wheel.add(s.due, id)
	}
	return read(row.Value[1:], o.accs.at(id))
}
