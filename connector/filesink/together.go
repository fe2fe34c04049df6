package filesink

import (
	"errors"
	"sync"
	"sync/atomic"
)

// requests is how many files are closed and made visible at a time where each takes requests over a network.
const requests = 16

// together calls f with 0 to n-1, with so many goroutines at the most, and returns when all of them are done. Alone it stops at the
// first error, otherwise the errors of all calls come back.
func together(n, goroutines int, f func(i int) error) error {
	if goroutines <= 1 {
		for i := range n {
			if err := f(i); err != nil {
				return err
			}
		}
		return nil
	}
	var next atomic.Int64
	var all sync.WaitGroup
	errs := make([]error, n)
	for range min(n, goroutines) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				errs[i] = f(i)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
