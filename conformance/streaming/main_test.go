package streaming_test

import (
	"flag"
	"os"
	"testing"

	"github.com/flott-dev/flott/flotttest"
)

var rewrite = flag.Bool("rewrite", false, "rewrite conformance/coverage.txt")

func TestMain(m *testing.M) { os.Exit(flotttest.CheckLeaks(m)) }
