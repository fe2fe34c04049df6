package property

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/flott-dev/flott/flotttest"
)

// record is the element of all streams: a key, a value, and a text that follows from the value.
type record struct {
	K, V int64
	S    string
}

func newRecord(k, v int64) record { return record{k, v, "v" + strconv.FormatInt(v, 36)} }

func (r record) key() int64 { return r.K }

type element = flotttest.Element[record]

// branch is a stream of the program with what it must hold.
type branch struct {
	elements []element
	timed    bool // timestamps are the model's; else they depend on the order of arrival
	linear   bool // one path from one script: order is promised at parallelism 1
}

// texts are the elements as far as they are promised.
func (b *branch) texts(elements []element) []string {
	var out []string
	for _, e := range elements {
		if b.timed {
			out = append(out, fmt.Sprintf("%+v", e))
		} else {
			out = append(out, fmt.Sprintf("%+v", e.Value))
		}
	}
	return out
}

// script makes what one subtask of a source does: elements with timestamps beyond the last watermark, so that none is
// late anywhere, cut into runs of random lengths, or of at most cut elements.
func script(seed uint64, cut int) (*flotttest.Script[record], []element) {
	rng := rand.New(rand.NewPCG(seed, 1))
	cuts := rand.New(rand.NewPCG(seed, 2))
	s := flotttest.NewScript[record]()
	var all []element
	watermark, run := int64(-100), 0
	n := rng.IntN(160)
	if rng.IntN(6) == 0 {
		n *= 15 // several frames
	}
	for range n {
		if rng.IntN(8) == 0 {
			watermark += rng.Int64N(40)
			s.Watermark(watermark)
			continue
		}
		e := flotttest.At(newRecord(rng.Int64N(12), rng.Int64N(1000)-500), watermark+1+rng.Int64N(60))
		all = append(all, e)
		s.EmitElements(e)
		if run++; run >= cut || cut > 2 && cuts.IntN(20) == 0 {
			s.Cut()
			run = 0
		}
	}
	if rng.IntN(2) == 0 {
		s.Idle() // the end follows: nothing can be late
	}
	return s, all
}

func sorted(xs []string) []string {
	out := slices.Clone(xs)
	slices.Sort(out)
	return out
}
