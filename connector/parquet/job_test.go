package parquet_test

import (
	"testing"

	"github.com/flott-dev/flott/connector/parquet"
	"github.com/flott-dev/flott/internal/bulktest"
)

func TestJobsThatAreRestartedWriteAndReadEachRowOnce(t *testing.T) {
	bulktest.Format[reading]{
		Encoding: parquet.Encoding[reading](parquet.RowGroupSize(1 << 14)), Reading: parquet.Format[reading](),
		Row:    func(n int) reading { return readings(n, n+1)[0] },
		Number: func(r reading) int { return int(r.ID) },
		Same: func(r reading, n int) bool {
			return r.ID == int64(n) && r.Value == float64(n)/4 && len(r.Tags) == n%4
		},
	}.Restarts(t)
}
