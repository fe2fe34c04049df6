package process

import (
	"math"
	"time"

	"github.com/flott-dev/flott/internal/frame"
)

// Domain is the kind of time that a timer follows.
type Domain uint8

const (
	// EventTime timers fire when the watermark reaches them.
	EventTime Domain = iota
	// ProcessingTime timers fire when the wall clock is past them.
	ProcessingTime
)

// String gives the domain's name.
func (d Domain) String() string {
	if d == EventTime {
		return "event time"
	}
	return "processing time"
}

// Timer is a timer that fires.
type Timer struct {
	Domain Domain // the kind of time it follows
	Millis int64  // the time it was registered for, ms since 1970
}

// Time is the time it was registered for.
func (t Timer) Time() time.Time { return time.UnixMilli(t.Millis) }

// KeyedContext is a Context with the key at hand and its timers. Timers are a set: one per key, domain and time,
// however often it is registered; they fire in time order.
type KeyedContext[K any] struct {
	Context
	keys []K  // of the run at hand
	at   *int // which one
	one  [1]K // keys of a context that is given one key at a time
	zero int
}

// NewKeyedContext is for drivers and test harnesses.
func NewKeyedContext[K any](s Services) *KeyedContext[K] {
	return &KeyedContext[K]{Context: Context{services: s, time: frame.NoTime}}
}

// SetKey is for drivers: the key at hand.
func (c *KeyedContext[K]) SetKey(k K) {
	c.one[0] = k
	c.keys, c.at = c.one[:], &c.zero
}

// SetKeys is for drivers: the keys of a run, of which the one at index *at is at hand. So a driver that goes through a run
// moves one number.
func (c *KeyedContext[K]) SetKeys(keys []K, at *int) { c.keys, c.at = keys, at }

// Key is the key of the element or timer at hand.
func (c *KeyedContext[K]) Key() K { return c.keys[*c.at] }

// RegisterEventTimeTimer makes OnTimer be called for the key once the watermark reaches t (rounded up to ms): with the
// next watermark if it is there already.
func (c *KeyedContext[K]) RegisterEventTimeTimer(t time.Time) {
	c.services.Register(EventTime, ceilMillis(t))
}

// RegisterProcessingTimeTimer makes OnTimer be called for the key once the wall clock is past t (rounded up to ms).
func (c *KeyedContext[K]) RegisterProcessingTimeTimer(t time.Time) {
	c.services.Register(ProcessingTime, ceilMillis(t))
}

// DeleteEventTimeTimer takes a timer of the key back; nothing happens if there is none.
func (c *KeyedContext[K]) DeleteEventTimeTimer(t time.Time) {
	c.services.Delete(EventTime, ceilMillis(t))
}

// DeleteProcessingTimeTimer takes a timer of the key back; nothing happens if there is none.
func (c *KeyedContext[K]) DeleteProcessingTimeTimer(t time.Time) {
	c.services.Delete(ProcessingTime, ceilMillis(t))
}

// RegisterTimer and DeleteTimer are the same in ms since 1970.
func (c *KeyedContext[K]) RegisterTimer(d Domain, ms int64) { c.services.Register(d, ms) }

// DeleteTimer takes a timer of the key back.
func (c *KeyedContext[K]) DeleteTimer(d Domain, ms int64) { c.services.Delete(d, ms) }

// ceilMillis rounds up so that a timer never fires early, and saturates.
func ceilMillis(t time.Time) int64 {
	ms := t.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) != 0 && ms != math.MaxInt64 {
		ms++
	}
	return ms
}
