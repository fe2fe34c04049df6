package task

import (
	"testing"

	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/frame"
)

// What a task works on between the first barrier and the last is counted, whether channels wait, do not wait or are overtaken.
func TestBytesOfAnAlignmentAreCounted(t *testing.T) {
	const number = 16 // bytes of an int64 and its timestamp
	watch := func(b *bench) *[]int64 {
		var all []int64
		took := b.dep.Checkpoints.Took
		b.dep.Checkpoints.Took = func(p *Part) {
			all = append(all, p.Metrics.Processed)
			took(p)
		}
		return &all
	}
	end := func(b *bench, channels int) {
		for c := range channels {
			b.send(c, mark(frame.End))
		}
	}
	cases := map[string]struct {
		play func() (*[]int64, error)
		want []int64
	}{
		"aligned": {func() (*[]int64, error) {
			b, _ := savers(t, 1, 2)
			all := watch(b)
			b.send(0, 1, barrier(1))
			b.send(0, 2) // waits
			b.send(1, 3, 4)
			return all, b.run(func() { b.send(1, 5, barrier(1), 6) }, func() { end(b, 2) })
		}, []int64{3 * number}},
		"one channel": {func() (*[]int64, error) {
			b, _ := savers(t, 1, 1)
			all := watch(b)
			b.send(0, 1, barrier(1), 2)
			return all, b.run(func() { end(b, 1) })
		}, []int64{0}},
		"given up, and then another": {func() (*[]int64, error) {
			b, _ := savers(t, 1, 2)
			all := watch(b)
			b.send(0, barrier(1))
			b.send(1, 1, cancelBarrier(1), 2)
			return all, b.run(func() { b.send(0, barrier(2)); b.send(1, 3, barrier(2)) }, func() { end(b, 2) })
		}, []int64{number}},
		"at least once": {func() (*[]int64, error) {
			b, _ := savers(t, 1, 2)
			b.dep.Checkpoints.Mode = control.AtLeastOnce
			all := watch(b)
			b.send(0, barrier(1), 2, 3)
			return all, b.run(func() { b.send(1, 4, barrier(1), 5) }, func() { end(b, 2) })
		}, []int64{3 * number}},
		"unaligned": {func() (*[]int64, error) {
			b, ws := overtakers(t, 0, 2)
			all := watch(b)
			b.build()
			b.write(ws[0], 1, 2, overtakingBarrier(1), 3)
			b.write(ws[1], 4)
			return all, b.run(func() {
				b.write(ws[1], overtakingBarrier(1), 5)
				for _, w := range ws {
					b.write(w, mark(frame.End))
				}
			})
		}, []int64{4 * number}},
	}
	for name, c := range cases {
		got, err := c.play()
		if err != nil {
			t.Fatal(err)
		}
		if len(*got) != len(c.want) || (*got)[0] != c.want[0] {
			t.Errorf("%s: %v bytes, want %v", name, *got, c.want)
		}
	}
}
