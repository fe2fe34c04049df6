package graph

import (
	"encoding/hex"
	"fmt"
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
