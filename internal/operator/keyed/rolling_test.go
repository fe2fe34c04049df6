package keyed

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// Elements in the three layouts of a state table. Their keys are of the three forms, too: fixed width, text, composite.
type (
	fixed struct {
		K int64
		N int64
	}
	text struct {
		K string
		N int64
	}
	encoded struct {
		K  place
		Ns []int64
	}
	place struct {
		City string
		No   int32
	}
)

func fixedKey(x fixed) int64     { return x.K }
func textKey(x text) string      { return x.K }
func encodedKey(x encoded) place { return x.K }

func newFixed(rng *rand.Rand) fixed { return fixed{K: rng.Int64N(40) - 20, N: rng.Int64()} }

func newText(rng *rand.Rand) text {
	return text{K: strings.Repeat("k", rng.IntN(40)), N: rng.Int64()}
}

func newEncoded(rng *rand.Rand) encoded {
	return encoded{K: place{City: strings.Repeat("c", rng.IntN(6)), No: rng.Int32N(6)}, Ns: []int64{rng.Int64N(9), rng.Int64N(9)}}
}

func layoutIs[T any](t *testing.T, want serde.Layout) *frame.Type {
	t.Helper()
	typ := kit.TypeOf[T](t)
	if typ.Layout != want {
		t.Fatalf("the layout of %s is %v, want %v", typ.Name, typ.Layout, want)
	}
	return typ
}

// checkRolling pushes random elements in runs of many lengths, with and without timestamps, shared and not, and compares
// each result with that of step, which keeps its own map.
func checkRolling[T, R any](t *testing.T, op operator.Operator, fresh func(*rand.Rand) T, step func(x T) R) {
	t.Helper()
	out, _ := kit.Open(t, op)
	rng := rand.New(rand.NewPCG(1, 2))
	in := op.Inputs()[0]
	for i, n := range []int{1, 2, 5, frame.MaxLen - 1, frame.MaxLen, frame.MaxLen + 1, 2*frame.MaxLen + 7, 3} {
		for variant := range 4 {
			xs, want := make([]T, n), make([]string, n)
			var times []int64
			for j := range xs {
				xs[j] = fresh(rng)
			}
			if variant&1 != 0 {
				times = kit.Numbers(n)
			}
			r := kit.Run(t, times, xs...)
			untouched := func() {}
			if variant&2 != 0 {
				untouched = kit.Share(t, r)
			}
			for j, x := range xs {
				if want[j] = fmt.Sprint(step(x)); times != nil {
					want[j] += fmt.Sprintf("@%d", times[j])
				}
			}
			kit.Must(t, in.Push(r))
			untouched()
			for j := range want {
				if len(out.Got) != n || out.Got[j] != want[j] {
					t.Fatalf("run %d of %d, variant %d: %d results, number %d is %s, want %s", i, n, variant, len(out.Got), j, out.Got[min(j, len(out.Got)-1)], want[j])
				}
			}
			out.Got = nil
		}
	}
	kit.Must(t, in.Mark(kit.Watermark(5)))
	kit.Must(t, in.Mark(kit.End()))
	out.Want(t, "watermark 5", "end")
}

// perKey makes a step of what becomes of a key's value by an element.
func perKey[T any, K comparable, A, R any](key func(T) K, next func(acc A, found bool, x T) A, result func(K, A) R) func(T) R {
	all := map[K]A{}
	return func(x T) R {
		k := key(x)
		acc, found := all[k]
		all[k] = next(acc, found, x)
		return result(k, all[k])
	}
}

func value[K, A any](_ K, a A) A { return a }

func pair[K, A any](k K, a A) process.KeyValue[K, A] { return process.KeyValue[K, A]{Key: k, Value: a} }

// together is an order-sensitive combination.
func together(a, b int64) int64 { return a*31 + b }

func TestReduceCombinesInOrder(t *testing.T) {
	t.Run("fixed", func(t *testing.T) {
		op := Reduce(layoutIs[fixed](t, serde.Fixed), kit.KeyOf(t, fixedKey), func(acc, x *fixed) { acc.N = together(acc.N, x.N) })
		checkRolling(t, op, newFixed, perKey(fixedKey, func(acc fixed, found bool, x fixed) fixed {
			if found {
				x.N = together(acc.N, x.N)
			}
			return x
		}, value))
	})
	t.Run("text", func(t *testing.T) {
		op := Reduce(layoutIs[text](t, serde.Text), kit.KeyOf(t, textKey), func(acc, x *text) { acc.N = together(acc.N, x.N) })
		checkRolling(t, op, newText, perKey(textKey, func(acc text, found bool, x text) text {
			if found {
				x.N = together(acc.N, x.N)
			}
			return x
		}, value))
	})
	t.Run("encoded", func(t *testing.T) {
		op := Reduce(layoutIs[encoded](t, serde.Encoded), kit.KeyOf(t, encodedKey), func(acc, x *encoded) {
			acc.Ns[0] += x.Ns[0] // in its memory
			acc.Ns = append(acc.Ns, x.Ns[len(x.Ns)-1])
			acc.Ns = acc.Ns[max(0, len(acc.Ns)-5):]
		})
		checkRolling(t, op, newEncoded, perKey(encodedKey, func(acc encoded, found bool, x encoded) encoded {
			if !found {
				return encoded{K: x.K, Ns: slices.Clone(x.Ns)}
			}
			ns := slices.Clone(acc.Ns)
			ns[0] += x.Ns[0]
			ns = append(ns, x.Ns[len(x.Ns)-1])
			return encoded{K: x.K, Ns: ns[max(0, len(ns)-5):]}
		}, value))
	})
}

func TestSumAndCountKeepATotalPerKey(t *testing.T) {
	t.Run("fixed key", func(t *testing.T) {
		op := Sum[fixed, int64](kit.TypeOf[fixed](t), kit.TypeOf[process.KeyValue[int64, int64]](t), handleOf[int64](t), kit.KeyOf(t, fixedKey), func(x fixed) int64 { return x.N })
		checkRolling(t, op, newFixed, perKey(fixedKey, func(acc int64, _ bool, x fixed) int64 { return acc + x.N }, pair))
	})
	t.Run("text key, a byte", func(t *testing.T) {
		op := Sum[text, string](kit.TypeOf[text](t), kit.TypeOf[process.KeyValue[string, uint8]](t), handleOf[uint8](t), kit.KeyOf(t, textKey), func(x text) uint8 { return uint8(x.N) })
		checkRolling(t, op, newText, perKey(textKey, func(acc uint8, _ bool, x text) uint8 { return acc + uint8(x.N) }, pair))
	})
	t.Run("composite key, count", func(t *testing.T) {
		op := Sum[encoded, place, int64](kit.TypeOf[encoded](t), kit.TypeOf[process.KeyValue[place, int64]](t), handleOf[int64](t), kit.KeyOf(t, encodedKey), nil)
		checkRolling(t, op, newEncoded, perKey(encodedKey, func(acc int64, _ bool, _ encoded) int64 { return acc + 1 }, pair))
	})
}

// TestFoldTakesTheFirstValueAsItIs: a minimum does not begin at 0.
func TestFoldTakesTheFirstValueAsItIs(t *testing.T) {
	lower := func(a, b int64) int64 { return min(a, b) }
	op := Fold[text, string](kit.TypeOf[text](t), kit.TypeOf[process.KeyValue[string, int64]](t), handleOf[int64](t), kit.KeyOf(t, textKey), func(x text) int64 { return x.N }, lower)
	checkRolling(t, op, newText, perKey(textKey, func(acc int64, found bool, x text) int64 {
		if !found {
			return x.N
		}
		return min(acc, x.N)
	}, pair))
}

func handleOf[T any](t testing.TB) *serde.Handle { return kit.TypeOf[T](t).Handle }

func TestRollingFoldBeginsWithACopyOfItsInitialValue(t *testing.T) {
	typ := kit.TypeOf[fixed](t)
	t.Run("fixed", func(t *testing.T) {
		f := func(acc int64, x fixed) int64 { return together(acc, x.N) }
		op := Rolling(typ, layoutIs[int64](t, serde.Fixed), kit.KeyOf(t, fixedKey), 7, f)
		checkRolling(t, op, newFixed, perKey(fixedKey, func(acc int64, found bool, x fixed) int64 {
			if !found {
				acc = 7
			}
			return f(acc, x)
		}, value))
	})
	t.Run("text", func(t *testing.T) {
		f := func(acc text, x fixed) text {
			return text{K: fmt.Sprint(acc.K, x.N%10)[max(0, len(acc.K)-7):], N: acc.N + 1}
		}
		op := Rolling(typ, layoutIs[text](t, serde.Text), kit.KeyOf(t, fixedKey), text{K: "-"}, f)
		checkRolling(t, op, newFixed, perKey(fixedKey, func(acc text, found bool, x fixed) text {
			if !found {
				acc.K = "-"
			}
			return f(acc, x)
		}, value))
	})
	t.Run("encoded", func(t *testing.T) {
		init := []int64{1, 2, 3}
		op := Rolling(typ, layoutIs[[]int64](t, serde.Encoded), kit.KeyOf(t, fixedKey), init, func(acc []int64, x fixed) []int64 {
			acc[int(uint64(x.N)%3)] += x.N // it may change what it gets
			return acc
		})
		checkRolling(t, op, newFixed, perKey(fixedKey, func(acc []int64, found bool, x fixed) []int64 {
			if !found {
				acc = []int64{1, 2, 3}
			}
			acc[int(uint64(x.N)%3)] += x.N
			return acc
		}, value))
		if !slices.Equal(init, []int64{1, 2, 3}) {
			t.Errorf("the initial value became %v", init)
		}
	})
}

// joined is an aggregate that depends on order: numbers are written one after the other into A.
type joined[A any] struct {
	create func() A
	add    func(acc *A, n int64)
}

func (j joined[A]) Create() A             { return j.create() }
func (j joined[A]) Add(acc *A, x fixed)   { j.add(acc, x.N) }
func (j joined[A]) Merge(_, _ *A)         { panic("a rolling aggregate merges nothing") }
func (j joined[A]) Result(acc *A) string  { return fmt.Sprint(*acc) }
func (j joined[A]) step(acc A, x fixed) A { j.add(&acc, x.N); return acc }

func checkAggregate[A any](t *testing.T, want serde.Layout, j joined[A]) {
	t.Helper()
	value := layoutIs[A](t, want).Handle
	op := Aggregate[fixed, int64](kit.TypeOf[fixed](t), kit.TypeOf[process.KeyValue[int64, string]](t), value, kit.KeyOf(t, fixedKey), j)
	checkRolling(t, op, newFixed, perKey(fixedKey, func(acc A, found bool, x fixed) A {
		if !found {
			acc = j.create()
		}
		return j.step(acc, x)
	}, func(k int64, acc A) process.KeyValue[int64, string] { return pair(k, j.Result(&acc)) }))
}

func TestAggregateKeepsAnAccumulatorPerKey(t *testing.T) {
	t.Run("fixed", func(t *testing.T) {
		checkAggregate(t, serde.Fixed, joined[[2]int64]{
			create: func() [2]int64 { return [2]int64{5, 0} },
			add:    func(acc *[2]int64, n int64) { acc[0], acc[1] = together(acc[0], n), acc[1]+1 },
		})
	})
	t.Run("text", func(t *testing.T) {
		checkAggregate(t, serde.Text, joined[text]{
			create: func() text { return text{K: "begin"} },
			add:    func(acc *text, n int64) { acc.K, acc.N = fmt.Sprint(n%100, acc.N), acc.N+1 },
		})
	})
	t.Run("encoded", func(t *testing.T) {
		checkAggregate(t, serde.Encoded, joined[map[int64]int64]{
			create: func() map[int64]int64 { return map[int64]int64{} },
			add:    func(acc *map[int64]int64, n int64) { (*acc)[n%3]++ },
		})
	})
}

func TestChangeAndChooseKeepAnElementPerKey(t *testing.T) {
	t.Run("fixed", func(t *testing.T) {
		typ, key := layoutIs[fixed](t, serde.Fixed), kit.KeyOf(t, fixedKey)
		checkElements(t, typ, key, newFixed, fixedKey, func(x *fixed) *int64 { return &x.N })
	})
	t.Run("text", func(t *testing.T) {
		typ, key := layoutIs[text](t, serde.Text), kit.KeyOf(t, textKey)
		checkElements(t, typ, key, newText, textKey, func(x *text) *int64 { return &x.N })
	})
	t.Run("encoded", func(t *testing.T) {
		typ, key := layoutIs[encoded](t, serde.Encoded), kit.KeyOf(t, encodedKey)
		checkElements(t, typ, key, newEncoded, encodedKey, func(x *encoded) *int64 { return &x.Ns[0] })
	})
}

func checkElements[T any, K comparable](t *testing.T, typ *frame.Type, key *operator.Key, fresh func(*rand.Rand) T, keyOf func(T) K, at func(*T) *int64) {
	t.Helper()
	clone := func(x T) T {
		var y T
		kit.Must(t, typ.Clone(unsafe.Pointer(&y), unsafe.Pointer(&x)))
		return y
	}
	change := Change(typ, key, func(acc, x unsafe.Pointer) {
		n := at((*T)(acc))
		*n = together(*n, *at((*T)(x)))
	})
	checkRolling(t, change, fresh, perKey(keyOf, func(acc T, found bool, x T) T {
		if !found {
			return clone(x)
		}
		acc = clone(acc)
		n := at(&acc)
		*n = together(*n, *at(&x))
		return acc
	}, value))
	choose := Choose(typ, key, func(acc, x unsafe.Pointer) bool { return *at((*T)(x)) < *at((*T)(acc)) })
	checkRolling(t, choose, fresh, perKey(keyOf, func(acc T, found bool, x T) T {
		if !found || *at(&x) < *at(&acc) {
			return clone(x)
		}
		return acc
	}, value))
}

// every makes one driver of each kind over numbers that are their own keys.
func every(t *testing.T, key *operator.Key) map[string]operator.Operator {
	typ, pairs := kit.TypeOf[float64](t), kit.TypeOf[process.KeyValue[float64, float64]](t)
	return map[string]operator.Operator{
		"reduce":    Reduce(typ, key, func(acc, x *float64) { *acc += *x }),
		"sum":       Sum[float64, float64](typ, pairs, typ.Handle, key, func(x float64) float64 { return x }),
		"count":     Sum[float64, float64, float64](typ, pairs, typ.Handle, key, nil),
		"fold":      Fold[float64, float64](typ, pairs, typ.Handle, key, func(x float64) float64 { return x }, math.Max),
		"rolling":   Rolling(typ, typ, key, 0, func(acc, x float64) float64 { return acc + x }),
		"aggregate": Aggregate[float64, float64](typ, pairs, typ.Handle, key, total{}),
		"change":    Change(typ, key, func(acc, x unsafe.Pointer) { *(*float64)(acc) += *(*float64)(x) }),
		"choose":    Choose(typ, key, func(acc, x unsafe.Pointer) bool { return false }),
		"process": Process(typ, typ, key, nil, func(*process.Runtime) process.KeyedFunction[float64, float64, float64] {
			return passing{}
		}),
	}
}

type total struct{}

func (total) Create() float64             { return 0 }
func (total) Add(acc *float64, x float64) { *acc += x }
func (total) Merge(acc, other *float64)   { *acc += *other }
func (total) Result(acc *float64) float64 { return *acc }

type passing struct {
	process.NoTimers[float64, float64]
}

func (passing) ProcessElement(_ *process.KeyedContext[float64], x float64, out *process.Collector[float64]) error {
	out.Collect(x)
	return nil
}

func numberKey(t *testing.T) *operator.Key { return kit.KeyOf(t, func(x float64) float64 { return x }) }

func TestKeyThatIsNotANumberFailsTheRun(t *testing.T) {
	for name, op := range every(t, numberKey(t)) {
		out, _ := kit.Open(t, op)
		kit.Must(t, op.Inputs()[0].Push(kit.Run(t, nil, 1.0, 2)))
		n := len(out.Got)
		if err := op.Inputs()[0].Push(kit.Run(t, nil, 1, math.NaN(), 2)); err == nil || !strings.Contains(err.Error(), "key of an element") {
			t.Errorf("%s: %v", name, err)
		}
		if n != 2 || len(out.Got) != n {
			t.Errorf("%s: %d results, then %d", name, n, len(out.Got))
		}
	}
}

func TestNegativeZeroIsTheKeyZero(t *testing.T) {
	op := every(t, numberKey(t))["count"]
	out, _ := kit.Open(t, op)
	kit.Must(t, op.Inputs()[0].Push(kit.Run(t, nil, 0, math.Copysign(0, -1), 1)))
	if out.Got[1] != "(-0,2)" && out.Got[1] != "(0,2)" || out.Got[2] != "(1,1)" {
		t.Errorf("got %q", out.Got)
	}
}

func TestErrorsOfStateAndConsumersComeBack(t *testing.T) {
	own := errors.New("own")
	for name, op := range every(t, numberKey(t)) {
		rt := kit.Runtime()
		rt.OpenState = func(statebackend.Options) (statebackend.Store, error) { return nil, own }
		if err := op.Open(rt); !errors.Is(err, own) {
			t.Errorf("%s: Open returns %v", name, err)
		}
		kit.Must(t, op.Close())
	}
	for name, op := range every(t, numberKey(t)) {
		out, _ := kit.Open(t, op)
		out.Fail = own
		xs := make([]float64, 3*frame.MaxLen)
		if err := op.Inputs()[0].Push(kit.Run(t, nil, xs...)); !errors.Is(err, own) || len(out.Runs) != 1 {
			t.Errorf("%s: error %v after %d runs", name, err, len(out.Runs))
		}
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for name, op := range every(t, numberKey(t)) {
		xs := make([]float64, 512)
		for i := range xs {
			xs[i] = float64(i % 100)
		}
		r := kit.Run(t, kit.Numbers(512), xs...)
		r.Shared = true
		kit.AllocatesNothing(t, name, op, r)
	}
}
