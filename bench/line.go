package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// line is the result of one workload, as -json prints it. What does not apply is left out.
type line struct {
	Name             string  `json:"name"`
	Parallelism      int     `json:"parallelism"`
	Elements         int     `json:"elements"`
	ElementsPerS     float64 `json:"elements_per_s"`
	NsPerElement     float64 `json:"ns_per_element"`
	AllocsPerElement float64 `json:"allocs_per_element"`
	CPUNsPerElement  float64 `json:"cpu_ns_per_element,omitempty"` // of all processors
	Checksum         uint64  `json:"checksum"`
	LoopElementsPerS float64 `json:"loop_elements_per_s,omitempty"`
	Ratio            float64 `json:"ratio,omitempty"`                  // ours / the loop's elements per second
	CPURatio         float64 `json:"cpu_ratio,omitempty"`              // the loop's CPU time / ours: steadier on a machine with other work
	Must             float64 `json:"must,omitempty"`                   // the ratio that is asked for
	MustRate         float64 `json:"must_elements_per_s,omitempty"`    // the elements per second that are asked for
	Speedup          float64 `json:"speedup,omitempty"`                // ours, from one worker to two
	LoopSpeedup      float64 `json:"loop_speedup,omitempty"`           // the loop's
	HeapPerRaw       float64 `json:"heap_bytes_per_raw,omitempty"`     // live heap / bytes of keys and values
	MappedPerRaw     float64 `json:"mapped_bytes_per_raw,omitempty"`   // memory held from the system / the same
	GCShare          float64 `json:"gc_cpu_share,omitempty"`           // of the CPU time that the run used
	HeapPerRawAtMost float64 `json:"heap_bytes_per_raw_max,omitempty"` // what is asked for
	GCShareAtMost    float64 `json:"gc_cpu_share_max,omitempty"`
	ElementsPerCoreS float64 `json:"elements_per_core_s,omitempty"` // elements / CPU seconds
	FlinkPerCoreS    float64 `json:"flink_per_core_s,omitempty"`    // as published, on other machines
	FlinkRatio       float64 `json:"flink_ratio,omitempty"`         // ours / Flink's per core
	FlinkMust        float64 `json:"flink_ratio_must,omitempty"`    // the ratio that is asked for
	// FlinkRatioGenerated is FlinkRatio with the generator's CPU time added to ours.
	FlinkRatioGenerated float64 `json:"flink_ratio_generated,omitempty"`
}

// fill sets the figures of a comparison.
func (l *line) fill(c comparison) {
	n := float64(l.Elements)
	l.ElementsPerS, l.NsPerElement = n/c.ours.seconds, c.ours.seconds*1e9/n
	l.CPUNsPerElement, l.AllocsPerElement = c.ours.cpu*1e9/n, c.ours.allocs/n
	l.LoopElementsPerS, l.Ratio = n/c.loop.seconds, c.loop.seconds/c.ours.seconds
	if c.ours.cpu > 0 {
		l.CPURatio = c.loop.cpu / c.ours.cpu
	}
}

// printer returns the function that prints one line.
func printer(out io.Writer, asJSON bool) func(line) error {
	if asJSON {
		e := json.NewEncoder(out)
		return func(l line) error { return e.Encode(l) }
	}
	first := true
	return func(l line) error {
		if first {
			first = false
			_, err := fmt.Fprintf(out, "%-24s %2s %9s %8s %8s %8s %9s %9s %6s %6s %5s  %s\n",
				"workload", "p", "elements", "M/s", "ns", "cpu ns", "allocs", "loop M/s", "ratio", "cpu", "must", "")
			if err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(out, "%-24s %2d %9d %8.1f %8.2f %8s %9.5f %9s %6s %6s %5s  %s\n",
			l.Name, l.Parallelism, l.Elements, l.ElementsPerS/1e6, l.NsPerElement, given("%.2f", l.CPUNsPerElement), l.AllocsPerElement,
			given("%.1f", l.LoopElementsPerS/1e6), given("%.2f", l.Ratio), given("%.2f", l.CPURatio), given("%.2f", l.Must), l.remark())
		return err
	}
}

// given formats a figure that may be left out.
func given(format string, x float64) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf(format, x)
}

// remark says what has no column.
func (l *line) remark() string {
	switch {
	case l.Speedup != 0:
		return fmt.Sprintf("1 -> 2 workers: %.2fx (loop %.2fx)", l.Speedup, l.LoopSpeedup)
	case l.HeapPerRaw != 0:
		return fmt.Sprintf("heap %.2fx raw (at most %.1f), mapped %.2fx, GC %.2f %% of CPU (at most %.0f)",
			l.HeapPerRaw, l.HeapPerRawAtMost, l.MappedPerRaw, l.GCShare*100, l.GCShareAtMost*100)
	case l.FlinkRatio != 0 && l.FlinkPerCoreS == 0:
		return fmt.Sprintf("%.0fx Flink's (at least %.0fx); %.0fx with the generator", l.FlinkRatio, l.FlinkMust, l.FlinkRatioGenerated)
	case l.FlinkRatio != 0:
		return fmt.Sprintf("%.2f M/s a core: %.0fx Flink's %.4f (at least %.0fx); %.0fx with the generator",
			l.ElementsPerCoreS/1e6, l.FlinkRatio, l.FlinkPerCoreS/1e6, l.FlinkMust, l.FlinkRatioGenerated)
	case l.ElementsPerCoreS != 0:
		return fmt.Sprintf("%.2f M/s a core", l.ElementsPerCoreS/1e6)
	case l.Ratio < l.Must || l.ElementsPerS < l.MustRate:
		return "below what is asked for"
	case l.MustRate != 0:
		return fmt.Sprintf("%.0f M/s are asked for", l.MustRate/1e6)
	}
	return ""
}
