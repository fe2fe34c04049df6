package agg

// Integer is what can be summed exactly.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

// Float is what can be summed with rounding.
type Float interface {
	~float32 | ~float64
}

// Number is what can be summed.
type Number interface {
	Integer | Float
}

// isInteger says whether N is an integer type: only they are exact however sums are grouped.
func isInteger[N Number]() bool {
	var half N = 1
	return half/2 == 0
}

// Sum adds up what of selects. It wraps around on overflow.
func Sum[T any, N Number](of func(T) N) Aggregate[T, N, N] { return &sum[T, N]{of} }

type sum[T any, N Number] struct{ of func(T) N }

func (s *sum[T, N]) Create() (n N)       { return n }
func (s *sum[T, N]) Add(acc *N, x T)     { *acc += s.of(x) }
func (s *sum[T, N]) Merge(acc, other *N) { *acc += *other }
func (s *sum[T, N]) Result(acc *N) N     { return *acc }
func (s *sum[T, N]) Regroupable() bool   { return isInteger[N]() }
func (s *sum[T, N]) Invertible() bool    { return isInteger[N]() }
func (s *sum[T, N]) Subtract(acc, o *N)  { *acc -= *o }
func (s *sum[T, N]) Commutative() bool   { return isInteger[N]() }

// AddColumn, MergeColumn and SubtractColumn: see columns.go.
func (s *sum[T, N]) AddColumn(accs *N, ids []uint32, xs []T) {
	xs = xs[:len(ids)]
	i := 0
	for ; i+4 <= len(ids); i += 4 { // the index goes through memory at each closure call
		x, id := xs[i:i+4:i+4], ids[i:i+4:i+4]
		a, b, c, d := s.of(x[0]), s.of(x[1]), s.of(x[2]), s.of(x[3])
		*cell(accs, id[0]) += a
		*cell(accs, id[1]) += b
		*cell(accs, id[2]) += c
		*cell(accs, id[3]) += d
	}
	for ; i < len(ids); i++ {
		x := s.of(xs[i])
		*cell(accs, ids[i]) += x
	}
}

func (*sum[T, N]) MergeColumn(accs, other *N, into, from []uint32) {
	addColumn(accs, other, into, from)
}

func (*sum[T, N]) SubtractColumn(accs, other *N, into, from []uint32) {
	subtractColumn(accs, other, into, from)
}

// Count counts elements. It is passed without a call where T is known from the stream: Aggregate(agg.Count).
func Count[T any]() Aggregate[T, int64, int64] { return &count[T]{} }

type count[T any] struct{}

func (*count[T]) Create() int64           { return 0 }
func (*count[T]) Add(acc *int64, _ T)     { *acc++ }
func (*count[T]) Merge(acc, other *int64) { *acc += *other }
func (*count[T]) Result(acc *int64) int64 { return *acc }
func (*count[T]) Regroupable() bool       { return true }
func (*count[T]) Invertible() bool        { return true }
func (*count[T]) Subtract(acc, o *int64)  { *acc -= *o }
func (*count[T]) Commutative() bool       { return true }

func (*count[T]) AddColumn(accs *int64, ids []uint32, _ []T) {
	for _, id := range ids {
		*cell(accs, id)++
	}
}

func (*count[T]) MergeColumn(accs, other *int64, into, from []uint32) {
	addColumn(accs, other, into, from)
}

func (*count[T]) SubtractColumn(accs, other *int64, into, from []uint32) {
	subtractColumn(accs, other, into, from)
}

// Average is the accumulator of Avg. Integers are added exactly in Whole, floats in Part.
type Average struct {
	Whole int64   // sum of integers; it wraps around on overflow
	Part  float64 // sum of floats
	Count int64   // elements
}

// Avg is the arithmetic mean of what of selects; 0 of no elements. Integers beyond the int64 range wrap around.
func Avg[T any, N Number](of func(T) N) Aggregate[T, Average, float64] { return &avg[T, N]{of} }

type avg[T any, N Number] struct{ of func(T) N }

func (*avg[T, N]) Create() Average { return Average{} }

func (a *avg[T, N]) Add(acc *Average, x T) {
	if isInteger[N]() {
		acc.Whole += int64(a.of(x))
	} else {
		acc.Part += float64(a.of(x))
	}
	acc.Count++
}

// AddColumn: see columns.go.
func (a *avg[T, N]) AddColumn(accs *Average, ids []uint32, xs []T) {
	xs = xs[:len(ids)]
	for i, id := range ids {
		a.Add(cell(accs, id), xs[i])
	}
}

func (*avg[T, N]) Merge(acc, other *Average) {
	acc.Whole += other.Whole
	acc.Part += other.Part
	acc.Count += other.Count
}

func (*avg[T, N]) Subtract(acc, other *Average) {
	acc.Whole -= other.Whole
	acc.Part -= other.Part
	acc.Count -= other.Count
}

func (*avg[T, N]) Result(acc *Average) float64 {
	if acc.Count == 0 {
		return 0
	}
	return (float64(acc.Whole) + acc.Part) / float64(acc.Count)
}

func (*avg[T, N]) Regroupable() bool { return isInteger[N]() }
func (*avg[T, N]) Invertible() bool  { return isInteger[N]() }
func (*avg[T, N]) Commutative() bool { return isInteger[N]() }
