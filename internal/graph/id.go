package graph

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/flott-dev/flott/internal/murmur"
)

// ID is the stable identity of a node: its state in a snapshot and its vertex in REST are found by it.
type ID [16]byte

// String gives the 32 hex digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// ParseID reads 32 hex digits of either case.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 2*len(id) {
		return ID{}, fmt.Errorf("parse node id %q: want 32 hex digits, have %d characters", s, len(s))
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return ID{}, fmt.Errorf("parse node id %q: %w", s, err)
	}
	return id, nil
}

// UIDHash is the id of a node with this UID: the very one that Flink gives it.
func UIDHash(uid string) ID { return murmur.Sum128([]byte(uid)) }

// structure is the version of the rule by which ids are made of structure; whoever changes the rule breaks the restore of
// every node without a UID and must count on.
const structure = 1

// IDs gives every node its id: UIDHash if the user forced one, else the hash of the UID, else a hash of structure. The
// latter takes in the node's kind, which of its inputs are keyed, the ids of what feeds it, how many of its consumers may
// be chained to it, and its place in the order of creation among nodes that are equal so far. It leaves out names,
// parallelism, slot groups and settings of the environment, so that a renamed or rescaled job finds its state (Flink's
// rule takes in parallelism through chaining). Errors are malformed and duplicate ids, each named by both places.
func (g *Graph) IDs() (map[*Node]ID, error) {
	order, err := g.Order()
	if err != nil {
		return nil, err
	}
	ids, mistakes := g.ids(order)
	return ids, errors.Join(mistakes...)
}

func (g *Graph) ids(order []*Node) (map[*Node]ID, []error) {
	var mistakes []error
	ids := make(map[*Node]ID, len(order))
	owner := make(map[ID]*Node, len(order))
	equal := make(map[ID]uint32)
	followers := chainable(order)
	for _, n := range order {
		shape := n.shape(ids, followers[n])
		place := equal[shape]
		equal[shape]++
		id := murmur.Sum128(binary.BigEndian.AppendUint32(shape[:], place))
		if n.UID != "" {
			id = UIDHash(n.UID)
		}
		if n.UIDHash != "" {
			forced, err := ParseID(n.UIDHash)
			if err != nil {
				mistakes = append(mistakes, n.mistake("%w", err))
			} else {
				id = forced
			}
		}
		if first := owner[id]; first != nil {
			mistakes = append(mistakes, duplicate(id, first, n))
		} else {
			owner[id] = n
		}
		ids[n] = id
	}
	return ids, mistakes
}

// duplicate says where an id was given twice.
func duplicate(id ID, first, second *Node) error {
	if first.UID != "" && first.UID == second.UID {
		return second.mistake("UID %q is taken by %s", second.UID, first)
	}
	return second.mistake("id %s is taken by %s", id, first)
}

// shape hashes what a node's structure is, before its place among equals.
func (n *Node) shape(ids map[*Node]ID, followers int) ID {
	b := []byte{structure, byte(n.Kind)}
	b = binary.AppendUvarint(b, uint64(followers))
	for _, k := range n.Key {
		if k == nil {
			b = append(b, 0)
		} else {
			b = append(b, 1)
		}
	}
	for _, e := range n.Inputs {
		if e.Feedback {
			continue
		}
		id := ids[e.From]
		b = append(b, 2)
		b = append(b, id[:]...)
		b = binary.AppendUvarint(b, uint64(len(e.Tag)))
		b = append(b, e.Tag...)
		b = binary.AppendVarint(b, int64(e.Input))
	}
	return murmur.Sum128(b)
}

// chainable counts, per node, the consumers that its and their declarations let join it.
func chainable(order []*Node) map[*Node]int {
	count := make(map[*Node]int)
	for _, n := range order {
		if len(n.Inputs) == 1 && n.Inputs[0].Joins(n) {
			count[n.Inputs[0].From]++
		}
	}
	return count
}

// Joins reports whether declarations let the consumer run in the chain of the producer: it has no other input and joins
// its input, the producer lets followers join, and the edge is neither repartitioned, blocking nor feedback. Package plan
// adds what depends on parallelism, slots and the chain. A tail is alone as in Flink, so that no task feeds itself.
func (e *Edge) Joins(to *Node) bool {
	return len(to.Inputs) == 1 && !e.Feedback && !e.batch() &&
		(e.Partitioner == nil || e.Partitioner.Strategy == Forward) &&
		to.Chaining == Always && to.Kind != IterationTail && e.From.Chaining != Never
}

func (e *Edge) batch() bool {
	return e.Exchange == Batch || e.Partitioner != nil && e.Partitioner.Batch
}
