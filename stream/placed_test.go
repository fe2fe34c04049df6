package stream_test

import (
	"testing"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/stream"
)

// noting embeds a sink to see its commits.
type noting struct{ *filesink.Sink[string] }

// placedNoting does so rightly.
type placedNoting struct{ noting }

func (n placedNoting) PlacedBy(find connector.Places) connector.CommittingSink[string, filesink.Committable] {
	n.Sink = n.Sink.PlacedBy(find).(*filesink.Sink[string])
	return n
}

// What embeds a connector must not be replaced by it in silence.
func TestConnectorsAroundOthersStayThemselves(t *testing.T) {
	to := func(sink connector.CommittingSink[string, filesink.Committable]) *stream.Env {
		env := stream.NewEnv().SetParallelism(1)
		env.FromElements("a").CommitTo[filesink.Committable](sink)
		return env
	}
	inner := noting{filesink.New(t.TempDir(), file.TextEncoding[string]("\n"))}
	executeFailing(t, to(inner), "stream_test.noting", "a PlacedBy of its own")
	execute(t, to(placedNoting{inner}))
}
