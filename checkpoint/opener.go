package checkpoint

import (
	"context"
	"net/url"

	"github.com/flott-dev/flott/internal/vfs"
)

// FS is a file system as snapshots see it.
type FS = vfs.FS

// Opener opens the places that URLs name: object stores, HDFS. Each is a module of its own, which a program passes to its
// environment, so that no program carries a client that it does not use. It may be used by all goroutines.
type Opener interface {
	// Schemes are the schemes of the URLs that it opens, in lower case: "s3" for example.
	Schemes() []string
	// Open gives the file system behind a URL and the path, in it, of the folder that the URL names. ctx is that of the
	// opening only. Nothing is written, so that a place that can't be written to may be found out later.
	Open(ctx context.Context, u *url.URL) (f FS, dir string, err error)
}
