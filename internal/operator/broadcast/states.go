package broadcast

import (
	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
)

// prefix begins the names of the lists that hold broadcast states in snapshots; the name of the state follows.
const prefix = "broadcast/"

// openStates opens the declared states as the snapshot has them. fail takes accesses that fail.
func openStates(rt *operator.Runtime, declared []process.BroadcastDescriptor, fail func(error)) (*process.BroadcastStates, error) {
	states := process.NewBroadcastStates(declared, fail)
	return states, states.Each(func(d process.BroadcastDescriptor, b state.BroadcastItems) error {
		l := rt.Restored.List(prefix + d.Name())
		if l == nil {
			return nil
		}
		return b.RestoreItems(l.Items, l.Schema)
	})
}

// snapshot adds the states: a list each, of which all subtasks have the same items.
func snapshot(s *operator.Snapshot, states *process.BroadcastStates) error {
	return states.Each(func(d process.BroadcastDescriptor, b state.BroadcastItems) error {
		items, err := b.AppendItems(nil)
		if err != nil {
			return err
		}
		s.Lists = append(s.Lists, checkpoint.List{Name: prefix + d.Name(), Mode: checkpoint.Broadcast, Schema: d.Schema(), Items: items})
		return nil
	})
}
