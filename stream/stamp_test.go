package stream_test

import (
	"fmt"

	"github.com/flott-dev/flott/process"
)

// stamper makes text of readings and their timestamps.
type stamper struct{}

func stampOf(*process.Runtime) stamper { return stamper{} }

func (stamper) ProcessElement(ctx *process.Context, r reading, out *process.Collector[string]) error {
	out.Collect(fmt.Sprintf("%d@%d", r.Val, ctx.TimestampMillis()))
	return nil
}
