package iterate

import (
	"errors"
	"fmt"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/vfs"
)

// round is a loop of numbers with its two ends in one subtask.
type round struct {
	t          *testing.T
	head, tail operator.Operator
	out        *kit.Recorder
	rt         *operator.Runtime
}

// newRound opens a loop whose process has that much memory.
func newRound(t *testing.T, memory int64, restored *operator.Restored) *round {
	t.Helper()
	typ := typeOf[int64](t)
	loop := NewLoop(Options{Memory: 1 << 20, FS: vfs.NewMem(), Dir: func() string { return "/spill" }})
	r := &round{t: t, head: Head(loop, typ, typ), tail: Tail(loop, typ), rt: kit.Runtime()}
	r.rt.Memory, r.rt.Restored = host.NewMemory(memory), restored
	r.rt.ToCoordinator = func([]byte) {}
	r.out = kit.Record(t, r.head.Output(""), r.rt)
	kit.Must(t, r.tail.Open(r.rt))
	return r
}

// open opens the head.
func (r *round) open() {
	r.t.Helper()
	kit.Must(r.t, r.head.Open(r.rt))
}

func (r *round) close() {
	r.t.Helper()
	kit.Must(r.t, r.head.Close())
	kit.Must(r.t, r.tail.Close())
}

// back feeds elements back.
func (r *round) back(xs ...int64) {
	r.t.Helper()
	kit.Must(r.t, r.tail.Inputs()[0].Push(kit.Run(r.t, nil, xs...)))
}

// snapshot sends a barrier into the loop, takes the snapshot behind it and says what became of that.
func (r *round) snapshot(id int64, stops bool) (s *operator.Snapshot, fate *error) {
	r.t.Helper()
	kit.Must(r.t, r.head.Inputs()[0].Mark(frame.Mark{Kind: frame.Barrier, Value: id}))
	fate = new(error)
	*fate = errPending
	s = &operator.Snapshot{ID: id, Stops: stops}
	kit.Must(r.t, r.head.(operator.Snapshotter).Snapshot(s))
	s.Complete = func() { *fate = nil }
	s.Fail = func(err error) { *fate = err }
	return s, fate
}

// returns has a barrier come back.
func (r *round) returns(id int64) {
	r.t.Helper()
	kit.Must(r.t, r.tail.Inputs()[0].Mark(frame.Mark{Kind: frame.Barrier, Value: id}))
}

// work has the head do all that there is to do.
func (r *round) work() {
	r.t.Helper()
	for {
		status, err := r.head.(operator.Looper).Work()
		kit.Must(r.t, err)
		if status != operator.More {
			return
		}
	}
}

var errPending = errors.New("nothing has become of the snapshot yet")

// wants compares what the head has emitted, without barriers.
func (r *round) wants(texts ...string) {
	r.t.Helper()
	var got []string
	for _, x := range r.out.Got {
		if len(x) > 0 && x[0] >= '0' && x[0] <= '9' {
			got = append(got, x)
		}
	}
	r.out.Got = got
	r.out.Want(r.t, texts...)
}

// The log of a snapshot is of the process's budget, until the snapshot is written or given up.
func TestLogsOfFeedbackAreOfTheBudget(t *testing.T) {
	for _, end := range []string{"written", "aborted", "cancelled"} {
		r := newRound(t, 0, nil)
		r.open()
		s, fate := r.snapshot(1, false)
		r.back(1, 2)
		r.work()
		spooled := r.rt.Memory.Used() // the lane keeps an empty frame; the log has begun
		r.back(3)
		r.work()
		one := r.rt.Memory.Used() - spooled
		if one <= 0 {
			t.Errorf("%s: an element of the log takes %d bytes", end, one)
		}
		switch end {
		case "written":
			r.returns(1)
			r.work()
			if *fate != nil || len(s.Lists) != 1 || len(s.Lists[0].Items) != 2 {
				t.Fatalf("%v, lists %v", *fate, s.Lists)
			}
			logged := int64(len(s.Lists[0].Items[0]) + len(s.Lists[0].Items[1]))
			before := r.rt.Memory.Used()
			if s.Release(); before-r.rt.Memory.Used() != logged {
				t.Errorf("%d bytes came back of %d", before-r.rt.Memory.Used(), logged)
			}
		case "aborted":
			before := r.rt.Memory.Used()
			kit.Must(t, r.head.(operator.CheckpointListener).CheckpointAborted(1))
			if r.rt.Memory.Used() >= before {
				t.Error("nothing came back")
			}
		}
		r.close()
		if used := r.rt.Memory.Used(); used != 0 {
			t.Errorf("%s: %d bytes are taken at the end", end, used)
		}
	}
}

// A log that finds no memory makes its snapshot fail when the barrier is back; the loop goes on, and takes others.
func TestSnapshotsFailWhoseLogsFindNoMemory(t *testing.T) {
	r := newRound(t, 1<<20, nil)
	r.open()
	r.back(1)
	r.work() // the lane has its frame
	rest := 1<<20 - r.rt.Memory.Used()
	kit.Must(t, r.rt.Memory.Reserve(rest))
	s, fate := r.snapshot(1, false)
	r.back(2)
	r.work()
	if *fate != errPending {
		t.Errorf("the snapshot is over before the barrier: %v", *fate)
	}
	r.rt.Memory.Release(rest)
	r.back(3) // too late: the log is not whole
	r.returns(1)
	r.work()
	if *fate == nil || *fate == errPending || len(s.Lists) != 0 {
		t.Errorf("%v, lists %v", *fate, s.Lists)
	}
	if used := r.rt.Memory.Used(); used != 1<<20-rest {
		t.Errorf("%d bytes are taken after that, %d before", used, 1<<20-rest)
	}
	_, fate = r.snapshot(2, false)
	r.returns(2)
	r.work()
	if *fate != nil {
		t.Error(*fate)
	}
	r.wants("1", "2", "3")
	r.close()
}

// What comes back while the job is being stopped is kept, in the budget, for the case that it is not. Without memory it is
// not stopped.
func TestFeedbackIsKeptWhileAJobIsStopped(t *testing.T) {
	for _, enough := range []bool{true, false} {
		r := newRound(t, 1<<20, nil)
		r.open()
		r.back(1)
		r.work()
		rest := 1<<20 - r.rt.Memory.Used()
		if !enough {
			kit.Must(t, r.rt.Memory.Reserve(rest))
		}
		before := r.rt.Memory.Used()
		s, fate := r.snapshot(1, true)
		r.back(2)
		r.work()
		if enough {
			r.wants("1")
			if r.rt.Memory.Used() <= before {
				t.Error("what is kept takes nothing")
			}
		} else {
			r.wants("1", "2")
		}
		r.returns(1)
		r.work()
		if failed := *fate != nil; failed == enough || *fate == errPending {
			t.Errorf("enough memory: %v, the savepoint: %v", enough, *fate)
		}
		kit.Must(t, r.head.(operator.CheckpointListener).CheckpointAborted(1))
		s.Release()
		r.work()
		if enough {
			r.wants("2")
		}
		if used := r.rt.Memory.Used(); used != before {
			t.Errorf("enough memory: %v: %d bytes are taken, %d before", enough, used, before)
		}
		r.close()
	}
}

// Feedback of a snapshot is of the budget until it is fed back; where it finds no room, the task can't begin.
func TestRestoredFeedbackIsOfTheBudget(t *testing.T) {
	r := newRound(t, 0, nil)
	r.open()
	s, _ := r.snapshot(1, false)
	r.back(1, 2)
	r.work()
	r.returns(1)
	r.work()
	r.close()
	restored := &operator.Restored{Lists: s.Lists}

	r = newRound(t, 0, restored)
	r.open()
	if r.rt.Memory.Used() == 0 {
		t.Error("what was restored takes nothing")
	}
	r.work()
	r.wants("1", "2")
	if used := r.rt.Memory.Used(); used != 0 {
		t.Errorf("%d bytes are taken after that", used)
	}
	r.close()

	r = newRound(t, 1, restored)
	if err := r.head.Open(r.rt); err == nil {
		t.Error("feedback was restored beyond the budget")
	}
	r.close()
}

// again is a round that goes on from a snapshot, one element at a time.
func (r *round) again(s *operator.Snapshot) *round {
	r.t.Helper()
	r.close()
	next := newRound(r.t, 0, &operator.Restored{Lists: s.Lists})
	next.rt.RunLen = 1
	next.open()
	return next
}

// step has the head do the next thing that there is to do.
func (r *round) step() {
	r.t.Helper()
	_, err := r.head.(operator.Looper).Work()
	kit.Must(r.t, err)
}

// A snapshot has what is left of the feedback at work, and what an older one had that was not fed back yet.
func TestSnapshotsHaveTheFeedbackAtWork(t *testing.T) {
	r := newRound(t, 0, nil)
	r.rt.RunLen = 1
	r.open()
	r.back(1, 2, 3)
	r.step()
	r.wants("1")
	s, _ := r.snapshot(1, false)
	r.returns(1)
	r.work()
	r.wants("2", "3")

	r = r.again(s)
	untouched, _ := r.snapshot(2, false)
	r.step()
	r.wants("2")
	begun, _ := r.snapshot(3, false)
	r.returns(2)
	r.returns(3)
	r.work()
	r.wants("3")

	r = r.again(untouched)
	r.work()
	r.wants("2", "3")
	r = r.again(begun)
	r.work()
	r.wants("3")
	r.close()
}

// A probe that is back tells whether anything was fed back since it was sent.
func TestProbesTellWhetherTheLoopIsEmpty(t *testing.T) {
	r := newRound(t, 0, nil)
	var told []string
	r.rt.ToCoordinator = func(event []byte) {
		kind, n, err := decodeEvent(event)
		kit.Must(t, err)
		told = append(told, fmt.Sprint(map[byte]string{eventClean: "clean ", eventDirty: "dirty "}[kind], n))
	}
	r.open()
	for round, elements := range [][]int64{{1}, nil, {2, 3}, nil} {
		n := int64(round + 1)
		kit.Must(t, r.head.(operator.EventReceiver).HandleEvent(encodeEvent(eventProbe, n)))
		r.work()
		if len(elements) > 0 {
			r.back(elements...)
		}
		kit.Must(t, r.tail.Inputs()[0].Mark(frame.Mark{Kind: frame.Probe, Value: n}))
		r.work()
	}
	if got, want := fmt.Sprint(told), "[dirty 1 clean 2 dirty 3 clean 4]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	r.close()
}
