package process

import "time"

// JoinFunction handles the pairs of an interval join: two elements of one key whose timestamps lie within the interval.
// A constructor makes one per subtask; it may declare state, which belongs to the key of the pair. If it also has Close()
// error, that is called at the end of the task, whatever the end; if it has Finish(*Collector[R]) error, that is called at
// the end of both inputs, without a key, and may emit.
type JoinFunction[A, B, R any] interface {
	// ProcessElement is called once for each pair, as soon as its second element has come. What it emits has the larger
	// one of the two timestamps. An error fails the task.
	ProcessElement(ctx *JoinContext, a A, b B, out *Collector[R]) error
}

// JoinContext is a Context with the timestamps of a pair. Its own timestamp, that of what is emitted, is the larger one.
type JoinContext struct {
	Context
	left, right int64
}

// NewJoinContext is for drivers and test harnesses.
func NewJoinContext(s Services) *JoinContext { return &JoinContext{Context: *NewContext(s)} }

// SetPair is for drivers: the timestamps (ms) of the pair at hand.
func (c *JoinContext) SetPair(left, right int64) {
	c.left, c.right = left, right
	c.SetTime(max(left, right))
}

// LeftTimestamp is the event time of the left element.
func (c *JoinContext) LeftTimestamp() time.Time { return time.UnixMilli(c.left) }

// LeftTimestampMillis is the event time of the left element in ms since 1970.
func (c *JoinContext) LeftTimestampMillis() int64 { return c.left }

// RightTimestamp is the event time of the right element.
func (c *JoinContext) RightTimestamp() time.Time { return time.UnixMilli(c.right) }

// RightTimestampMillis is the event time of the right element in ms since 1970.
func (c *JoinContext) RightTimestampMillis() int64 { return c.right }
