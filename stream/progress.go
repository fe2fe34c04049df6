package stream

import (
	"fmt"
	"io"
	"math"
	"time"
)

// ShowProgress writes a line about the job to w twice a second, over itself, until the job has ended: elements read,
// elements and megabytes per second, and how far the least watermark of the sources lies behind the clock. It returns
// when the job has ended; run it on a goroutine of its own or before Wait. Meant for terminals.
func (j *Job) ShowProgress(w io.Writer) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	last, at := j.read(), time.Now()
	for {
		select {
		case <-j.Done():
			fmt.Fprint(w, "\r\x1b[K")
			return
		case now := <-tick.C:
			next := j.read()
			seconds := now.Sub(at).Seconds()
			fmt.Fprintf(w, "\r\x1b[K%s  %s elements  %s elements/s  %.1f MB/s  watermark lag %s",
				j.Status(), short(float64(next.elements)), short(float64(next.elements-last.elements)/seconds),
				float64(next.bytes-last.bytes)/seconds/1e6, next.lag(now))
			last, at = next, now
		}
	}
}

// progress is what the sources have done so far.
type progress struct {
	elements, bytes int64
	watermark       int64
}

func (j *Job) read() progress {
	p := progress{watermark: math.MaxInt64}
	for _, m := range j.Metrics() {
		if !m.Source {
			continue
		}
		p.elements += m.RecordsOut
		p.watermark = min(p.watermark, m.Watermark)
		for _, v := range m.User["numBytesIn"] {
			if n, ok := v.(int64); ok {
				p.bytes += n
			}
		}
	}
	return p
}

func (p progress) lag(now time.Time) string {
	if p.watermark == math.MinInt64 || p.watermark == math.MaxInt64 {
		return "-"
	}
	return time.Duration((now.UnixMilli() - p.watermark) * int64(time.Millisecond)).Round(10 * time.Millisecond).String()
}

// short writes a number with three digits and a unit.
func short(x float64) string {
	for _, unit := range []string{"", "k", "M", "G"} {
		if x < 1000 || unit == "G" {
			return fmt.Sprintf("%.3g%s", x, unit)
		}
		x /= 1000
	}
	return ""
}
