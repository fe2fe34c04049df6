package checkpoint

import "github.com/flott-dev/flott/statebackend"

// State is what one operator of one subtask adds to a snapshot. Names of tables are unique among its tables, names of lists
// among its lists.
type State struct {
	// Earlier is the part that the same operator of the same subtask wrote for an earlier checkpoint; nil: nothing builds upon
	// one. Tables of changes are written on top of its tables of the same names, and of its files those that Files names again
	// are not written again.
	Earlier *Part
	// EarlierFolder is the folder of the snapshot that Earlier was written for.
	EarlierFolder string
	// Files are the files of backends, each for one store; most have none.
	Files []*statebackend.FileSet
	// Tables are state by key. Each has a schema of its keys. A table without a schema of namespaces or map keys has rows
	// without; one without a schema of values has rows whose value is bytes that only the operator knows.
	Tables []statebackend.FrozenTable
	// Lists are state of no key. Items are not changed while they are written.
	Lists []List
}
