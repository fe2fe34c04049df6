package control

import (
	"errors"
	"fmt"

	"github.com/flott-dev/flott/internal/keygroup"
)

// OperatorState is what a snapshot has of one operator, whatever task it ran in.
type OperatorState struct {
	UID            string
	Name           string // for people
	MaxParallelism int
	Subtasks       [][]ItemState // by old subtask; its length is the old parallelism
	Keyed          []KeyedState
	// Coordinated: its coordinator had state (a source's enumerator).
	Coordinated bool
}

// OperatorTarget is an operator of the program that is to be restored.
type OperatorTarget struct {
	UID            string
	Name           string // for people
	Parallelism    int
	MaxParallelism int
	// MaxParallelismSet: the user has chosen it. Otherwise that of the snapshot is taken.
	MaxParallelismSet bool
}

// OperatorAssignment is what an operator is restored with.
type OperatorAssignment struct {
	UID            string
	Restored       bool // the snapshot knows the operator
	MaxParallelism int
	Items          [][]Piece      // by new subtask
	Keyed          [][]KeyedPiece // by new subtask
}

// Assign deals a snapshot's state out to a program: result[i] is for operators[i]. State is matched by operator UID. An
// operator that the snapshot does not know starts empty. State that the program has no operator for is an error, unless
// allowNonRestored lets it be dropped. The max parallelism of keyed state can't change. The error joins all that does not
// fit.
func Assign(snapshot []OperatorState, operators []OperatorTarget, allowNonRestored bool) ([]OperatorAssignment, error) {
	states := map[string]*OperatorState{}
	for i := range snapshot {
		states[snapshot[i].UID] = &snapshot[i]
	}
	var errs []error
	out := make([]OperatorAssignment, len(operators))
	for i, o := range operators {
		state := states[o.UID]
		delete(states, o.UID)
		if state == nil {
			out[i] = OperatorAssignment{
				UID: o.UID, MaxParallelism: o.MaxParallelism, Items: make([][]Piece, o.Parallelism), Keyed: make([][]KeyedPiece, o.Parallelism),
			}
			continue
		}
		a, err := assign(state, o)
		if err != nil {
			errs = append(errs, fmt.Errorf("restore operator %q (uid %s): %w", o.Name, o.UID, err))
		}
		out[i] = a
	}
	if !allowNonRestored {
		for i := range snapshot {
			if s := &snapshot[i]; states[s.UID] == s && !s.empty() {
				errs = append(errs, fmt.Errorf("restore operator %q (uid %s): the program has no such operator: give the operator that is to have its state this UID, or drop the state by allowing non-restored state (-n)", s.Name, s.UID))
			}
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return out, nil
}

func assign(state *OperatorState, o OperatorTarget) (OperatorAssignment, error) {
	a := OperatorAssignment{UID: o.UID, Restored: true, MaxParallelism: o.MaxParallelism}
	if len(state.Keyed) > 0 {
		if err := state.fits(o); err != nil {
			return a, err
		}
		a.MaxParallelism = state.MaxParallelism
	}
	var err error
	if a.Items, err = Redistribute(state.Subtasks, o.Parallelism); err != nil {
		return a, err
	}
	if len(state.Keyed) == 0 {
		a.Keyed = make([][]KeyedPiece, o.Parallelism)
		return a, nil
	}
	a.Keyed, err = RedistributeKeys(state.Keyed, a.MaxParallelism, o.Parallelism)
	return a, err
}

// fits reports why keyed state can't be restored with the operator's numbers.
func (s *OperatorState) fits(o OperatorTarget) error {
	if o.MaxParallelismSet && o.MaxParallelism != s.MaxParallelism {
		return fmt.Errorf("its keyed state was saved with max parallelism %d, the program sets %d: max parallelism is fixed by the first snapshot, so set it to %d, or set none",
			s.MaxParallelism, o.MaxParallelism, s.MaxParallelism)
	}
	if o.Parallelism > s.MaxParallelism {
		return fmt.Errorf("its keyed state was saved with max parallelism %d, the program's parallelism is %d: set a parallelism of %d at most",
			s.MaxParallelism, o.Parallelism, s.MaxParallelism)
	}
	return keygroup.Validate(s.MaxParallelism, o.Parallelism)
}

// empty reports whether the operator had no state.
func (s *OperatorState) empty() bool {
	for _, of := range s.Subtasks {
		if len(of) > 0 {
			return false
		}
	}
	return len(s.Keyed) == 0 && !s.Coordinated
}
