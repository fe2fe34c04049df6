package pebble

import (
	"os"
	"testing"

	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/statebackend/backendtest"
)

// TestPebbleIsABackend has a cache so small that most tests evict, and that what they wrote last is still in it.
func TestPebbleIsABackend(t *testing.T) {
	folder := t.TempDir()
	t.Run("suite", func(t *testing.T) {
		backendtest.Run(t, func() statebackend.Backend { return Backend{Folder: folder, CacheBytes: leastCache} })
	})
	left, err := os.ReadDir(folder)
	if err != nil || len(left) > 0 {
		t.Errorf("%d folders of stores are left, %v", len(left), err)
	}
}
