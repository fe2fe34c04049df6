package loops

// Chain is map, filter and map over the events, rounds times: closures that the compiler may not inline, called in one
// loop.
func Chain(es []Event, rounds int) uint64 {
	var sum int64
	for range rounds {
		chain(es,
			func(e Event) Event { e.Val += 2; return e },
			func(e Event) bool { return e.Key%3 != 0 },
			func(e Event) int64 { return e.Val * 2 },
			func(v int64) { sum += v })
	}
	return uint64(sum)
}

//go:noinline
func chain(es []Event, f func(Event) Event, keep func(Event) bool, g func(Event) int64, sink func(int64)) {
	for i := range es {
		if e := f(es[i]); keep(e) {
			sink(g(e))
		}
	}
}

// RecordChain is Chain over elements of five words, passed by value.
func RecordChain(rs []Record, rounds int) uint64 {
	var sum int64
	for range rounds {
		recordChain(rs,
			func(r Record) Record { r.Amount += 2; return r },
			func(r Record) bool { return r.User%3 != 0 },
			func(r Record) int64 { return r.Amount * int64(r.Item[0]-'0') },
			func(v int64) { sum += v })
	}
	return uint64(sum)
}

//go:noinline
func recordChain(rs []Record, f func(Record) Record, keep func(Record) bool, g func(Record) int64, sink func(int64)) {
	for i := range rs {
		if r := f(rs[i]); keep(r) {
			sink(g(r))
		}
	}
}

// RecordPointerChain is RecordChain with closures that take the element's address. The input is not changed: the loop
// copies each element to one place and works on that.
func RecordPointerChain(rs []Record, rounds int) uint64 {
	var sum int64
	for range rounds {
		recordPointerChain(rs,
			func(r *Record) { r.Amount += 2 },
			func(r *Record) bool { return r.User%3 != 0 },
			func(r *Record) int64 { return r.Amount * int64(r.Item[0]-'0') },
			func(v int64) { sum += v })
	}
	return uint64(sum)
}

//go:noinline
func recordPointerChain(rs []Record, f func(*Record), keep func(*Record) bool, g func(*Record) int64, sink func(int64)) {
	r := new(Record)
	for i := range rs {
		*r = rs[i]
		f(r)
		if keep(r) {
			sink(g(r))
		}
	}
}

// FlatMap calls one closure per event, rounds times, which emits the event's value zero, one or two times.
func FlatMap(es []Event, rounds int) uint64 {
	var sum int64
	for range rounds {
		flatMap(es,
			func(e Event, emit func(int64)) {
				for range e.Key % 3 {
					emit(e.Val)
				}
			},
			func(v int64) { sum += v })
	}
	return uint64(sum)
}

//go:noinline
func flatMap(es []Event, f func(Event, func(int64)), sink func(int64)) {
	for i := range es {
		f(es[i], sink)
	}
}
