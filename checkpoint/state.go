package checkpoint

import "github.com/flott-dev/flott/statebackend"

// State is what one operator of one subtask adds to a snapshot. Names of tables are unique among its tables, names of lists
// among its lists.
type State struct {
	// Tables are state by key. Each has a schema of its keys. A table without a schema of namespaces or map keys has rows
	// without; one without a schema of values has rows whose value is bytes that only the operator knows.
	Tables []statebackend.FrozenTable
	// Lists are state of no key. Items are not changed while they are written.
	Lists []List
}
