package control

// pendingCheckpoint is a snapshot that has begun and has not ended.
type pendingCheckpoint struct {
	checkpointRequest
	id        int64
	phase     pendingPhase
	retention Retention
	timestamp int64 // ms since 1970, of the trigger
	started   int64 // monotonic ns
	location  string
	prepared  TaskSnapshot
	parts     []taskPart // by number of the task
	owed      int        // parts that are missing
}

type pendingPhase uint8

const (
	preparing  pendingPhase = iota // no task has heard of it
	collecting                     // tasks owe their parts
	storing                        // all parts are here, the manifest is being written
)

// taskPart is what one task owes or has given.
type taskPart struct {
	status    partStatus
	triggered bool // by the coordinator
	attempt   int
	part      TaskSnapshot
}

type partStatus uint8

const (
	partNone  partStatus = iota // the task has none in it
	partOwed                    // it was asked for
	partGiven                   // the task has acknowledged, or had finished before
)

// owes reports whether this execution of the task with that number owes its part.
func (p *pendingCheckpoint) owes(number, attempt int) bool {
	return p.phase == collecting && p.parts[number].status == partOwed && p.parts[number].attempt == attempt
}

// give takes a task's part.
func (p *pendingCheckpoint) give(number int, s TaskSnapshot) {
	t := &p.parts[number]
	t.status, t.part = partGiven, s
	p.owed--
}

// completed is the snapshot once nothing is owed.
func (p *pendingCheckpoint) completed() *CompletedCheckpoint {
	if p.owed != 0 {
		panic("control: a checkpoint that misses parts was to be completed")
	}
	c := &CompletedCheckpoint{
		ID: p.id, Kind: p.kind, Timestamp: p.timestamp, Location: p.location, Retention: p.retention, Prepared: p.prepared,
	}
	for i := range p.parts {
		if p.parts[i].status == partGiven {
			c.Tasks = append(c.Tasks, p.parts[i].part)
		}
	}
	return c
}

// checkpointRequest is what asks for a snapshot.
type checkpointRequest struct {
	request  int64 // of a Trigger; 0 otherwise
	kind     SnapshotKind
	target   string
	full     bool
	periodic bool
	final    bool
}
