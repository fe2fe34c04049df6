package checkpoint

import "slices"

// Kind tells snapshots of the system from those of users.
type Kind uint8

const (
	// Checkpoint is taken by the system, for its own recovery. It may name files of earlier ones.
	Checkpoint Kind = iota
	// Savepoint is a user's: all of it lies in its folder, which may be moved.
	Savepoint
)

// String gives the kind's word.
func (k Kind) String() string {
	if k > Savepoint {
		return "unknown kind"
	}
	return [...]string{"checkpoint", "savepoint"}[k]
}

// Manifest says what a snapshot holds. One that was loaded or completed must not be changed and may be used by all
// goroutines.
type Manifest struct {
	// Folder is where the snapshot lies; the paths of its chunks start there. It is not written: Load sets it.
	Folder string
	// Version is that of the format of the manifest's file. Load sets it; what is written has ManifestVersion.
	Version int
	// ID is the number of the checkpoint. Savepoints are counted with the checkpoints of their job.
	ID int64
	// Kind says whose the snapshot is.
	Kind Kind
	// JobID and JobName are those of the job that took the snapshot.
	JobID, JobName string
	// Time is when it was triggered, in ms since 1970.
	Time int64
	// HashSeed is the job's seed of key hashes: a job that is restored has to go on with it.
	HashSeed uint64
	// Operators are those of the job, with and without state, each id once.
	Operators []Operator

	size int64
}

// Size is how many bytes the manifest's own file has. It is known once the manifest was loaded or completed, and 0 before.
func (m *Manifest) Size() int64 { return m.size }

// Operator is what a snapshot holds of one operator.
type Operator struct {
	// ID is the operator's identity: 32 lower-case hex digits, the hash of the UID if it has one.
	ID string
	// UID is what the user called the operator; empty if nothing.
	UID string
	// Name is for people.
	Name string
	// Parallelism is how many subtasks it had, MaxParallelism how many key groups.
	Parallelism, MaxParallelism int
	// Coordinator is the state of what runs once per job (a source's enumerator); nil: there was none.
	Coordinator []byte
	// Parts are those of the subtasks, in rising order. A subtask without one had no state.
	Parts []*Part
}

// channelList is the list in which tasks keep how far event time had come on their channels: docs/formats/operator-state.md.
const channelList = "channels"

// HasState says whether something would be lost if a job began without the operator. How far event time had come on its input
// is no state: operators that keep nothing have it, too.
func (o *Operator) HasState() bool {
	if o.Coordinator != nil {
		return true
	}
	for _, p := range o.Parts {
		if len(p.Tables) > 0 || slices.ContainsFunc(p.Lists, func(l ListInfo) bool { return l.Name != channelList }) {
			return true
		}
	}
	return false
}

// Operator finds an operator by its id or, if no id is equal, by its UID; nil if there is none.
func (m *Manifest) Operator(name string) *Operator {
	for i := range m.Operators {
		if m.Operators[i].ID == name {
			return &m.Operators[i]
		}
	}
	for i := range m.Operators {
		if name != "" && m.Operators[i].UID == name {
			return &m.Operators[i]
		}
	}
	return nil
}
