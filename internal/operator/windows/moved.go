package windows

import (
	"errors"
	"fmt"
	"iter"
	"unsafe"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/window"
)

// Tables in which drivers keep windows, as docs/formats/operator-state.md has them.
const (
	SlicesTable       = "slices"
	TangledTable      = "slices/tangled"
	WholeTable        = "slices/windows"
	SessionsTable     = "sessions"
	ContentsTable     = "window contents"
	AccumulatorsTable = "window accumulators"
	PendingTable      = "window pending elements"
	MergingTable      = "merging windows"
	ManyMergingTable  = "many merging windows"
	// ForgetsList is the list that has an item if a trigger has taken back timers that remove windows.
	ForgetsList = "window/forgets"
)

// Kept is a window of a key with its accumulator, however the driver that wrote it into a snapshot had kept it.
type Kept struct {
	Key    []byte // canonical
	Hash   uint64
	Window window.Time
	// Fired says that the window has fired, and is kept for late elements only.
	Fired bool
	// Acc is an accumulator that is the visitor's.
	Acc unsafe.Pointer
}

// Moved are the windows that a snapshot has of an operator whose driver kept them in another way: in a job on another kind of
// state backend, or with or without WithGeneralWindows. The windows must be those of window.Time with an incremental function
// and their default trigger.
type Moved struct {
	Restored *operator.Restored
	K        *Incremental
	Key      *operator.Key
	Domain   process.Domain
	Lateness int64
}

// errKeep says what can be done where windows can't be moved.
func errKeep(format string, args ...any) error {
	return fmt.Errorf(format+": keep the windows' function, trigger and evictor and how they are kept (WithGeneralWindows, KeepInMemory "+
		"and the kind of the state backend), or give the operator another UID", args...)
}

// Has says whether the snapshot has one of the tables.
func Has(r *operator.Restored, tables ...string) bool {
	if r == nil || r.Store == nil {
		return false
	}
	for _, name := range tables {
		if _, ok := r.Store.Table(name); ok {
			return true
		}
	}
	return false
}

var errMalformed = errors.New("a row is malformed")

// sideBySide gives the rows of several tables key group by key group: first those of one table, then those of the next.
type sideBySide struct {
	tables []rowsOf
	stop   []func()
}

// rowsOf are the rows of a table that are still to come.
type rowsOf struct {
	name string
	next func() (*statebackend.Row, error, bool)
	row  *statebackend.Row // nil: there are no more
	use  func(*statebackend.Row) error
}

// add adds a table, which may be missing.
func (s *sideBySide) add(t *statebackend.FrozenTable, use func(*statebackend.Row) error) {
	if t == nil || t.Rows == nil {
		return
	}
	next, stop := iter.Pull2(t.Rows)
	s.tables, s.stop = append(s.tables, rowsOf{name: t.Name, next: next, use: use}), append(s.stop, stop)
}

// step reads on.
func (r *rowsOf) step() error {
	row, err, ok := r.next()
	if err != nil {
		return err
	}
	if r.row = row; !ok {
		r.row = nil
	}
	return nil
}

// each uses all rows, and calls end after each key group.
func (s *sideBySide) each(end func() error) error {
	defer func() {
		for _, stop := range s.stop {
			stop()
		}
	}()
	for i := range s.tables {
		if err := s.tables[i].step(); err != nil {
			return err
		}
	}
	for {
		group := -1
		for i := range s.tables {
			if row := s.tables[i].row; row != nil && (group < 0 || row.Group < group) {
				group = row.Group
			}
		}
		if group < 0 {
			return nil
		}
		for i := range s.tables {
			if err := s.tables[i].group(group); err != nil {
				return err
			}
		}
		if err := end(); err != nil {
			return err
		}
	}
}

// group uses the rows of a key group.
func (r *rowsOf) group(g int) error {
	for r.row != nil && r.row.Group == g {
		err := r.use(r.row)
		if err == nil {
			err = r.step()
		}
		if err != nil {
			return fmt.Errorf("table %q: %w", r.name, err)
		}
	}
	return nil
}

// spanSchema is the schema of windows as namespaces.
func spanSchema() (*serde.Schema, error) {
	span, err := serde.KeyOf[window.Time]()
	if err != nil {
		return nil, err
	}
	return span.Schema(), nil
}

// table gives a table of the snapshot by its name, kind and the type of its map key; nil if there is none.
func (m *Moved) table(name, kind string, namespace bool, mapKey *serde.Schema) (*statebackend.FrozenTable, error) {
	want := statebackend.TableInfo{Name: name, Kind: kind, Key: m.Key.Schema(), MapKey: mapKey}
	if namespace {
		var err error
		if want.Namespace, err = spanSchema(); err != nil {
			return nil, err
		}
	}
	t, err := m.Restored.Table(&want)
	if err != nil {
		return nil, errKeep("%w", err)
	}
	return t, nil
}

// decoder is the way from the accumulators of a snapshot to those of the program.
func (m *Moved) decoder(old *serde.Schema) (func([]byte, unsafe.Pointer) error, error) {
	read, err := operator.Decoder(m.K.Acc, old)
	if err != nil {
		return nil, fmt.Errorf("%w: keep the function of the windows, or give the operator another UID", err)
	}
	return read, nil
}
