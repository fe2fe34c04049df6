// Package checkpoint is the snapshot container: what a checkpoint or savepoint holds, how it lies in files, and how programs
// read and write it offline. It knows operators by their ids, tables by schemas and rows by bytes, never user types or
// running tasks. The engine writes and restores through it; tools read it without the program that made it.
package checkpoint

import "github.com/flott-dev/flott/serde"

// Mode says who gets the items of a list when a job is restored, perhaps with another parallelism.
type Mode uint8

const (
	// Split deals the items of all subtasks out to the new ones, each to one.
	Split Mode = iota
	// Union gives all items to each new subtask.
	Union
	// Broadcast: all subtasks hold the same items; each new one gets those of one old one.
	Broadcast
)

// String gives the mode's word.
func (m Mode) String() string { return [...]string{"split", "union", "broadcast"}[m] }

// List is state of an operator that belongs to no key: items of bytes.
type List struct {
	// Name is unique among the lists of the operator.
	Name string
	Mode Mode
	// Schema is that of the items; nil for bytes whose meaning only the operator knows.
	Schema *serde.Schema
	Items  [][]byte
}
