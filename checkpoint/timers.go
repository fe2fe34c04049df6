package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"unsafe"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// timerTables are the tables of an operator's timers, by their kind of time: docs/formats/operator-state.md.
func timerTables() [2]string {
	return [2]string{process.EventTime: "timers/event", process.ProcessingTime: "timers/processing"}
}

// timerBytes are those of a timer's time, its row's map key.
const timerBytes = 8

// Timers reads the timers of an operator, given by UID or id, as Values does: an entry for each timer of a key, those of event
// time first. An operator that has none gives none. Those of a windowed operator are there as well, with the key alone, not
// the window.
func (s *Snapshot) Timers[K any](operator string, opts ...serde.Option) iter.Seq2[Entry[K, process.Timer], error] {
	return func(yield func(Entry[K, process.Timer], error) bool) {
		k, err := serde.KeyOf[K](opts...)
		var key K
		if err == nil {
			err = s.timers(operator, k, unsafe.Pointer(&key), func(t process.Timer) bool { return yield(Entry[K, process.Timer]{key, t}, nil) })
		}
		if err != nil {
			yield(Entry[K, process.Timer]{}, fmt.Errorf("read the timers of operator %q from %s: %w", operator, s.Folder, err))
		}
	}
}

// timers reads the key of each timer into the memory of a key and gives the timer.
func (s *Snapshot) timers(operator string, k *serde.Key, key unsafe.Pointer, give func(process.Timer) bool) error {
	restored, _, err := s.Read(s.FS, operator, s.Readers...)
	if err != nil {
		return err
	}
	for domain, name := range timerTables() {
		table, ok := restored.Table(name)
		if !ok {
			continue
		}
		if was, is := table.Key.String(), k.Schema().String(); was != is {
			return keysDiffer(was, is)
		}
		for row, err := range table.Rows {
			if err == nil && len(row.MapKey) != timerBytes {
				err = fmt.Errorf("a timer has a time of %d bytes", len(row.MapKey))
			}
			if err == nil {
				err = k.Decode(row.Key, key)
			}
			if err != nil {
				return err
			}
			if !give(process.Timer{Domain: process.Domain(domain), Millis: int64(binary.LittleEndian.Uint64(row.MapKey))}) {
				return nil
			}
		}
	}
	return nil
}

// keysDiffer is the error of a program that has other keys than the snapshot.
func keysDiffer(was, is string) error {
	return fmt.Errorf("the snapshot has the key type %s, the program %s", was, is)
}

// SetTimers makes the timers of the operator these, of both kinds of time, in the place of those that it has: a job that begins
// with them calls OnTimer with each. One that is given twice is one. The timers of windows can't be set: they belong to their
// contents. The options are those of the codec of K.
func (o *DraftOperator) SetTimers[K any](timers iter.Seq2[K, process.Timer], opts ...serde.Option) error {
	k, err := serde.KeyOf[K](opts...)
	if err != nil {
		return fmt.Errorf("set timers of operator %q: %w", o.Name, err)
	}
	set, err := o.newTimers(k)
	if err != nil {
		return fmt.Errorf("set timers of operator %q: %w", o.Name, err)
	}
	for key, timer := range timers {
		if err := set.add(unsafe.Pointer(&key), timer); err != nil {
			return fmt.Errorf("set timers of operator %q: %w", o.Name, err)
		}
	}
	for domain, name := range timerTables() {
		state := set[domain]
		if len(state.all) == 0 {
			state = nil // a table without rows says no more than none
		}
		o.set(name, state)
	}
	return nil
}

// draftTimers are the timers of a draft's operator, by their kind of time.
type draftTimers [2]*draftState

// newTimers makes the tables of an operator's timers, empty.
func (o *DraftOperator) newTimers(k *serde.Key) (set draftTimers, err error) {
	at, err := serde.KeyOf[int64]()
	if err != nil {
		return set, err
	}
	for domain, name := range timerTables() {
		if info, _, err := o.now(name); err == nil && info.Namespace != nil {
			return set, errors.New("it has timers of windows, which belong to what is in the windows")
		}
		set[domain] = &draftState{types: &types{key: k, mapKey: at}, unique: true, info: statebackend.TableInfo{
			Name: name, Kind: statebackend.TimerKind, Key: k.Schema(), MapKey: at.Schema(),
		}}
	}
	return set, nil
}

// add adds a timer.
func (t *draftTimers) add(key unsafe.Pointer, timer process.Timer) (err error) {
	if int(timer.Domain) >= len(t) {
		return fmt.Errorf("a timer follows %d, which is no kind of time", timer.Domain)
	}
	s := t[timer.Domain]
	var row draftRow
	if row.key, err = s.canon(s.types.key, key); err != nil {
		return err
	}
	s.memory = binary.LittleEndian.AppendUint64(s.room(), uint64(timer.Millis))
	row.mapKey = s.taken()
	s.all = append(s.all, row)
	return nil
}
