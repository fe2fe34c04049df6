package process

import "fmt"

// KeyValue is a value of a key: what rolling aggregates emit.
type KeyValue[K, V any] struct {
	Key   K
	Value V
}

// String prints the pair as (key,value), as Flink prints tuples.
func (p KeyValue[K, V]) String() string { return fmt.Sprintf("(%v,%v)", p.Key, p.Value) }
