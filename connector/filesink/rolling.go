package filesink

import (
	"maps"
	"slices"
)

// Moment is when a rolling policy is asked.
type Moment uint8

const (
	// AtElement is before an element of the file's bucket is written: to this file, or to a new one if it is closed.
	AtElement Moment = iota
	// AtTime is at a look that the sink takes at its files by the clock: see CheckInterval.
	AtTime
	// AtCheckpoint is at a checkpoint or savepoint, which will cover the file.
	AtCheckpoint
)

// String gives the moment's word.
func (m Moment) String() string {
	return [...]string{"element", "time", "checkpoint"}[min(m, AtCheckpoint)]
}

// Part is what a rolling policy sees of a file that is being written.
type Part struct {
	// When is the moment at which the policy is asked.
	When Moment
	// Now is the processing time, in ms since 1970.
	Now int64
	// Bucket is the folder below the sink's; "": the folder itself.
	Bucket string
	// Elements is how many elements were written to the file.
	Elements int64
	// Size is its size in bytes, with what is gathered and not written yet.
	Size int64
	// Created is when the file was begun, Changed when the last element was written to it: processing times in ms.
	Created, Changed int64
}

// over tells whether a file is to be closed.
func (p *parts) over(f *part, when Moment, now int64) bool {
	if p.policy != nil {
		return p.policy(Part{
			When: when, Now: now, Bucket: f.bucket, Elements: f.elements, Size: f.weight(), Created: f.created, Changed: f.changed,
		})
	}
	return p.maxSize > 0 && f.weight() > p.maxSize || p.old(f, now)
}

// young is over, told quickly where the answer is no for most elements: of files of records, without a policy.
func (p *parts) young(f *part, now int64) bool {
	return !p.slow && f.size+int64(len(f.buf)) <= p.maxSize && !p.old(f, now)
}

// old tells whether a file was begun or written to too long ago.
func (p *parts) old(f *part, now int64) bool {
	return p.rollover > 0 && now-f.created >= p.rollover.Milliseconds() ||
		p.inactivity > 0 && now-f.changed >= p.inactivity.Milliseconds()
}

// look closes what is to be closed by the clock. It returns when it is to be called next, in ms; 0: never.
func (p *parts) look(now int64) (next int64, err error) {
	if p.every == 0 {
		return 0, nil
	}
	if p.nextLook == 0 || now >= p.nextLook {
		first := p.nextLook == 0
		p.nextLook = now + p.every.Milliseconds()
		if first {
			return p.nextLook, nil
		}
		for _, bucket := range slices.Sorted(maps.Keys(p.open)) {
			f := p.open[bucket]
			if !p.over(f, AtTime, now) {
				continue
			}
			if err := p.close(f); err != nil {
				return 0, p.fail(err)
			}
		}
	}
	return p.nextLook, nil
}
