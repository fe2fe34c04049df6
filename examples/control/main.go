// Command control judges payments by limits that a control stream changes while the job runs. The limits are broadcast:
// every subtask keeps all of them in broadcast state, and has the payments of its accounts in keyed state.
//
// Nothing is promised about the order in which elements of two streams arrive. So each payment waits, in state, for a
// timer at its own event time: when it fires, both streams have come as far, and the limits of that time are known. The
// answer is the same however fast the two streams are.
//
//	go run ./examples/control [-parallelism n]
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

// Payment is an element of the main stream.
type Payment struct {
	At      int64 // ms
	Account string
	Kind    string
	Amount  int
}

// Limit is an element of the control stream: from a time on, payments of a kind may not be greater than Max.
type Limit struct {
	At   int64 // ms
	Kind string
	Max  int
}

func main() {
	parallelism := flag.Int("parallelism", 2, "subtasks of each operator")
	flag.Parse()
	payments := []Payment{
		{1000, "ann", "card", 80},
		{2000, "bob", "card", 250},
		{3000, "ann", "transfer", 9000},
		{4000, "bob", "card", 90},
		{5000, "ann", "card", 101},
		{5000, "bob", "cash", 1 << 20},
		{6000, "bob", "transfer", 5001},
	}
	control := []Limit{
		{0, "card", 200}, {3500, "card", 100}, {3600, "transfer", 5000},
	}
	if err := run(context.Background(), payments, control, *parallelism, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run writes a line for each payment that is above the limit of its time.
func run(ctx context.Context, payments []Payment, control []Limit, parallelism int, out io.Writer, opts ...stream.Option) error {
	env := stream.NewEnv(opts...).SetParallelism(parallelism)
	limits := state.NewBroadcast[string, []Limit]("limits") // of each kind of payment, in the order of their times
	rules := env.FromSlice(control).Name("Limits").
		AssignAscendingTimestamps(func(l Limit) time.Time { return time.UnixMilli(l.At) }).
		BroadcastState(limits)
	env.FromSlice(payments).Name("Payments").
		AssignAscendingTimestamps(func(p Payment) time.Time { return time.UnixMilli(p.At) }).
		KeyBy(func(p Payment) string { return p.Account }).
		ConnectBroadcast(rules).
		Process(func(rt *process.Runtime) *judge { return newJudge(rt, limits) }).UID("judge").
		PrintTo(out).Parallelism(1)
	_, err := env.Execute(ctx, "control")
	return err
}

// judge finds the payments that are above their limit.
type judge struct {
	limits  *state.BroadcastDescriptor[string, []Limit]
	waiting *state.Map[int64, []Payment] // of the account at hand, by time
}

func newJudge(rt *process.Runtime, limits *state.BroadcastDescriptor[string, []Limit]) *judge {
	return &judge{limits: limits, waiting: state.NewMap[int64, []Payment](rt, "waiting")}
}

// ProcessElement lets the payment wait for its time.
func (j *judge) ProcessElement(ctx *process.KeyedReadOnlyContext[string], p Payment, _ *process.Collector[string]) error {
	j.waiting.Put(p.At, append(j.waiting.Get(p.At), p))
	ctx.RegisterTimer(process.EventTime, p.At)
	return nil
}

// ProcessBroadcastElement runs in every subtask and must come to the same state in all of them, although limits that took
// different ways may arrive in different order: so they are sorted.
func (j *judge) ProcessBroadcastElement(ctx *process.KeyedBroadcastContext[string], l Limit, _ *process.Collector[string]) error {
	s := ctx.BroadcastState(j.limits)
	all := append(s.Get(l.Kind), l)
	slices.SortFunc(all, func(a, b Limit) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Max, b.Max)) })
	s.Put(l.Kind, all)
	return nil
}

// OnTimer judges the payments of a time.
func (j *judge) OnTimer(ctx *process.KeyedReadOnlyContext[string], t process.Timer, out *process.Collector[string]) error {
	for _, p := range j.waiting.Get(t.Millis) {
		for _, l := range slices.Backward(ctx.BroadcastState(j.limits).Get(p.Kind)) {
			if l.At > p.At {
				continue // came later
			}
			if p.Amount > l.Max {
				out.Collect(fmt.Sprintf("%s %s of %d at %d ms: limit %d", p.Account, p.Kind, p.Amount, p.At, l.Max))
			}
			break
		}
	}
	j.waiting.Remove(t.Millis)
	return nil
}
