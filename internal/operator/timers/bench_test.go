package timers

import (
	"encoding/binary"
	"testing"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
)

// pending sets n timers spread over the next minute, keys of 8 bytes.
func pending(n int, namespace []byte) (*Service, func(i uint64) ([]byte, uint64)) {
	s := New(Options{Callbacks: &operator.Callbacks{}})
	buf := make([]byte, 8)
	key := func(i uint64) ([]byte, uint64) {
		binary.LittleEndian.PutUint64(buf, i)
		return buf, fold(i, mixA)
	}
	if err := s.AdvanceWatermark(1_700_000_000_000, nil); err != nil {
		panic(err)
	}
	for i := range uint64(n) {
		k, h := key(i)
		s.Register(process.EventTime, k, h, namespace, s.Watermark()+1+int64(h%60_000))
	}
	return s, key
}

// A timer a minute ahead is set for each one that fires: 1 M stay pending.
func BenchmarkRegisterAndFire(b *testing.B) {
	for _, n := range []struct {
		name    string
		pending int
	}{{"10k", 10_000}, {"1M", 1_000_000}} {
		b.Run(n.name, func(b *testing.B) {
			s, key := pending(n.pending, nil)
			fired := 0
			fire := func([]byte, uint64, []byte, int64) error { fired++; return nil }
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; {
				w := s.Watermark() + 1
				before := fired
				if err := s.AdvanceWatermark(w, fire); err != nil {
					b.Fatal(err)
				}
				for range fired - before {
					k, h := key(uint64(i) * 31)
					s.Register(process.EventTime, k, h, nil, w+1+int64(h%60_000))
					i++
				}
			}
			b.ReportMetric(float64(s.MemoryBytes())/float64(n.pending), "B/timer")
		})
	}
}

// A session's timer moves with each element.
func BenchmarkMoveTimer(b *testing.B) {
	for _, n := range []struct {
		name    string
		pending int
	}{{"10k", 10_000}, {"1M", 1_000_000}} {
		b.Run(n.name, func(b *testing.B) {
			s := New(Options{Callbacks: &operator.Callbacks{}})
			at := make([]int64, n.pending)
			buf := make([]byte, 8)
			for i := range at {
				binary.LittleEndian.PutUint64(buf, uint64(i))
				at[i] = 1_700_000_000_000 + int64(i)%1000
				s.Register(process.EventTime, buf, fold(uint64(i), mixA), nil, at[i])
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				k := fold(uint64(i), mixB) % uint64(n.pending)
				binary.LittleEndian.PutUint64(buf, k)
				h := fold(k, mixA)
				s.Delete(process.EventTime, buf, h, nil, at[k])
				at[k] += 1000
				s.Register(process.EventTime, buf, h, nil, at[k])
			}
			b.ReportMetric(float64(s.MemoryBytes())/float64(n.pending), "B/timer")
		})
	}
}

func BenchmarkRegisterAgain(b *testing.B) {
	s, key := pending(10_000, nil)
	for i := range b.N {
		k, h := key(uint64(i) % 10_000)
		s.Register(process.EventTime, k, h, nil, 1_700_000_000_000+1+int64(h%60_000))
	}
}

// BenchmarkFreeze is how long a snapshot of a million timers holds the subtask up.
func BenchmarkFreeze(b *testing.B) {
	key, err := serde.KeyOf[int64]()
	if err != nil {
		b.Fatal(err)
	}
	types := Types{Key: key, Seed: 3}
	s := New(Options{Inline: 8})
	for i := range int64(1_000_000) {
		k := binary.LittleEndian.AppendUint64(nil, uint64(i))
		s.Register(process.EventTime, k, key.HashOne(k, 3), nil, i%1000)
	}
	for b.Loop() {
		o := operator.Snapshot{Groups: 128}
		if err := s.Freeze(&o, types); err != nil {
			b.Fatal(err)
		}
	}
}
