package blob

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"sync"

	"gocloud.dev/blob/memblob"

	"github.com/flott-dev/flott/checkpoint"
)

// Opener opens buckets in memory: "mem://NAME/FOLDER", or "mem:///FOLDER" for the one without a name. They live as long as the
// Opener, are those of nobody else, and are lost with the process: they are for tests of programs that keep snapshots in an
// object store, with that store's semantics. It must not be copied.
type Opener struct {
	mu      sync.Mutex
	buckets map[string]*FS
}

// NewOpener gives an opener without buckets; they come into being when they are opened.
func NewOpener() *Opener { return &Opener{buckets: map[string]*FS{}} }

// Schemes implements checkpoint.Opener: "mem".
func (o *Opener) Schemes() []string { return []string{"mem"} }

// Open implements checkpoint.Opener.
func (o *Opener) Open(_ context.Context, u *url.URL) (f checkpoint.FS, dir string, err error) {
	if u.RawQuery != "" {
		return nil, "", fmt.Errorf("open %s: buckets in memory have no options", u.Redacted())
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	bucket := o.buckets[u.Host]
	if bucket == nil {
		bucket = New(memblob.OpenBucket(nil), Options{})
		o.buckets[u.Host] = bucket
	}
	return bucket, Folder(u), nil
}

// Folder is the path, in the file system of a bucket, of what a URL names: that of the URL, or what comes behind the scheme if
// it has no host; never empty, always absolute. Openers use it.
func Folder(u *url.URL) string {
	return path.Clean("/" + u.Path + u.Opaque)
}
