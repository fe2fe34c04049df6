package windowing

import (
	"testing"

	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/window"
)

func TestTumblingWindowsFireAtTheirEnd(t *testing.T) {
	d := Definition[event, window.Time]{Assigner: tumbling(10)}
	for name, c := range map[string]struct {
		op   operator.Operator
		want []string
	}{
		"aggregate": {Aggregate(specOf[string](t), d, sums(t)), []string{"a [0,10) 3@9", "b [0,10) 5@9"}},
		"aggregate with a process function": {
			AggregateProcess(specOf[string](t), d, sums(t),
				func(acc *int64) int64 { return *acc },
				func(*window.Runtime) window.Function[string, int64, window.Time, string] { return listing[int64]{} }),
			[]string{"a [0,10) [3]@9", "b [0,10) [5]@9"},
		},
		"process": {
			Process(specOf[string](t), d,
				func(*window.Runtime) window.Function[string, event, window.Time, string] { return listing[event]{} }),
			[]string{"a [0,10) [{a 1} {a 2}]@9", "b [0,10) [{b 5}]@9"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, _ := kit.Open(t, c.op)
			push(t, c.op, []int64{3, 5, 9, 10}, event{"a", 1}, event{"b", 5}, event{"a", 2}, event{"a", 100})
			out.Want(t)
			mark(t, c.op, 8)
			out.Want(t, "watermark 8")
			mark(t, c.op, 9)
			out.Want(t, append(c.want, "watermark 9")...)
			push(t, c.op, []int64{2}, event{"a", 7})
			mark(t, c.op, 18)
			out.Want(t, "watermark 18")
		})
	}
}
