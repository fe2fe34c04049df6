// Package graph is what to run: the logical graph that the front doors build, node by node. It holds constructors of
// operators, never operators; it knows nothing of subtasks, threads or files. Package plan turns it into a job graph and
// an execution graph.
package graph

import (
	"time"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
)

// Chaining says how a node may be joined with its neighbours in one task.
type Chaining uint8

const (
	// Always: with its input and its followers.
	Always Chaining = iota
	// Head: with followers only.
	Head
	// Never: with nobody.
	Never
)

// Kind says what a node is.
type Kind uint8

// The kinds of nodes.
const (
	Source Kind = iota
	Operator
	Sink
	// IterationHead and IterationTail are the two ends of a feedback edge, in one slot (co-located).
	IterationHead
	IterationTail
)

// Timestamps says what a node does to the timestamps of elements.
type Timestamps uint8

const (
	// TimestampsKept: elements come out with the timestamps that they came in with; of a source: they may have some. The
	// default.
	TimestampsKept Timestamps = iota
	// TimestampsNone: nothing that the node emits has a timestamp.
	TimestampsNone
	// TimestampsGiven: the node gives timestamps, or may do so.
	TimestampsGiven
)

// Unset is a number that the user has not given.
const Unset = -1

// Node is one operator of the logical graph. Front doors fill it, plan reads it.
type Node struct {
	Kind        Kind
	Name        string
	Description string
	UID         string // the user's; "" = derived from structure
	UIDHash     string // 32 hex digits forced by the user; "" = from UID or structure
	Caller      string // file:line of the user's call

	Parallelism    int // Unset: the environment's
	NonParallel    bool
	MaxParallelism int // Unset: the environment's, or computed
	Chaining       Chaining
	SlotGroup      string // "": inherited
	CoLocation     string // nodes of one non-empty key put their i-th subtasks into one slot
	BufferTimeout  *time.Duration
	Stateful       bool // gets a warning without a UID
	Yielding       bool // processes its mailbox while it waits; never chained to a source
	AlignedInputs  bool // its state at a watermark fits no other: barriers must not overtake what is on its way to it

	Timestamps Timestamps
	// MakesWatermarks: watermarks and idleness come from the node itself; those of its inputs end here.
	MakesWatermarks bool
	// NeedsTimestamps refuses inputs whose elements certainly have no timestamps: the node works in event time. What it
	// emits has timestamps.
	NeedsTimestamps bool

	Inputs []Edge
	Key    []*Key      // by Edge.Input: the key of a keyed operator; nil entries and nil slice: not keyed
	Out    *frame.Type // main output; nil for sinks
	Side   map[string]*frame.Type

	// New makes one subtask's operator. It must not do anything that can fail or wait: that belongs to Open.
	New func() operator.Operator
	// OnDisk, if set, is what the node is where the state backend keeps more state than fits into memory (Graph.Spilled).
	OnDisk *Alternative
	// NewCoordinator makes the part that runs once per job beside the job manager (a source's enumerator); nil for most.
	NewCoordinator func() operator.Coordinator
	// Prepare is called once, before the first attempt of a job that does not go on from a snapshot with this operator, with the
	// resolved parallelism: a sink looks at its target. nil for most.
	Prepare func(parallelism int) error
	// Attributes are shown in plans: state layout, window path ...
	Attributes map[string]string
}

// Edge leads from a node's output to an input of another node.
type Edge struct {
	From        *Node
	Tag         string       // side output; "" = main
	Input       int          // the consumer's input, 0 for most; several edges into one input are a union
	Partitioner *Partitioner // nil: forward if parallelism is equal, else rebalance
	Exchange    Exchange
	Feedback    bool // from an IterationTail to its IterationHead: not part of the topological order
}

// Exchange says when the consumer of an edge may start (Flink: shuffle mode).
type Exchange uint8

const (
	// Undefined: as Graph.BlockingConnections says.
	Undefined Exchange = iota
	// Pipelined: together with the producer.
	Pipelined
	// Batch: when the producer has ended. Such an edge is never inside a chain.
	Batch
)

// Key is the key of a keyed stream.
type Key = operator.Key

// Strategy is a way to choose channels.
type Strategy uint8

// The strategies. Unset edges become Forward if parallelism is equal, else Rebalance.
const (
	Forward Strategy = iota
	Rebalance
	Rescale
	Shuffle
	Broadcast
	Global
	Hash
	Custom
)

// String gives the word Flink's plans use.
func (s Strategy) String() string {
	return [...]string{"FORWARD", "REBALANCE", "RESCALE", "SHUFFLE", "BROADCAST", "GLOBAL", "HASH", "CUSTOM"}[s]
}

// Partitioner says how elements of an edge find their subtask.
type Partitioner struct {
	Strategy Strategy
	Key      *Key // Hash
	// Select makes one subtask's chooser for Custom: it fills out with the channel (0 .. channels-1) of each element.
	Select func() func(r *frame.Run, channels int, out []uint16) error
	Seed   uint64 // Shuffle
	// Batch makes the edge a blocking one (the consumer starts when the producer has ended), as Edge.Exchange can.
	Batch bool
}

// Graph is a job's logical graph with the environment's settings that planning needs. It is filled by one goroutine and
// read-only afterwards.
type Graph struct {
	Nodes []*Node // in the order of creation, which ids and plans follow

	JobName          string
	Parallelism      int
	MaxParallelism   int // Unset: computed per operator
	BufferTimeout    time.Duration
	ChainingEnabled  bool
	HashSeed         uint64
	GlobalParameters map[string]string

	// RequireUIDs refuses nodes without UID and UIDHash (the ends of iterations aside).
	RequireUIDs bool
	// BlockingConnections makes every edge between chains a blocking one unless the edge says otherwise.
	BlockingConnections bool
	// SlotGroupPerRegion gives every pipelined region a slot-sharing group of its own in place of the default group.
	SlotGroupPerRegion bool
}
