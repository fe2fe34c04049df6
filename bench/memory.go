package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/flott-dev/flott/stream"
)

// rawEntry is the bytes of a key and a value.
const rawEntry = 16

// usage is what the runtime says about memory and the processors' time.
type usage struct {
	heap   float64 // bytes of live objects, right after a collection
	mapped float64 // bytes held from the system
	gc     float64 // CPU seconds of the collector
	busy   float64 // CPU seconds in all
}

// readUsage collects first: the figures are of the last collection.
func readUsage() usage {
	runtime.GC()
	s := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/cpu/classes/gc/total:cpu-seconds"},
		{Name: "/cpu/classes/total:cpu-seconds"},
		{Name: "/cpu/classes/idle:cpu-seconds"},
	}
	metrics.Read(s)
	return usage{
		heap:   float64(s[0].Value.Uint64()),
		mapped: float64(s[1].Value.Uint64() - s[2].Value.Uint64()),
		gc:     s[3].Value.Float64(),
		busy:   s[4].Value.Float64() - s[5].Value.Float64(),
	}
}

// memory counts 10 M distinct keys, each four times, and looks at the process while all of them are in the state: live
// heap and mapped memory for each byte of keys and values, and the collector's share of the CPU time. One collection that
// the measuring itself asks for is in that share.
func memory(ctx context.Context, o options) (line, error) {
	const visits = 4
	keys := int64(10_000_000 / o.shrink)
	l := line{Elements: int(keys) * visits, HeapPerRawAtMost: 2.5, GCShareAtMost: 0.01}
	debug.FreeOSMemory() // what other workloads have left behind
	before := readUsage()
	var full usage
	var mallocs runtime.MemStats
	var took time.Duration
	start := time.Now()

	// All subtasks wait at their ends until the last one has measured.
	var toCome atomic.Int32
	toCome.Store(2)
	measured := make(chan struct{})
	out := newTally(rollingCounts)
	out.end = func() {
		if toCome.Add(-1) == 0 {
			took = time.Since(start)
			full = readUsage()
			runtime.ReadMemStats(&mallocs)
			close(measured)
		}
		select {
		case <-measured:
		case <-ctx.Done():
		}
	}
	var at runtime.MemStats
	runtime.ReadMemStats(&at)
	err := execute(ctx, "memory", 2, func(env *stream.Env) {
		env.FromSequence(0, keys*visits-1).
			KeyBy(func(i int64) uint64 { return uint64(i % keys) }).
			Count().
			SinkTo(out)
	})
	if err != nil {
		return l, err
	}
	l.Checksum = out.total.Load()
	if want := uint64(keys) * uint64(keys-1) / 2 * (visits * (visits + 1) / 2); l.Checksum != want {
		return l, fmt.Errorf("compare the results: checksum %d, want %d", l.Checksum, want)
	}
	n := float64(l.Elements)
	l.ElementsPerS, l.NsPerElement = n/took.Seconds(), took.Seconds()*1e9/n
	l.AllocsPerElement = float64(mallocs.Mallocs-at.Mallocs) / n
	raw := float64(keys * rawEntry)
	l.HeapPerRaw = (full.heap - before.heap) / raw
	l.MappedPerRaw = (full.mapped - before.mapped) / raw
	l.GCShare = (full.gc - before.gc) / (full.busy - before.busy)
	return l, nil
}
