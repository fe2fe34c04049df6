package streaming_test

import (
	"testing"

	"github.com/flott-dev/flott/conformance"
)

// TestAsyncWaitCoverage counts the family for the coverage table, and cuts its elements in the ways of the other families.
func TestAsyncWaitCoverage(t *testing.T) {
	operators := conformance.EachWay(func(t *testing.T, c conformance.Case, w conformance.Way) {
		var v asyncCase
		c.Decode(t, &v)
		runAsyncOperator(t, &v, w.Next)
	})
	s := conformance.Suite{
		Folder: "streaming", Family: "async_wait", Rewrite: *rewrite,
		Runners: map[string]conformance.Runner{
			"async_queue": func(t *testing.T, c conformance.Case) {
				var v asyncCase
				c.Decode(t, &v)
				runAsyncQueue(t, &v)
			},
			"async_operator": operators, "async_chain": operators,
		},
	}
	s.Run(t)
}
