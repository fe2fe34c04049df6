package matrix

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/twophase"
	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/internal/env"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/statebackend/heap"
	"github.com/flott-dev/flott/statebackend/pebble"
	"github.com/flott-dev/flott/stream"
)

// way is one of the ways in which state is kept and comes back.
type way struct {
	backend     int // index of keepings
	parallelism int // index of parallelisms: those of the stretches between restarts, in turn
	snapshot    int // index of snapshots
	settings    int // index of settings
}

// keeping is what keeps state.
type keeping struct {
	name     string
	backends []statebackend.Backend // those of the stretches between restarts, in turn
	// How windows are kept: the general way, with all state in the backend; in memory whatever the backend; else as the backend
	// has it, so that windows move from slices and sessions into tables and back.
	general, inMemory bool
}

func keepings() []keeping {
	memory, disk := heap.Backend{}, pebble.Backend{CacheBytes: 128 << 10}
	return []keeping{
		{name: "heap", backends: []statebackend.Backend{memory}},
		{name: "pebble", backends: []statebackend.Backend{disk}},
		{name: "pebble, windows in memory", backends: []statebackend.Backend{disk}, inMemory: true},
		{name: "heap and pebble in turn, windows in memory", backends: []statebackend.Backend{memory, disk}, inMemory: true},
		{name: "heap and pebble in turn", backends: []statebackend.Backend{memory, disk}},
		{name: "pebble and heap in turn, windows in the backend", backends: []statebackend.Backend{disk, memory}, general: true},
	}
}

func parallelisms() [][]int { return [][]int{{1}, {2}, {4}, {1, 4, 3, 1}} }

// How the job is taken up again after each step; the first is not at all.
func snapshots() []string {
	return []string{"none", "savepoint", "stop", "checkpoint", "incremental", "unaligned", "failure"}
}

// Settings that must make no difference.
func settings() []string { return []string{"plain", "no chains", "isolated", "general windows"} }

func (w way) String() string {
	return fmt.Sprintf("%s, parallelism %v, %s, %s", keepings()[w.backend].name, parallelisms()[w.parallelism], snapshots()[w.snapshot], settings()[w.settings])
}

// soakShare is how many ways each unit of FLOTT_SOAK beyond the first adds: at 50, which make soak has, all are taken.
const soakShare = 14

// ways are so many combinations that each pair of values comes together, and soakShare others, drawn by the seed, for each
// unit of soak beyond the first, as far as there are any.
func ways(soak int, seed uint64) []way {
	sizes := []int{len(keepings()), len(parallelisms()), len(snapshots()), len(settings())}
	var all [][]int
	for i := range sizes[0] * sizes[1] * sizes[2] * sizes[3] {
		v := make([]int, 4)
		for j, n := range sizes {
			v[j], i = i%n, i/n
		}
		if (way{v[0], v[1], v[2], v[3]}).possible() {
			all = append(all, v)
		}
	}
	chosen := cover(all)
	rest := slices.DeleteFunc(all, func(v []int) bool {
		return slices.ContainsFunc(chosen, func(c []int) bool { return slices.Equal(c, v) })
	})
	rand.New(rand.NewPCG(seed, 6)).Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	chosen = append(chosen, rest[:min(len(rest), soakShare*(soak-1))]...)
	var out []way
	for _, v := range chosen {
		out = append(out, way{v[0], v[1], v[2], v[3]})
	}
	return out
}

// possible says whether there is such a way: incremental checkpoints have files of their backend, which no other one reads.
func (w way) possible() bool {
	return len(keepings()[w.backend].backends) == 1 || snapshots()[w.snapshot] != "incremental"
}

// cover chooses the combinations greedily: next the one with most pairs that have not come yet.
func cover(all [][]int) (chosen [][]int) {
	seen := map[[4]int]bool{}
	fresh := func(v []int, mark bool) (n int) {
		for a := range v {
			for b := range a {
				if p := [4]int{a, v[a], b, v[b]}; !seen[p] {
					n++
					if mark {
						seen[p] = true
					}
				}
			}
		}
		return n
	}
	for {
		best := slices.MaxFunc(all, func(a, b []int) int { return fresh(a, false) - fresh(b, false) })
		if fresh(best, true) == 0 {
			return chosen
		}
		chosen = append(chosen, best)
	}
}

// loose says that watermarks may come later among the elements than they did: elements in flight are dealt out anew, and
// the watermarks among them wait for the slowest. Then nothing may be late, and timers that elements delete tell nothing.
func (w way) loose() bool {
	return snapshots()[w.snapshot] == "unaligned" && len(parallelisms()[w.parallelism]) > 1
}

// script is what the source does, with a pause after each step but the last; new each time, as pauses are used up.
func script(seed uint64, ordered bool) (s *flotttest.Script[Event], pauses []string) {
	rng := rand.New(rand.NewPCG(seed, 4))
	s = flotttest.NewScript[Event]()
	for _, k := range strings.Split("abcde", "") {
		s.EmitAt(Event{Key: k, N: rng.Int64N(100), Rule: true}, 0)
	}
	s.Watermark(1)
	now := int64(5)
	for step := range 4 {
		for range 60 {
			now += rng.Int64N(2)
			late := int64(0)
			if rng.IntN(10) == 0 && !ordered {
				late = rng.Int64N(now)
			}
			s.EmitAt(Event{Key: strings.ToUpper(string(rune('a' + rng.IntN(7)))), N: rng.Int64N(50), Late: late > 0}, now-late)
			if rng.IntN(12) == 0 {
				s.Watermark(now - 2)
			}
		}
		if step < 3 {
			pauses = append(pauses, strconv.Itoa(step))
			s.Pause(pauses[step])
		}
	}
	return s, pauses
}

// book is what the job has committed. It outlives the attempts.
type book struct {
	mu        sync.Mutex
	next      int
	pages     map[int][]string
	committed []string
}

func (b *book) Begin() (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	b.pages[b.next] = nil
	return b.next, nil
}

func (b *book) Write(page int, line string, _ connector.ElementContext) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pages[page] = append(b.pages[page], line)
	return nil
}

func (b *book) Prepare(int) error { return nil }

func (b *book) Commit(_ context.Context, page int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.committed = append(b.committed, b.pages[page]...)
	delete(b.pages, page)
	return nil
}

func (b *book) Abort(int) error { return nil }
func (b *book) Close() error    { return nil }

// play runs the script in a way and gives the results, sorted.
func play(t *testing.T, w way, seed uint64, ordered bool) []string {
	t.Helper()
	r := &run{T: t, way: w, seed: seed, ordered: ordered, disk: vfs.NewMem(), book: &book{pages: map[int][]string{}}}
	_, pauses := script(seed, ordered)
	from := ""
	if snapshots()[w.snapshot] == "none" {
		pauses = nil
	}
	for i := range len(pauses) + 1 {
		if from = r.stretch(i, from, pauses); from == finished {
			break
		}
	}
	return slices.Sorted(slices.Values(r.book.committed))
}

// finished is what a stretch gives that has run to the end.
const finished = "finished"

// run is a job that is taken up again several times.
type run struct {
	*testing.T
	way     way
	seed    uint64
	ordered bool
	disk    vfs.FS
	book    *book
}

// env is the environment of a stretch.
func (r *run) env(i int, from string) *stream.Env {
	kept := keepings()[r.way.backend]
	opts := []stream.Option{
		stream.WithBackends(kept.backends[i%len(kept.backends)]),
		func(s *env.Settings) { s.Checkpoints.FS = r.disk },
	}
	if from != "" {
		opts = append(opts, stream.WithSavepoint(from))
	}
	if settings()[r.way.settings] == "isolated" {
		opts = append(opts, stream.WithIsolation())
	}
	if kept.general || settings()[r.way.settings] == "general windows" {
		opts = append(opts, stream.WithGeneralWindows())
	}
	e := stream.NewEnv(opts...)
	if settings()[r.way.settings] == "no chains" {
		e.DisableOperatorChaining()
	}
	p := parallelisms()[r.way.parallelism]
	checkpoints := []stream.CheckpointOption{stream.ExternalizedCheckpoints(stream.RetainOnCancellation)}
	switch snapshots()[r.way.snapshot] {
	case "incremental":
		checkpoints = append(checkpoints, stream.IncrementalCheckpoints(true))
	case "unaligned":
		checkpoints = append(checkpoints, stream.EnableUnalignedCheckpoints())
	}
	e.SetParallelism(p[i%len(p)]).SetMaxParallelism(128).SetCheckpointStorage("/checkpoints").
		SetRestartStrategy(stream.FixedDelayRestart(3, time.Millisecond))
	if snapshots()[r.way.snapshot] != "savepoint" { // a checkpoint after it would commit what comes again
		e.EnableCheckpointing(10*time.Millisecond, checkpoints...)
	}
	return e
}

// stretch runs the job up to pause i, or to its end, and gives what the next stretch starts from.
func (r *run) stretch(i int, from string, pauses []string) string {
	r.Helper()
	e := r.env(i, from)
	s, names := script(r.seed, r.ordered)
	for n, name := range names {
		if n < i || len(pauses) == 0 {
			s.Resume(name)
		}
	}
	sink, err := twophase.New(func(connector.WriterContext) (twophase.Transactions[string, int], error) { return r.book, nil })
	if err != nil {
		r.Fatal(err)
	}
	fail := make(chan struct{})
	in := flotttest.FromScripts(e, s).UID("script")
	if snapshots()[r.way.snapshot] == "failure" {
		in = failing(in, fail)
	}
	build(in, keepings()[r.way.backend].inMemory).CommitTo(sink).UID("book")
	job, err := e.ExecuteAsync(r.Context(), "matrix")
	if err != nil {
		r.Fatal(err)
	}
	if i == len(pauses) {
		if _, err := job.Wait(); err != nil {
			r.Fatal(err)
		}
		return finished
	}
	s.Await(r, pauses[i])
	return r.leave(job, fail, s, pauses[i])
}

// failing fails once, when it is told to.
func failing(in *stream.Stream[Event], when <-chan struct{}) *stream.Stream[Event] {
	var once sync.Once
	return in.TryMap(func(_ context.Context, e Event) (_ Event, err error) {
		select {
		case <-when:
			once.Do(func() { err = fmt.Errorf("%v is told to fail", e) })
		default:
		}
		return e, err
	}).Parallelism(1).Name("failing")
}

// leave ends a job at a pause.
func (r *run) leave(job *stream.Job, fail chan struct{}, s *flotttest.Script[Event], pause string) (from string) {
	r.Helper()
	var err error
	switch snapshots()[r.way.snapshot] {
	case "savepoint":
		from, err = job.TriggerSavepoint(r.Context(), "/savepoints")
	case "stop":
		if from, err = job.StopWithSavepoint(r.Context(), "/savepoints", false); err == nil {
			_, err = job.Wait()
		}
		if err != nil {
			r.Fatal(err)
		}
		return from
	case "failure": // the job goes on by itself, and is left at its next checkpoint
		if _, err := job.TriggerCheckpoint(r.Context(), true); err != nil {
			r.Fatal(err)
		}
		before := job.Checkpoints().Counts.Restored
		close(fail)
		s.Resume(pause)
		for job.Checkpoints().Counts.Restored == before && !over(job.Status()) {
			time.Sleep(time.Millisecond)
		}
		if _, err := lastCheckpoint(r.Context(), job); err != nil {
			r.Log("the job went on to its end, which takes no checkpoint that is asked for: ", err)
		}
	default:
		_, err = job.TriggerCheckpoint(r.Context(), false)
	}
	if err != nil {
		r.Fatal(err)
	}
	job.Cancel()
	if _, err := job.Wait(); err == nil {
		return finished
	}
	if from == "" {
		from = r.retained(job.ID())
	}
	return from
}

// checkpointed is what lastCheckpoint needs of a job.
type checkpointed interface {
	TriggerCheckpoint(ctx context.Context, full bool) (int64, error)
	Status() string
}

// lastCheckpoint takes a checkpoint of a job that may be restarting, or at its end. A refused one says nothing about the job:
// that may be running again when it is looked at. So it is asked for until there is one or the job is over.
func lastCheckpoint(ctx context.Context, job checkpointed) (id int64, err error) {
	for {
		if id, err = job.TriggerCheckpoint(ctx, false); err == nil {
			return id, nil
		}
		if over(job.Status()) || ctx.Err() != nil {
			return 0, err
		}
		time.Sleep(time.Millisecond)
	}
}

// over says whether a job in a state stays in it.
func over(state string) bool { return state == "FINISHED" || state == "FAILED" || state == "CANCELED" }

// retained is the checkpoint that a job has left.
func (r *run) retained(id string) string {
	r.Helper()
	s, err := checkpoint.OpenStorage(r.disk, path.Join("/checkpoints", id))
	if err != nil {
		r.Fatal(err)
	}
	m, err := s.Latest()
	if err != nil || m == nil {
		r.Fatal("no checkpoint is retained: ", err)
	}
	return m.Folder
}

// Whatever keeps the state of a job, and however it comes back, its results are those of the job that nobody disturbs.
func TestStateComesBackInEveryWay(t *testing.T) {
	soak, seed := int(setting(t, "FLOTT_SOAK")), setting(t, "FLOTT_SEED")
	want := map[bool][]string{}
	for _, ordered := range []bool{false, true} {
		if want[ordered] = play(t, way{}, seed, ordered); len(want[ordered]) < 500 {
			t.Fatalf("%d results only: %q", len(want[ordered]), want[ordered])
		}
	}
	for _, w := range ways(soak, seed) {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel() // jobs wait for the disk most of the time
			got, want := play(t, w, seed, w.loose()), want[w.loose()]
			if w.loose() {
				got, want = withoutTimers(got), withoutTimers(want)
			}
			if !slices.Equal(got, want) {
				report(t, got, want)
			}
		})
	}
}

// setting is a number of the environment; without it 1.
func setting(t *testing.T, name string) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return 1
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n == 0 {
		t.Fatalf("%s is %q, which is no positive number", name, text)
	}
	return n
}

// TestSoakTakesEveryWay checks which ways are tried: each pair of values at first, all of them in a night, none twice.
func TestSoakTakesEveryWay(t *testing.T) {
	all := 0
	for range keepings() {
		for range parallelisms() {
			all += len(snapshots()) * len(settings())
		}
	}
	for b := range keepings() {
		for s := range snapshots() {
			if !(way{backend: b, snapshot: s}).possible() {
				all -= len(parallelisms()) * len(settings())
			}
		}
	}
	first := len(ways(1, 1))
	for soak, want := range map[int]int{1: first, 2: first + soakShare, 50: all} {
		seen := map[way]bool{}
		for _, w := range ways(soak, 7) {
			seen[w] = true
		}
		if n := len(ways(soak, 7)); n != want || len(seen) != n {
			t.Errorf("FLOTT_SOAK=%d: %d ways, %d different ones, want %d", soak, n, len(seen), want)
		}
	}
}

// TestRefusedCheckpointsAreAskedForAgain is of a job that runs again by the time that its state is looked at.
func TestRefusedCheckpointsAreAskedForAgain(t *testing.T) {
	if id, err := lastCheckpoint(t.Context(), &refusing{refusals: 2, states: []string{"RUNNING", "RESTARTING"}}); id != 9 || err != nil {
		t.Errorf("checkpoint %d, %v", id, err)
	}
	if _, err := lastCheckpoint(t.Context(), &refusing{refusals: 5, states: []string{"RUNNING", "FINISHED"}}); err == nil {
		t.Error("no error although the job has finished")
	}
}

// refusing is a job that refuses checkpoints at first.
type refusing struct {
	refusals int
	states   []string // after each refusal
}

func (r *refusing) TriggerCheckpoint(context.Context, bool) (int64, error) {
	if r.refusals--; r.refusals < 0 {
		return 9, nil
	}
	return 0, fmt.Errorf("refused, %d more", r.refusals)
}

func (r *refusing) Status() (state string) {
	state, r.states = r.states[0], r.states[1:]
	return state
}

func withoutTimers(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(s string) bool { return strings.HasPrefix(s, "timers:") })
}

// report tells the first results that differ.
func report(t *testing.T, got, want []string) {
	t.Helper()
	count := map[string]int{}
	for _, x := range got {
		count[x]++
	}
	for _, x := range want {
		count[x]--
	}
	t.Errorf("%d results, want %d", len(got), len(want))
	shown := 0
	for x, n := range count {
		if n != 0 && shown < 10 {
			shown++
			t.Errorf("%q is there %+d times too often", x, n)
		}
	}
}

func TestMain(m *testing.M) { os.Exit(flotttest.CheckLeaks(m)) }
