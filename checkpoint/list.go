// Package checkpoint is the snapshot container: what a checkpoint or savepoint holds, how it lies in files, and how programs
// read it offline. It knows operators by their ids, tables by schemas and rows by bytes, never user types or running tasks,
// and decides neither when a snapshot is taken nor when it is thrown away. The engine writes and restores through it; tools
// read it without the program that made it.
//
// A snapshot is a folder. It is begun (Storage.Begin), every operator of every subtask writes its part into it
// (Writer.Write), and it exists once its manifest does (Storage.Complete), which names the parts: a crash at any moment
// leaves a whole snapshot or none. docs/formats/snapshot.md describes the files byte for byte.
package checkpoint

import (
	"fmt"

	"github.com/flott-dev/flott/serde"
)

// Mode says who gets the items of a list when a job is restored, perhaps with another parallelism.
type Mode uint8

const (
	// Split deals the items of all subtasks out to the new ones, each to one.
	Split Mode = iota
	// Union gives all items to each new subtask.
	Union
	// Broadcast means that all subtasks hold the same items; each new one gets those of one old one.
	Broadcast
)

// String gives the mode's word.
func (m Mode) String() string {
	if m > Broadcast {
		return fmt.Sprintf("mode %d", uint8(m))
	}
	return [...]string{"split", "union", "broadcast"}[m]
}

// List is state of an operator that belongs to no key: items of bytes.
type List struct {
	// Name is unique among the lists of the operator.
	Name string
	// Mode is how the items are dealt out at a restore.
	Mode Mode
	// Schema is that of the items; nil for bytes whose meaning only the operator knows.
	Schema *serde.Schema
	// Items are the items in their order.
	Items [][]byte
}
