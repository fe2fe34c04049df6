package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/stream"
)

// account is the state of a key: 96 bytes, all of which are used in time.
type account struct {
	Count uint64
	Notes [11]uint64
}

// accountBytes is the size of a key and its state.
const accountBytes = 8 + 96

// note is what is written into an account.
func note(key, count uint64) uint64 { return scramble(key ^ count<<32) }

// ledger counts touches. It looks whether each account holds what was written into it.
type ledger struct {
	process.NoTimers[uint64, touched]
	account *state.Value[account]
}

func newLedger(rt *process.Runtime) *ledger {
	return &ledger{account: state.NewValue[account](rt, "account")}
}

func (l *ledger) ProcessElement(ctx *process.KeyedContext[uint64], t touch, out *process.Collector[touched]) error {
	var lost bool
	l.account.Update(func(a *account) {
		if lost = !a.touch(t.Key); !lost {
			out.Collect(touched{t.Key, a.Count, t.At})
		}
	})
	if lost {
		return errLost(ctx.Key())
	}
	return nil
}

// touch counts a touch of the account of a key, if it holds what was written into it.
func (a *account) touch(key uint64) bool {
	if a.Count > 0 && a.Notes[a.Count%uint64(len(a.Notes))] != note(key, a.Count) {
		return false
	}
	a.Count++
	a.Notes[a.Count%uint64(len(a.Notes))] = note(key, a.Count)
	return true
}

func errLost(key uint64) error {
	return fmt.Errorf("look into the account of key %d: it does not hold what was written", key)
}

// counter counts touches in a state of one word.
type counter struct {
	process.NoTimers[uint64, touched]
	n *state.Value[uint64]
}

func newCounter(rt *process.Runtime) *counter {
	return &counter{n: state.NewValue[uint64](rt, "n")}
}

func (c *counter) ProcessElement(_ *process.KeyedContext[uint64], t touch, out *process.Collector[touched]) error {
	c.n.Update(func(n *uint64) {
		*n++
		out.Collect(touched{t.Key, *n, t.At})
	})
	return nil
}

const stateWorkers = 2

// stateJob is a job of the suite state while it runs.
type stateJob struct {
	name     string
	interval time.Duration // of checkpoints; 0: there are none
	folder   string        // of what it writes
	feed     *feed
	out      *meters
	files    *timedFiles                         // where elements go; nil: to out
	wire     func(*stream.Stream[touch])         // what else is done with touches; nil: accounts are kept
	written  atomic.Uint64                       // elements, into files
	flows    bool                                // elements are due
	small    bool                                // count in states of one word
	own      func(*process.Runtime) *plainLedger // keep accounts past the backend; nil: in it
	layered  bool                                // checkpoints of changes lie on those of all the state
	before   uint64
	options  []stream.Option
	how      []stream.CheckpointOption
	backend  statebackend.Backend // nil: heap
	job      *stream.Job
}

func newStateJob(name string, interval time.Duration, folder string, keys int, pick func(uint64) uint64) *stateJob {
	f := newFeed(keys, pick)
	return &stateJob{name: name, interval: interval, folder: folder, feed: f, out: newMeters(f, stateWorkers)}
}

// start begins to run the job. The UID of the source has the name of the job in it: another job that goes on with its state has a
// source that begins anew.
func (j *stateJob) start(ctx context.Context) error {
	env := stream.NewEnv(j.options...).SetParallelism(stateWorkers)
	if j.interval > 0 {
		env.EnableCheckpointing(j.interval, j.how...).SetCheckpointStorage(j.folder)
	}
	if j.backend != nil {
		env.SetStateBackend(j.backend)
	}
	touches := env.FromSource(j.feed, "Touches").UID("touches of " + j.name)
	if j.wire != nil {
		j.wire(touches)
	} else {
		j.keep(touches)
	}
	job, err := env.ExecuteAsync(ctx, j.name)
	j.job = job
	return err
}

// keep keeps accounts of touches.
func (j *stateJob) keep(touches *stream.Stream[touch]) {
	keyed := touches.KeyBy(func(t touch) uint64 { return t.Key })
	var counted *stream.Stream[touched]
	switch {
	case j.small:
		counted = keyed.Process[*counter, touched](newCounter)
	case j.own != nil:
		counted = keyed.Process[*plainLedger, touched](j.own)
	default:
		counted = keyed.Process[*ledger, touched](newLedger)
	}
	counted.UID("ledger")
	if j.files != nil {
		j.files.wire(counted)
	} else {
		counted.SinkTo(j.out)
	}
}

// run runs the job, calls f when each key has its state, ends the job and checks its answer: the number of its elements
// and their digest.
func (j *stateJob) run(ctx context.Context, f func(context.Context) error) (n, digest uint64, err error) {
	_, err = j.runUnchecked(ctx, func(ctx context.Context) error {
		if err := j.until(ctx, func() bool { return j.brought() >= j.feed.keys }); err != nil {
			return err
		}
		return f(ctx)
	})
	if err != nil {
		return 0, 0, err
	}
	return j.check()
}

// runUnchecked runs the job, calls f meanwhile, and gives the number of elements that were fed.
func (j *stateJob) runUnchecked(ctx context.Context, f func(context.Context) error) (n uint64, err error) {
	if err = j.start(ctx); err != nil {
		return 0, err
	}
	err = f(ctx)
	j.out.limit(0)
	j.feed.end()
	if err != nil {
		j.job.Cancel()
	}
	if _, e := j.job.Wait(); err == nil || e != nil && !errors.Is(e, stream.ErrCanceled) {
		err = errors.Join(err, e)
	}
	return j.feed.sent.Load(), err
}

// brought is how many elements have come out.
func (j *stateJob) brought() uint64 {
	n, _ := j.out.total()
	return n + j.written.Load()
}

// check compares what came out with what was fed.
func (j *stateJob) check() (n, digest uint64, err error) {
	fed, want := j.feed.answer(j.before)
	if j.files != nil { // which are read elsewhere
		return fed, want, nil
	}
	if n, digest = j.out.total(); n != fed || digest != want {
		err = fmt.Errorf("compare the results of job %q: %d elements with digest %d, want %d with %d", j.name, n, digest, fed, want)
	}
	return n, digest, err
}

// until waits for something to become true, or for the job's end.
func (j *stateJob) until(ctx context.Context, done func() bool) error {
	for !done() {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		case <-j.job.Done():
			_, err := j.job.Wait()
			return errors.Join(fmt.Errorf("wait for job %q: it has ended", j.name), err)
		}
	}
	return nil
}

// observed are the figures of a stretch of time of a running job.
type observed struct {
	outputs
	n          float64 // elements that came out
	rate       float64 // of them per second
	cpu        float64 // seconds of all processors per element
	busy       float64 // processors, on average
	changes    float64 // elements per second before the first checkpoint of all the state, where others are of changes; 0: not known
	checkpoint times   // durations of those that began and ended meanwhile
	whole      times   // of those among them that hold all the state of some subtask, where others are of changes
	still      times   // how long the subtask that stood still longest did, in each
	cycle      times   // from the trigger of one to that of the next
	bytes      int64   // of the largest one
	peak       float64 // of memory held from the system
}

const (
	// patience is how long one waits for more than one checkpoint.
	patience = 40 * time.Second
	// chainPatience is how long one waits for the end of a chain of checkpoints, at full size.
	chainPatience = 3 * time.Minute
)

// observe looks at the job for a time, and for as long as it takes to see an element, if any are due, and so many checkpoints
// from trigger to end, or at least one when patience is at its end. Where there are checkpoints of changes it looks until each
// subtask has ended a chain of them by one of all the state: who begins when the last chains have just ended sees exactly one.
func (j *stateJob) observe(ctx context.Context, d time.Duration, checkpoints int) (o observed, err error) {
	book := newCheckpointBook(j.layered)
	book.running = j.layered
	most := patience
	if j.layered {
		most = chainPatience
	}
	stop := watchMemory(&o.peak)
	from := j.out.begin(checkpoints > 0) + j.written.Load()
	start, cpu := time.Now(), cpuSeconds()
	err = j.until(ctx, func() bool {
		if checkpoints > 0 {
			book.read(j.job, j.brought())
		}
		over, seen := time.Since(start), len(book.seen)
		return over >= d && (seen >= checkpoints && book.chained() || seen > 0 && over >= most) && (!j.flows || j.brought() > from)
	})
	o.outputs = j.out.end()
	o.n = float64(j.brought() - from)
	took, used := time.Since(start).Seconds(), cpuSeconds()-cpu
	o.rate, o.cpu, o.busy = o.n/took, ratio(used, o.n), used/took
	stop()
	book.tell(&o)
	return o, err
}

// watchMemory keeps the most memory that the process holds until what it returns is called.
func watchMemory(peak *float64) (stop func()) {
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTicker(5 * time.Millisecond)
		defer t.Stop()
		for {
			*peak = max(*peak, mapped())
			select {
			case <-t.C:
			case <-over:
				return
			}
		}
	})
	return func() {
		close(over)
		wg.Wait()
	}
}

// settle collects garbage and returns the memory that is held then.
func settle() float64 {
	runtime.GC()
	debug.FreeOSMemory()
	return mapped()
}

// checkpointBook keeps the checkpoints that began after a time and are complete, and how far the job had come at times.
type checkpointBook struct {
	from    int64 // ms since 1970
	layered bool  // most are of changes
	running bool  // those that were under way at the time count, too
	last    time.Time
	seen    map[int64]seenCheckpoint
	course  []progress
}

// progress is how far a job had come at a time.
type progress struct {
	at int64 // ms since 1970
	n  uint64
}

type seenCheckpoint struct {
	took, still    time.Duration
	trigger, bytes int64 // ms since 1970
	whole          []int // subtasks with all of their state in it, and not only changes
}

func newCheckpointBook(layered bool) *checkpointBook {
	return &checkpointBook{from: time.Now().UnixMilli(), layered: layered, seen: map[int64]seenCheckpoint{}}
}

// read looks into the history of a job that has brought n elements, not too often. It does not reach far back.
func (b *checkpointBook) read(j *stream.Job, n uint64) {
	if time.Since(b.last) < 50*time.Millisecond {
		return
	}
	b.last = time.Now()
	b.course = append(b.course, progress{b.last.UnixMilli(), n})
	for _, c := range j.Checkpoints().History {
		if c.Status != stream.CheckpointCompleted {
			continue
		}
		if c.Trigger >= b.from || b.running && c.Trigger+c.Duration.Milliseconds() > b.from {
			b.seen[c.ID] = seeCheckpoint(&c)
		}
	}
}

// seeCheckpoint notes a checkpoint. The vertex with the most state is the one whose subtasks are looked at.
func seeCheckpoint(c *stream.CheckpointStatistics) seenCheckpoint {
	seen := seenCheckpoint{took: c.Duration, trigger: c.Trigger, bytes: c.CheckpointedSize}
	var most int64
	for _, v := range c.Vertices {
		var size int64
		var whole []int
		for i, s := range v.Subtasks {
			seen.still = max(seen.still, s.Sync)
			if size += s.StateSize; s.CheckpointedSize == s.StateSize {
				whole = append(whole, i)
			}
		}
		if size > most {
			most, seen.whole = size, whole
		}
	}
	return seen
}

// chained says whether each subtask has had a checkpoint of all its state; true if none is of changes.
func (b *checkpointBook) chained() bool {
	if !b.layered {
		return true
	}
	subtasks := map[int]bool{}
	for _, c := range b.seen {
		for _, s := range c.whole {
			subtasks[s] = true
		}
	}
	return len(subtasks) == stateWorkers
}

// calm is how many elements came per second before the first checkpoint of all the state of some subtask; 0: there is none.
func (b *checkpointBook) calm() float64 {
	first := int64(math.MaxInt64)
	for _, c := range b.seen {
		if len(c.whole) > 0 {
			first = min(first, c.trigger)
		}
	}
	end := slices.IndexFunc(b.course, func(p progress) bool { return p.at > first }) - 1
	if end < 1 {
		return 0
	}
	return float64(b.course[end].n-b.course[0].n) / float64(b.course[end].at-b.course[0].at) * 1000
}

func (b *checkpointBook) tell(o *observed) {
	if b.layered {
		o.changes = b.calm()
	}
	for id, c := range b.seen {
		if b.layered && len(c.whole) > 0 {
			o.whole = append(o.whole, c.took)
		}
		o.checkpoint, o.still = append(o.checkpoint, c.took), append(o.still, c.still)
		o.bytes = max(o.bytes, c.bytes)
		if next, ok := b.seen[id+1]; ok {
			o.cycle = append(o.cycle, time.Duration(next.trigger-c.trigger)*time.Millisecond)
		}
	}
}

// times are durations of the same thing.
type times []time.Duration

// median is the middle one; 0: there is none.
func (t times) median() time.Duration {
	if len(t) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(t))[len(t)/2]
}

// longest is the largest; 0: there is none.
func (t times) longest() time.Duration {
	if len(t) == 0 {
		return 0
	}
	return slices.Max(t)
}
