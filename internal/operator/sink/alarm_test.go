package sink

import (
	"errors"
	"fmt"
	"testing"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
)

// clockLog is a log whose writer is called at times.
type clockLog struct {
	book
	next int64 // what OnTime returns
}

func (l *clockLog) Writer(ctx connector.WriterContext) (connector.Writer[int64], error) {
	return &clockWriter{bookWriter{b: &l.book}, l}, l.note("open", "open")
}

type clockWriter struct {
	bookWriter
	l *clockLog
}

func (w *clockWriter) OnTime(now int64) (int64, error) {
	return w.l.next, w.l.note("time", fmt.Sprint("time ", now))
}

// at lets the time become now, as the task does it.
func at(t *testing.T, rt *operator.Runtime, now int64) {
	t.Helper()
	rt.Now = now
	kit.Must(t, rt.Timers.Run(now-1))
}

func TestWritersAreCalledAtTheTimesThatTheyNamed(t *testing.T) {
	for name, committing := range map[string]bool{"writer": false, "committing": true} {
		t.Run(name, func(t *testing.T) {
			l := &clockLog{next: 150}
			rt := kit.Runtime()
			rt.Now = 100
			rt.FinalCheckpoint = true
			op := Writer(kit.TypeOf[int64](t), l)
			if committing {
				op = Committing(kit.TypeOf[int64](t), pages(t), l)
			}
			kit.Must(t, op.Open(rt))
			l.lines = nil
			at(t, rt, 100)
			l.want(t, "time 100")
			at(t, rt, 149)
			l.want(t)
			l.next = 0 // not again
			at(t, rt, 151)
			l.want(t, "time 151")
			at(t, rt, 1000)
			l.want(t)
			// Each Flush makes it be called again, and what was set before is forgotten.
			for range 2 {
				l.next = 3000
				snapshot(t, op, 1)
				l.lines = nil
				at(t, rt, rt.Now+1)
				l.want(t, fmt.Sprint("time ", rt.Now))
			}
			at(t, rt, 3000)
			l.want(t, "time 3000")
			// It is not called after the end.
			snapshot(t, op, 2)
			kit.Must(t, op.Inputs()[0].Mark(kit.End()))
			snapshot(t, op, 3)
			l.lines = nil
			at(t, rt, 10_000)
			l.want(t)
			kit.Must(t, op.Close())
		})
	}
}

func TestErrorsOfWritersThatAreDueFailTheTask(t *testing.T) {
	own := errors.New("own")
	l := &clockLog{book: book{log: log{fail: map[string]error{"time": own}}}}
	rt := kit.Runtime()
	op := Writer(kit.TypeOf[int64](t), l)
	kit.Must(t, op.Open(rt))
	rt.Now = 1
	if err := rt.Timers.Run(0); !errors.Is(err, own) {
		t.Errorf("got %v", err)
	}
	kit.Must(t, op.Close())
}
