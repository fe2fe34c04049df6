package stream

import (
	"fmt"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/source"
	"github.com/flott-dev/flott/internal/operator/watermarks"
	"github.com/flott-dev/flott/watermark"
)

// TimeCharacteristic is the kind of time that a job is built on: it sets defaults, see SetStreamTimeCharacteristic.
type TimeCharacteristic uint8

const (
	// EventTime is the time in the elements, which strategies find (AssignTimestampsAndWatermarks). It is the default.
	EventTime TimeCharacteristic = iota
	// ProcessingTime is the clock of the machine that handles an element.
	ProcessingTime
	// IngestionTime is the clock of the source that an element came from: event time that sources assign.
	IngestionTime
)

// String gives the name.
func (c TimeCharacteristic) String() string {
	switch c {
	case EventTime:
		return "event time"
	case ProcessingTime:
		return "processing time"
	case IngestionTime:
		return "ingestion time"
	}
	return fmt.Sprintf("time characteristic %d", uint8(c))
}

// SetStreamTimeCharacteristic sets what follows from the kind of time: the auto watermark interval (200 ms with event and
// ingestion time, 0 with processing time), whether TimeWindow means event or processing time, and, with ingestion time,
// that every source made from now on stamps its elements with the clock and makes watermarks from it, in place of its
// own. The default is event time.
func (e *Env) SetStreamTimeCharacteristic(c TimeCharacteristic) *Env {
	switch c {
	case EventTime, IngestionTime:
		e.e.Settings.AutoWatermark = 200 * time.Millisecond
	case ProcessingTime:
		e.e.Settings.AutoWatermark = 0
	default:
		e.report(fmt.Errorf("set the stream time characteristic: unknown %v", c))
		return e
	}
	e.time = c
	return e
}

// StreamTimeCharacteristic is the kind of time that was set.
func (e *Env) StreamTimeCharacteristic() TimeCharacteristic { return e.time }

// AssignTimestampsAndWatermarks gives elements timestamps and the stream watermarks, both by the strategy: watermarks of
// upstream operators are replaced by its own. Do it at the source or right behind it, where elements are still in the
// order in which they were read. Periodic strategies are asked every auto watermark interval.
func (s *Stream[T]) AssignTimestampsAndWatermarks[S watermark.Strategy[T]](strategy S) *Stream[T] {
	st, typ := watermark.Strategy[T](strategy), s.c.typ
	if err := st.Err(); err != nil {
		s.c.env.report(fmt.Errorf("assign timestamps and watermarks: %w", err))
	}
	c := s.c.apply("Timestamps/Watermarks", typ, func() operator.Operator { return watermarks.New(typ, st, nil) })
	c.node.MakesWatermarks = true
	if assigns(st.Spec()) {
		c.timed()
	}
	return &Stream[T]{c}
}

// assigns reports whether a strategy gives elements timestamps; the others make watermarks from those that elements have.
func assigns[T any](s watermark.Spec[T]) bool {
	return s.Millis != nil || s.Pointer != nil || s.Assign != nil || s.AssignPointer != nil
}

// AssignAscendingTimestamps is AssignTimestampsAndWatermarks for timestamps that never fall within a subtask; one that
// does is logged, and its element may be late.
func (s *Stream[T]) AssignAscendingTimestamps[F func(T) time.Time](at F) *Stream[T] {
	return s.AssignTimestampsAndWatermarks(watermark.Ascending[T](at))
}

// TimestampExtractor finds timestamps and watermarks in elements, in Flink's oldest way. Times are in ms since 1970. Each
// subtask has one of its own, which may keep what it has seen.
type TimestampExtractor[T any] interface {
	// ExtractTimestamp is the timestamp of x; current is the one that it has, math.MinInt64 if none.
	ExtractTimestamp(x T, current int64) int64
	// ExtractWatermark is a watermark that follows x, which has got the timestamp ms; math.MinInt64 if there is none. One
	// that does not grow is dropped.
	ExtractWatermark(x T, ms int64) int64
	// CurrentWatermark is asked every auto watermark interval; math.MinInt64 if there is none.
	CurrentWatermark() int64
}

// AssignTimestamps gives elements timestamps and the stream watermarks by extractors, of which fresh makes one for each
// subtask. New programs use AssignTimestampsAndWatermarks.
func (s *Stream[T]) AssignTimestamps[X TimestampExtractor[T]](fresh func() X) *Stream[T] {
	typ := s.c.typ
	c := s.c.apply("Extract Timestamps", typ, func() operator.Operator {
		x := fresh()
		return watermarks.NewExtracting(typ, x.CurrentWatermark, func(r *frame.Run, i int, current int64) (ms, watermark int64) {
			v := frame.Values[T](r)[i]
			ms = x.ExtractTimestamp(v, current)
			return ms, x.ExtractWatermark(v, ms)
		})
	})
	c.timed().node.MakesWatermarks = true
	return &Stream[T]{c}
}

// FromSourceWithWatermarks is FromSource with AssignTimestampsAndWatermarks in the source itself. There the strategy's
// alignment has an effect: subtasks that are too far ahead of the others of their group stop reading until those have come
// closer. And where a reader tells its splits apart (connector.Output.Split: a log's partitions, say), each has watermarks
// and idleness of its own, so that one that is behind or silent is not hidden by the others of its subtask.
func (e *Env) FromSourceWithWatermarks[T, S any](src connector.Source[T, S], strategy watermark.Strategy[T], name string) *Stream[T] {
	s := e.FromSource(src, name)
	if err := strategy.Err(); err != nil {
		e.report(fmt.Errorf("read source %q with watermarks: %w", name, err))
	}
	s.c.node.MakesWatermarks = true
	if assigns(strategy.Spec()) {
		s.c.timed()
	}
	typ, node, align := s.c.typ, s.c.node, strategy.Spec().Alignment
	group := e.alignment(align)
	open := node.New
	node.New = func() operator.Operator {
		if group == nil {
			return source.Stamped(open(), watermarks.NewPerSplit(typ, strategy, nil), nil, 0)
		}
		m := group.Join()
		return source.Stamped(open(), watermarks.NewPerSplit(typ, strategy, m), m.Paused, group.Interval())
	}
	return s
}

// alignment is the group of that name, shared by all sources of the environment; nil without alignment.
func (e *Env) alignment(a watermark.Alignment) *watermarks.Group {
	if a.Group == "" {
		return nil
	}
	g := e.aligned[a.Group]
	if g == nil {
		g = watermarks.NewGroup(a)
		if e.aligned == nil {
			e.aligned = map[string]*watermarks.Group{}
		}
		e.aligned[a.Group] = g
	}
	return g
}

// ingest makes a source stamp its elements with the clock if the environment's time is ingestion time.
func (e *Env) ingest(out *frame.Type, open func() operator.Operator) func() operator.Operator {
	if e.time != IngestionTime {
		return open
	}
	return func() operator.Operator { return source.Stamped(open(), watermarks.NewIngesting(out), nil, 0) }
}
