package windows

import (
	"errors"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// SessionTable describes the table that holds sessions. A row is a session of a key, which is the namespace; the value says
// whether it has fired, so that it is kept for late elements only, and what its accumulator is.
func SessionTable(key, acc *serde.Schema) (statebackend.TableInfo, error) {
	span, err := spanSchema()
	if err != nil {
		return statebackend.TableInfo{}, err
	}
	fired, err := serde.Of[bool]()
	if err != nil {
		return statebackend.TableInfo{}, err
	}
	return statebackend.TableInfo{
		Name: SessionsTable, Kind: SessionsTable, Key: key, Namespace: span,
		Value: &serde.Schema{Kind: serde.Struct, Fields: []serde.Field{
			{Name: "Fired", Schema: fired.Schema()}, {Name: "Accumulator", Schema: acc},
		}},
	}, nil
}

// FromSessions visits the windows that a snapshot has as sessions, if it has some. What has fired and is kept no longer is left
// out.
func (m *Moved) FromSessions(visit func(*Kept) error) error {
	info, err := SessionTable(m.Key.Schema(), m.K.Acc.Schema())
	if err != nil {
		return err
	}
	t, err := m.Restored.Table(&info)
	if t == nil {
		return err
	}
	if t.Value == nil || t.Value.Kind != serde.Struct || len(t.Value.Fields) != 2 {
		return errors.New("the snapshot does not say what its sessions hold")
	}
	read, err := m.decoder(t.Value.Fields[1].Schema)
	if err != nil {
		return err
	}
	acc := m.K.Accs.New(1)
	use := func(row *statebackend.Row) error {
		if len(row.Namespace) != 16 || len(row.Value) == 0 || row.Value[0] > 1 {
			return errMalformed
		}
		k := Kept{Key: row.Key, Hash: row.Hash, Window: spanOf(row.Namespace), Fired: row.Value[0] == 1, Acc: acc}
		if k.Fired && m.Lateness == 0 {
			return nil
		}
		if k.Window.Start > k.Window.End {
			return errMalformed
		}
		err := read(row.Value[1:], acc)
		if err == nil {
			err = visit(&k)
		}
		m.K.Accs.Zero(acc, 1)
		return err
	}
	var s sideBySide
	s.add(t, use)
	return s.each(func() error { return nil })
}
