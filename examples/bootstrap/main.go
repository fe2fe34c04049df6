// Command bootstrap starts a job with state that it did not make itself: balances that another system has kept so far. It
// writes them as a savepoint, begins the job with it, and the job goes on from there. Then it repairs accounts in the savepoint
// and looks into what comes out.
//
//	go run ./examples/bootstrap [-dir folder, default a temporary one] [-parallelism n]
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

// Payment goes to an account.
type Payment struct {
	Account string
	Cents   int64
}

// Balance is what is kept of an account.
type Balance struct {
	Cents    int64
	Payments int
}

// The names by which the savepoint and the job mean the same state.
const (
	operatorUID  = "balances"
	balanceState = "balance"
	recentState  = "recent"
)

func main() {
	dir := flag.String("dir", "", "where savepoints go")
	parallelism := flag.Int("parallelism", 2, "subtasks of each operator")
	flag.Parse()
	if err := inFolder(*dir, func(dir string) error { return run(context.Background(), dir, *parallelism, os.Stdout) }); err != nil {
		log.Fatal(err)
	}
}

// inFolder calls f with a folder, a temporary one if none is given.
func inFolder(dir string, f func(dir string) error) error {
	if dir != "" {
		return f(dir)
	}
	dir, err := os.MkdirTemp("", "bootstrap")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return f(dir)
}

// run writes to out what becomes of some accounts.
func run(ctx context.Context, dir string, parallelism int, out io.Writer) error {
	first := filepath.ToSlash(filepath.Join(dir, "first"))
	if err := bootstrap(ctx, first); err != nil {
		return err
	}
	payments := []Payment{{"ada", 50}, {"bob", 5}, {"eve", 1}, {"ada", 25}}
	if err := pay(ctx, out, payments, parallelism, stream.WithSavepoint(first)); err != nil {
		return err
	}
	repaired := filepath.ToSlash(filepath.Join(dir, "repaired"))
	if err := repair(ctx, first, repaired); err != nil {
		return err
	}
	fmt.Fprintln(out, "repaired:")
	return show(repaired, out)
}

// bootstrap makes a savepoint of what another system knows.
func bootstrap(ctx context.Context, at string) error {
	balances := map[string]Balance{"ada": {100, 3}, "bob": {-20, 1}, "cy": {7, 1}}
	recent := map[string][]int64{"ada": {40, 60}, "bob": {-20}}

	draft := checkpoint.NewDraft("payments")
	operator := draft.Operator(operatorUID)
	if err := operator.SetValues(balanceState, maps.All(balances)); err != nil {
		return err
	}
	if err := operator.SetLists(recentState, maps.All(recent)); err != nil {
		return err
	}
	return draft.Write(ctx, nil, at)
}

// repair takes a fee back that all accounts in debt have paid, and forgets what they have paid lately. All else stays as it
// is.
func repair(ctx context.Context, from, to string) error {
	snapshot, err := checkpoint.Open(nil, from)
	if err != nil {
		return err
	}
	draft := snapshot.Draft()
	operator := draft.Operator(operatorUID)
	err = operator.Update(balanceState, func(_ string, b Balance) (Balance, bool) {
		if b.Cents < 0 {
			b.Cents += 10
		}
		return b, true
	})
	if err != nil {
		return err
	}
	operator.Drop(recentState)
	return draft.Write(ctx, nil, to)
}

// show writes the balances in a savepoint to out.
func show(at string, out io.Writer) error {
	snapshot, err := checkpoint.Open(nil, at)
	if err != nil {
		return err
	}
	var all []checkpoint.Entry[string, Balance]
	for e, err := range snapshot.Values[string, Balance](operatorUID, balanceState) {
		if err != nil {
			return err
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b checkpoint.Entry[string, Balance]) int { return cmp.Compare(a.Key, b.Key) })
	for _, e := range all {
		fmt.Fprintf(out, "%s has %d after %d payments\n", e.Key, e.Value.Cents, e.Value.Payments)
	}
	return nil
}

// pay runs the job: it adds payments to balances.
func pay(ctx context.Context, out io.Writer, payments []Payment, parallelism int, opts ...stream.Option) error {
	env := stream.NewEnv(opts...).SetParallelism(parallelism)
	env.FromElements(payments...).
		KeyBy(func(p Payment) string { return p.Account }).
		Process(newBalances).UID(operatorUID).
		PrintTo(out).Parallelism(1)
	_, err := env.Execute(ctx, "payments")
	return err
}

// balances keeps the balance of each account and its last payments.
type balances struct {
	process.NoTimers[string, string]
	balance *state.Value[Balance]
	recent  *state.List[int64]
}

func newBalances(rt *process.Runtime) *balances {
	return &balances{balance: state.NewValue[Balance](rt, balanceState), recent: state.NewList[int64](rt, recentState)}
}

// ProcessElement adds a payment and tells the balance.
func (b *balances) ProcessElement(_ *process.KeyedContext[string], p Payment, out *process.Collector[string]) error {
	b.balance.Update(func(v *Balance) {
		v.Cents += p.Cents
		v.Payments++
	})
	b.recent.Add(p.Cents)
	v := b.balance.Get()
	out.Collect(fmt.Sprintf("%s has %d after %d payments, the last %v", p.Account, v.Cents, v.Payments, b.recent.Get()))
	return nil
}
