package process

// Accumulator is a value that subtasks add to while the job runs and that the client sees merged, during the run and in
// the job's result. One subtask owns it; Snapshot may be called from another goroutine.
type Accumulator interface {
	// Snapshot is the present local value; it shares no memory with the accumulator.
	Snapshot() AccumulatorValue
}

// AccumulatorValue is a value of an accumulator, of one subtask or merged.
type AccumulatorValue interface {
	// Merge returns the two values as one. other is of the same kind.
	Merge(other AccumulatorValue) (AccumulatorValue, error)
	// Value is what the client sees: int64, float64, map[int64]int64 ...
	Value() any
}

// Metric is a metric of the operator's metric group.
type Metric interface {
	// Read is the present value; safe for concurrent use.
	Read() any
}
