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

// Snapshot implements operator.Snapshotter: keys and accumulators are copied as they lie in memory.
func (o *driver) Snapshot(s *operator.Snapshot) error {
	info, err := o.info()
	if err != nil {
		return fmt.Errorf("snapshot session windows: %w", err)
	}
	f := &windows.Frozen{K: o.k, Key: o.spec.Key.Key, Seed: o.RT.Seed, Groups: s.Groups, Memory: o.RT.Memory, Spare: &o.spareCopies}
	s.Stores = append(s.Stores, f) // released with the snapshot, whatever happens
	ids, places, labels := make([]uint32, 0, o.live), make([]uint32, 0, o.live), make([]byte, 0, o.live*labelBytes)
	keys := f.MakeKeys(max(o.live, 1))
	for id := uint32(1); id < uint32(o.used); id++ {
		n := &o.nodes[id]
		if n.empty() || n.newer == freeNode {
			continue
		}
		o.k.Keys.Move(o.k.Keys.At(keys, len(ids)), o.keys.at(id), 1)
		ids, places = append(ids, uint32(len(ids))), append(places, id*o.accs.scale)
		labels = binary.LittleEndian.AppendUint64(labels, uint64(n.start))
		labels = binary.LittleEndian.AppendUint64(labels, uint64(n.end))
		labels = append(labels, byte(one(n.end-1 <= o.watermark)))
	}
	f.SetKeys(len(ids))
	return f.AddListed(f.Table(info), o.accs.base, ids, places, func(j int, row *statebackend.Row) []byte {
		b := labels[j*labelBytes:]
		row.Namespace = b[:16:16]
		return b[16:labelBytes:labelBytes]
	})
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
