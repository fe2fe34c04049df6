package twophase_test

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/twophase"
)

// bank is a system with transactions, in memory.
type bank struct {
	mu        sync.Mutex
	next      int
	open      map[string][]string // begun or prepared
	prepared  map[string]bool
	committed []string
	done      map[string]bool
	calls     []string
	fail      map[string]error // by call
}

func newBank() *bank {
	return &bank{open: map[string][]string{}, prepared: map[string]bool{}, done: map[string]bool{}, fail: map[string]error{}}
}

func (b *bank) connect(connector.WriterContext) (twophase.Transactions[string, string], error) {
	return b, b.fail["connect"]
}

// call notes a call; its lock is held until the returned function is called.
func (b *bank) call(what, tx string) (unlock func(), err error) {
	b.mu.Lock()
	b.calls = append(b.calls, what+" "+tx)
	return b.mu.Unlock, b.fail[what]
}

func (b *bank) Begin() (string, error) {
	tx := fmt.Sprint("tx", b.next)
	unlock, err := b.call("begin", tx)
	defer unlock()
	if err != nil {
		return "", err
	}
	b.next++
	b.open[tx] = nil
	return tx, nil
}

func (b *bank) Write(tx, x string, _ connector.ElementContext) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.open[tx]; !ok || b.prepared[tx] {
		return fmt.Errorf("transaction %s takes nothing", tx)
	}
	b.open[tx] = append(b.open[tx], x)
	return b.fail["write"]
}

func (b *bank) Prepare(tx string) error {
	unlock, err := b.call("prepare", tx)
	defer unlock()
	b.prepared[tx] = err == nil
	return err
}

func (b *bank) Commit(_ context.Context, tx string) error {
	unlock, err := b.call("commit", tx)
	defer unlock()
	switch {
	case err != nil || b.done[tx]:
		return err
	case !b.prepared[tx]:
		return fmt.Errorf("transaction %s is not prepared", tx)
	}
	b.committed = append(b.committed, b.open[tx]...)
	delete(b.open, tx)
	b.done[tx] = true
	return nil
}

func (b *bank) Abort(tx string) error {
	unlock, err := b.call("abort", tx)
	defer unlock()
	if err == nil {
		delete(b.open, tx)
	}
	return err
}

func (b *bank) Close() error { return b.fail["close"] }

func (b *bank) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	calls := b.calls
	b.calls = nil
	return calls
}

func (b *bank) has() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(slices.Values(b.committed))
}
