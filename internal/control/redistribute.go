package control

import (
	"fmt"
	"maps"
	"slices"

	"github.com/flott-dev/flott/internal/keygroup"
)

// Spread says how operator state is dealt out when a snapshot is restored.
type Spread uint8

const (
	// Split: each item goes to one subtask.
	Split Spread = iota
	// Union: every subtask gets all items.
	Union
	// Broadcast: every subtask holds the same items and gets one subtask's.
	Broadcast
)

// String gives the name of the spread.
func (s Spread) String() string { return [...]string{"split", "union", "broadcast"}[s] }

// ItemState is the operator state of one name that one subtask had: so many items, in order.
type ItemState struct {
	Name   string
	Spread Spread
	Items  int
}

// Piece is what a new subtask gets of an old one: items From ... To-1 of a state.
type Piece struct {
	State    string
	Spread   Spread
	Source   int // the old subtask
	From, To int
}

// Redistribute deals the operator state of old subtasks out to parallelism new ones: result[n] are the pieces of subtask n,
// states in the order of their names, items in the order of the old subtasks.
//
//   - Split items are dealt out in stretches of equal length; where they don't come out even, the next state goes on after
//     the subtasks that got one more, so that the totals differ by one at most. If the parallelism has not changed, every
//     subtask keeps what it had.
//   - Union items all go to everybody.
//   - Broadcast state is taken in turn from those old subtasks that have it.
//
// An old subtask that had finished has no states. It fails if subtasks disagree about the spread of a state, as those of
// one program can't.
func Redistribute(old [][]ItemState, parallelism int) ([][]Piece, error) {
	if parallelism < 1 {
		return nil, fmt.Errorf("redistribute operator state: parallelism %d is less than 1", parallelism)
	}
	states := map[string][]Piece{} // all items, by name
	for source, of := range old {
		for _, s := range of {
			if all := states[s.Name]; len(all) > 0 && all[0].Spread != s.Spread {
				return nil, fmt.Errorf("redistribute operator state %q: it is %v in subtask %d and %v in subtask %d of the snapshot, which must be damaged",
					s.Name, all[0].Spread, all[0].Source, s.Spread, source)
			}
			states[s.Name] = append(states[s.Name], Piece{State: s.Name, Spread: s.Spread, Source: source, To: s.Items})
		}
	}
	out := make([][]Piece, parallelism)
	start := 0 // the subtask with which the next split begins
	for _, name := range slices.Sorted(maps.Keys(states)) {
		pieces := states[name]
		switch {
		case pieces[0].Spread == Union:
			for n := range out {
				out[n] = append(out[n], pieces...)
			}
		case pieces[0].Spread == Broadcast:
			for n := range out {
				out[n] = append(out[n], pieces[n%len(pieces)])
			}
		case len(old) == parallelism:
			for _, p := range pieces {
				out[p.Source] = append(out[p.Source], p)
			}
		default:
			start = split(out, pieces, start)
		}
	}
	return out, nil
}

// split deals the items out in order, beginning with subtask start, and returns where the next split should begin.
func split(out [][]Piece, pieces []Piece, start int) (next int) {
	total := 0
	for _, p := range pieces {
		total += p.To
	}
	each, more := total/len(out), total%len(out)
	for i := range out {
		n := (start + i) % len(out)
		take := each
		if i < more {
			take++
		}
		for take > 0 {
			if pieces[0].From == pieces[0].To {
				pieces = pieces[1:]
				continue
			}
			p := pieces[0]
			p.To = min(p.To, p.From+take)
			take -= p.To - p.From
			pieces[0].From = p.To
			out[n] = append(out[n], p)
		}
	}
	return (start + more) % len(out)
}

// KeyedState is keyed state that one subtask had: something stored, with the key groups in it.
type KeyedState struct {
	Source int // the old subtask
	Handle int // its number among those of the subtask
	Groups keygroup.Range
}

// KeyedPiece is what a new subtask reads of an old one's keyed state: these key groups.
type KeyedPiece struct {
	Source, Handle int
	Groups         keygroup.Range
}

// RedistributeKeys says what each of parallelism new subtasks reads of the keyed state: result[n] are the pieces of
// subtask n in the order of old. It fails if the state has key groups beyond maxParallelism.
func RedistributeKeys(old []KeyedState, maxParallelism, parallelism int) ([][]KeyedPiece, error) {
	if err := keygroup.Validate(maxParallelism, parallelism); err != nil {
		return nil, fmt.Errorf("redistribute keyed state: %w", err)
	}
	out := make([][]KeyedPiece, parallelism)
	for _, s := range old {
		if s.Groups.First < 0 || s.Groups.Last < s.Groups.First || s.Groups.Last >= maxParallelism {
			return nil, fmt.Errorf("redistribute keyed state: subtask %d has key groups %v, of which there are %d: the snapshot must be damaged",
				s.Source, s.Groups, maxParallelism)
		}
		first := keygroup.SubtaskOf(maxParallelism, parallelism, s.Groups.First)
		last := keygroup.SubtaskOf(maxParallelism, parallelism, s.Groups.Last)
		for n := first; n <= last; n++ {
			of := keygroup.Range{}
			of.First, of.Last = keygroup.RangeOf(maxParallelism, parallelism, n)
			if both, ok := of.Intersect(s.Groups); ok {
				out[n] = append(out[n], KeyedPiece{Source: s.Source, Handle: s.Handle, Groups: both})
			}
		}
	}
	return out, nil
}
