package checkpoint

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/flott-dev/flott/internal/vfs"
)

// Verify reads every byte of the snapshot and checks it, several files at a time. The error joins one *DamagedError for each file
// that is not what was written; errors of the disk are given as they are. A nil file system is the machine's.
func (m *Manifest) Verify(f vfs.FS) error { return m.Audit(f).Verify() }

// Probe looks whether all files of the snapshot are there, each with the size, beginning and digest that were written (of
// files of backends: the size). It reads a few bytes of each file, so that it is quick but does not see a byte that was changed
// in the middle: Verify does. The error is as Verify's. A nil file system is the machine's.
func (m *Manifest) Probe(f vfs.FS) error {
	if err := m.eachFile(f, func(*chunkReader) error { return nil }, (*storedFile).probe); err != nil {
		return fmt.Errorf("probe snapshot %s: %w", m.Folder, err)
	}
	return nil
}

// eachFile opens every chunk, which checks that it is the one that the manifest means, and every file of a backend, and joins
// what is found, in their order.
func (m *Manifest) eachFile(f vfs.FS, chunk func(*chunkReader) error, file func(*storedFile, vfs.FS, string) error) error {
	var checks []func() error
	f = diskIfNil(f)
	for i := range m.Operators {
		for _, p := range m.Operators[i].Parts {
			for j := range p.chunks {
				checks = append(checks, func() error {
					r, err := openChunk(f, m.Folder, &p.chunks[j])
					if err != nil {
						return err
					}
					return errors.Join(chunk(r), r.close())
				})
			}
			if p.files == nil {
				continue
			}
			for j := range p.files.files {
				checks = append(checks, func() error { return file(&p.files.files[j], f, m.Folder) })
			}
		}
	}
	return atOnce(checks)
}

// maxChecks is how many files are looked at at a time: storages that are far away answer slowly, and disks like a queue.
const maxChecks = 4

// atOnce does all, some at a time, and joins their errors in their order.
func atOnce(checks []func() error) error {
	errs := make([]error, len(checks))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(maxChecks, len(checks)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(checks)); i = next.Add(1) - 1 {
				errs[i] = checks[i]()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
