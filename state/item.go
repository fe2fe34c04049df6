package state

import (
	"fmt"
	"unsafe"

	"github.com/flott-dev/flott/serde"
)

// packer lays the items of a snapshot side by side into blocks of memory.
type packer struct{ block []byte }

// packBlock is the size of a packer's blocks; larger items have one of their own.
const packBlock = 4 << 10

// room is where the next item is appended to.
func (p *packer) room() []byte {
	if len(p.block) == cap(p.block) {
		p.block = make([]byte, 0, packBlock)
	}
	return p.block[len(p.block):]
}

// take makes what was appended to room an item.
func (p *packer) take(item []byte) []byte {
	if free := cap(p.block) - len(p.block); len(item) <= free && cap(item) == free {
		p.block = p.block[:len(p.block)+len(item)]
	}
	return item[:len(item):len(item)]
}

// evolve gives the way from the values of an old schema, or of the type's own if it is nil.
func evolve(h *serde.Handle, old *serde.Schema) (func([]byte, unsafe.Pointer) (int, error), error) {
	if old == nil {
		return h.Read, nil
	}
	r, err := h.Reader(old)
	if err != nil {
		return nil, fmt.Errorf("%w: keep the type of the field, give the state a state.Upgrade, or give the new one another name", err)
	}
	return r.Read, nil
}
