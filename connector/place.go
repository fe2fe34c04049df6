package connector

import (
	"strings"

	"github.com/flott-dev/flott/internal/vfs"
)

// Place is where a path or URL leads that a program has given to a connector.
type Place struct {
	// FS is the file system.
	FS vfs.FS
	// Path is the name in it.
	Path string
	// Remote says that it is no disk of this machine: files may appear when they are closed and not before, nothing can be
	// written behind what they hold, and each call is a request over the network.
	Remote bool
}

// Places finds the place that a path or URL means: the environment's. A URL that nothing opens is an error that says what to
// link.
type Places func(location string) (Place, error)

// Placed is implemented by connectors that read and write what URLs name. S is the interface by which the engine drives the
// connector: a Source, Sink or CommittingSink.
type Placed[S any] interface {
	// PlacedBy returns the connector with its paths and URLs found. It is called once, when the stream is built; what goes wrong
	// is told by the returned connector's Check. A connector that embeds another one has a PlacedBy of its own, which returns
	// it and not what it embeds.
	PlacedBy(find Places) S
}

// IsURL tells whether a location is a URL and not a path, so that a connector that was not told what it means can refuse it:
// "file:..." or "scheme://...".
func IsURL(location string) bool {
	scheme, rest, ok := strings.Cut(location, ":")
	if !ok || len(scheme) < 2 || strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+-.") != "" {
		return false
	}
	return strings.EqualFold(scheme, "file") || strings.HasPrefix(rest, "//")
}
