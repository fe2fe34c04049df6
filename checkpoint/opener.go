package checkpoint

import (
	"context"
	"net/url"

	"github.com/flott-dev/flott/internal/vfs"
)

// FS is a file system as snapshots see it, and what an Opener gives: whoever wants snapshots to lie in a storage of his own
// implements it, and runs the suite of storage/storagetest. Names are slash-separated paths; errors are those of io/fs
// (fs.ErrNotExist, ...) in an *fs.PathError. All goroutines may use it.
type FS = vfs.FS

// WholeFS is an FS that tells whether its files appear whole, as those of object stores do. Manifests are written there under
// their own name at once: of two processes that complete a checkpoint of one number, as one of them stood still and was taken
// for dead, the second one is refused. In any other FS they are written under another name and renamed.
type WholeFS interface {
	FS
	// WholeFiles reports whether a file in this folder exists from the moment when FileWriter.Close returns nil, whole and
	// durably, and not before; and whether Close fails with fs.ErrExist, and changes nothing, if the file is Exclusive and
	// somebody else has made it since Create.
	WholeFiles(folder string) bool
}

// wholeFiles reports whether the files in a folder appear whole.
func wholeFiles(f FS, folder string) bool {
	w, ok := f.(WholeFS)
	return ok && w.WholeFiles(folder)
}

// File is a file of an FS, open for reading. ReadAt may be called by several goroutines at a time.
type File = vfs.File

// FileWriter is a file of an FS, open for writing. When Sync has returned nil, or Close where files appear whole, what was
// written survives a crash, and the file's name does after FS.SyncDir. Sync may be called while another goroutine writes.
type FileWriter = vfs.Writer

// CreateMode says what FS.Create does with a file that exists.
type CreateMode = vfs.Mode

// The modes. Snapshots need the first two; Append may be errors.ErrUnsupported.
const (
	// Truncate empties it.
	Truncate = vfs.Truncate
	// Exclusive fails with fs.ErrExist.
	Exclusive = vfs.Exclusive
	// Append writes behind what is there.
	Append = vfs.Append
)

// Opener opens the places that URLs name: object stores, HDFS. Each is a module of its own, which a program passes to its
// environment, so that no program carries a client that it does not use. It may be used by all goroutines.
type Opener interface {
	// Schemes are the schemes of the URLs that it opens, in lower case: "s3" for example.
	Schemes() []string
	// Open gives the file system behind a URL and the path, in it, of the folder that the URL names. ctx is that of the
	// opening only. Nothing is written, so that a place that can't be written to may be found out later.
	Open(ctx context.Context, u *url.URL) (f FS, dir string, err error)
}
