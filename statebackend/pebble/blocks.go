package pebble

import (
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/flott-dev/flott/statebackend"
)

// BlockCache is the memory for what was read from disk last, parts of files in which rows lie together. It may be shared by
// the stores of many subtasks, so that those which read much have most of it. It takes its memory when the first store that
// has it is opened, from the budget of that store's process, and gives it back when the last one is closed. All goroutines
// may use it.
type BlockCache struct {
	size int64

	mu     sync.Mutex
	users  int
	blocks *pebble.Cache
	memory statebackend.Budget
}

// NewBlockCache returns a cache of a number of bytes, at least 256 KiB.
func NewBlockCache(size int64) *BlockCache { return &BlockCache{size: max(size, leastBlocks)} }

// open makes the caller a user. payer says that it has drawn the memory on the budget.
func (c *BlockCache) open(m statebackend.Budget) (blocks *pebble.Cache, payer bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.users == 0 {
		if m != nil {
			if err := m.Reserve(c.size); err != nil {
				return nil, false, fmt.Errorf("%w: %d bytes for blocks of the disk store: give the process more memory, or the backend less: %w",
					statebackend.ErrOutOfMemory, c.size, err)
			}
		}
		c.blocks, c.memory = pebble.NewCache(c.size), m
	}
	c.users++
	return c.blocks, c.users == 1, nil
}

// close ends the use of the caller.
func (c *BlockCache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.users--; c.users > 0 {
		return
	}
	c.blocks.Unref()
	if c.memory != nil {
		c.memory.Release(c.size)
	}
	c.blocks, c.memory = nil, nil
}
