package state_test

import (
	"testing"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/state"
)

const (
	runLength = 512
	stretch   = 64 * runLength
)

func mix(i uint64, n int) uint64 {
	i ^= i >> 31
	i *= 0x9e3779b97f4a7c15
	return (i >> 32) * uint64(n) >> 32
}

// benchElements times f per element at 10 k keys, as a process function is called; the best of many stretches, since
// the host has other tenants. BeginRun, hashing and the key column are inside.
func benchElements(b *testing.B, declare func(s *subtask[int64]) func(int64)) {
	s := newSubtask[int64](b)
	f := declare(s)
	keys := make([]int64, runLength)
	i, best := uint64(0), time.Duration(1<<62)
	b.ReportAllocs()
	for done := 0; done < b.N; done += stretch {
		var spent time.Duration
		for range stretch / runLength {
			for j := range keys {
				i++
				keys[j] = int64(mix(i, 10_000))
			}
			start := time.Now()
			s.each(keys, f)
			spent += time.Since(start)
		}
		best = min(best, spent)
	}
	b.ReportMetric(float64(best)/stretch, "ns/element")
	s.check()
}

type profile struct{ Count, Sum, Last int64 }

type user struct {
	Name  string
	Count int64
}

func BenchmarkElement(b *testing.B) {
	b.Run("Nothing", func(b *testing.B) {
		n := int64(0)
		benchElements(b, func(s *subtask[int64]) func(int64) { return func(k int64) { n += k } })
	})
	b.Run("GetSet", func(b *testing.B) {
		benchElements(b, func(s *subtask[int64]) func(int64) {
			v := state.NewValue[int64](s, "n")
			return func(int64) { v.Set(v.Get() + 1) }
		})
	})
	b.Run("Update", func(b *testing.B) {
		benchElements(b, func(s *subtask[int64]) func(int64) {
			v := state.NewValue[int64](s, "n")
			return func(int64) { v.Update(func(n *int64) { *n++ }) }
		})
	})
	b.Run("UpdateStruct", func(b *testing.B) {
		benchElements(b, func(s *subtask[int64]) func(int64) {
			v := state.NewValue[profile](s, "n")
			return func(k int64) { v.Update(func(p *profile) { p.Count++; p.Sum += k; p.Last = k }) }
		})
	})
	b.Run("Reducing", func(b *testing.B) {
		benchElements(b, func(s *subtask[int64]) func(int64) {
			v := state.NewReducing(s, "n", func(a, b int64) int64 { return a + b })
			return func(k int64) { v.Add(k) }
		})
	})
	b.Run("Aggregating", func(b *testing.B) {
		benchElements(b, func(s *subtask[int64]) func(int64) {
			v := state.NewAggregating(s, "n", agg.Sum(func(x int64) int64 { return x }))
			return func(k int64) { v.Add(k) }
		})
	})
	b.Run("GetSetText", func(b *testing.B) {
		benchElements(b, func(s *subtask[int64]) func(int64) {
			v := state.NewValue[user](s, "n")
			return func(int64) {
				u := v.Get()
				u.Name = "somebody"
				u.Count++
				v.Set(u)
			}
		})
	})
	b.Run("GetSetEncoded", func(b *testing.B) {
		benchElements(b, func(s *subtask[int64]) func(int64) {
			v := state.NewValue[[]int64](s, "n")
			return func(k int64) { v.Set(append(v.Get()[:0], k)) }
		})
	})
	b.Run("MapUpdate", func(b *testing.B) {
		benchElements(b, func(s *subtask[int64]) func(int64) {
			v := state.NewMap[int64, int64](s, "n")
			return func(k int64) { v.Update(k&3, func(n *int64) { *n++ }) }
		})
	})
	b.Run("ListAddClear", func(b *testing.B) {
		benchElements(b, func(s *subtask[int64]) func(int64) {
			v := state.NewList[int64](s, "n")
			return func(k int64) {
				v.Add(k)
				if v.Len() == 16 {
					v.Clear()
				}
			}
		})
	})
	b.Run("SetClear", func(b *testing.B) {
		benchElements(b, func(s *subtask[int64]) func(int64) {
			v := state.NewValue[int64](s, "n")
			return func(k int64) {
				if v.Exists() {
					v.Clear()
				} else {
					v.Set(k)
				}
			}
		})
	})
}
