// Package blob keeps snapshots in object stores: a checkpoint.FS over a bucket of gocloud.dev. It owns how files, folders and
// their guarantees are made of objects; it never knows what files hold, which service is behind the bucket, or when a snapshot
// is taken. The openers of storage/s3, storage/gs and storage/azure call it; programs with a bucket of their own may, too.
//
// An object appears whole when its Writer is closed, and survives from then on. Folders are prefixes of names: there are no
// objects for them, making one costs nothing, and one in which nothing lies is the same as none.
package blob

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/flott-dev/flott/internal/vfs"
)

// The defaults of Options.
const (
	// DefaultTimeout is how long a store may be silent.
	DefaultTimeout = 2 * time.Minute
	// DefaultPartBytes is the size of the parts in which files are uploaded.
	DefaultPartBytes = 8 << 20
	// DefaultParts is how many parts of one file are uploaded at a time.
	DefaultParts = 4
)

// Options are those of an FS. The zero value has the defaults.
type Options struct {
	// Timeout is how long a call waits without progress before it fails with an error that is os.ErrDeadlineExceeded; 0:
	// DefaultTimeout. The last PartBytes * Parts of a file are sent as one call. Retries of the bucket's driver come out of it.
	Timeout time.Duration
	// PartBytes is the size of the parts in which files are uploaded; 0: DefaultPartBytes. Stores have a least size (S3: 5 MiB)
	// and a largest number of parts (S3: 10,000, so that a file has at most 80 GB by default).
	PartBytes int
	// Parts is how many parts of one file are uploaded at a time; 0: DefaultParts. A file being written takes PartBytes * Parts
	// of memory.
	Parts int
	// Classify gives the error of io/fs that an error of the bucket means (fs.ErrPermission, for example), or nil to leave that
	// to the driver's own word. It may be nil.
	Classify func(error) error
}

// FS is a bucket as a file system. Names are slash-separated; a leading slash means nothing, and "/" is the bucket. Its errors
// are those of io/fs in an *fs.PathError.
//
// What differs from a disk: a Writer's file exists, whole, when Close returned nil, and not before; Sync and SyncDir have
// nothing to do. Folders need not be made, and listing one that does not exist gives nothing. Rename copies and removes: the
// new name means the old file or the new one, whole, at every moment, but after a crash in between both names exist.
// Append and Truncate are errors.ErrUnsupported.
type FS struct {
	bucket    *blob.Bucket
	options   Options
	copyBytes int64 // what is larger may be too large for the store to copy

	mu sync.Mutex
	// doubtful are the files that were made exclusively and could not be closed, by key: what lies there may be somebody
	// else's. The value is the mark that ours would have.
	doubtful map[string]string
}

// New gives the file system of a bucket, which stays open as long as the FS is used.
func New(bucket *blob.Bucket, o Options) *FS {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.PartBytes == 0 {
		o.PartBytes = DefaultPartBytes
	}
	if o.Parts == 0 {
		o.Parts = DefaultParts
	}
	return &FS{bucket: bucket, options: o, copyBytes: 5 << 30, doubtful: map[string]string{}}
}

// key is the object's key of a name; "" is that of the bucket itself.
func key(name string) string {
	k := strings.TrimPrefix(path.Clean(name), "/")
	if k == "." {
		return ""
	}
	return k
}

// folderMark is the metadata by which stores with real folders mark them, and isFolder tells.
const folderMark = "hdi_isfolder"

func isFolder(a *blob.Attributes) bool { return a.Metadata[folderMark] == "true" }

// Open opens a file for reading, as it is now. Reading from front to back is one request, however long the file is; reading at
// other places is one request each.
func (f *FS) Open(name string) (vfs.File, error) {
	k := key(name)
	if k == "" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EISDIR}
	}
	w := f.wait()
	defer w.end()
	a, err := f.bucket.Attributes(w.ctx, k)
	if err != nil {
		return nil, f.failed("open", name, w, err)
	}
	return &file{f: f, name: name, key: k, size: a.Size, info: info{path.Base(k), a.Size, a.ModTime, false}}, nil
}

// Create opens a file for writing. It exists when Close returned nil and not before; then it survives. With vfs.Exclusive,
// Create fails with fs.ErrExist if the file exists, and Close does if somebody else has made it in the meantime: theirs stays,
// and a Remove of the name that follows does not touch it. This needs a store with conditional writes; one that ignores the
// condition (S3-compatible ones of before 2024) lets the last Close win.
func (f *FS) Create(name string, how vfs.Mode) (vfs.Writer, error) {
	k := key(name)
	if k == "" {
		return nil, &fs.PathError{Op: "create", Path: name, Err: syscall.EISDIR}
	}
	switch how {
	case vfs.Truncate:
	case vfs.Exclusive:
		w := f.wait()
		defer w.end()
		exists, err := f.bucket.Exists(w.ctx, k)
		if err == nil && exists {
			return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
		}
		if err != nil {
			return nil, f.failed("create", name, w, err)
		}
	default:
		return nil, &fs.PathError{Op: "append", Path: name, Err: errors.ErrUnsupported}
	}
	o := &blob.WriterOptions{ContentType: contentType}
	if how == vfs.Exclusive {
		o.IfNotExist = true
		o.Metadata = map[string]string{writerMark: rand.Text()}
	}
	return f.newWriter(name, k, o), nil
}

// ReadDir lists a folder by name. One that does not exist has nothing in it.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	k := key(name)
	prefix := k
	if k != "" {
		prefix += "/"
	}
	w := f.wait()
	defer w.end()
	var all []fs.DirEntry
	list := f.bucket.List(&blob.ListOptions{Prefix: prefix, Delimiter: "/"})
	for {
		o, err := list.Next(w.ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, f.failed("readdir", name, w, err)
		}
		w.progress()
		if base := strings.TrimSuffix(o.Key[len(prefix):], "/"); base != "" {
			all = append(all, fs.FileInfoToDirEntry(info{base, o.Size, o.ModTime, o.IsDir}))
		}
	}
	if len(all) == 0 && k != "" {
		if a, err := f.bucket.Attributes(w.ctx, k); err == nil && !isFolder(a) {
			return nil, &fs.PathError{Op: "readdir", Path: name, Err: syscall.ENOTDIR}
		}
	}
	return oneEach(all), nil
}

// oneEach sorts entries and drops the file beside a folder of the same name: some tools make such an object for each folder.
func oneEach(all []fs.DirEntry) []fs.DirEntry {
	slices.SortFunc(all, func(a, b fs.DirEntry) int {
		if c := strings.Compare(a.Name(), b.Name()); c != 0 || a.IsDir() == b.IsDir() {
			return c
		}
		if a.IsDir() {
			return -1
		}
		return 1
	})
	return slices.CompactFunc(all, func(a, b fs.DirEntry) bool { return a.Name() == b.Name() })
}

// Stat tells about a file or folder. A folder exists if something is in it.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	k := key(name)
	if k == "" {
		return info{name: path.Base(path.Clean(name)), dir: true}, nil
	}
	w := f.wait()
	defer w.end()
	a, err := f.bucket.Attributes(w.ctx, k)
	if err == nil {
		return info{path.Base(k), a.Size, a.ModTime, isFolder(a)}, nil
	}
	if err = f.failed("stat", name, w, err); !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	first, listErr := f.bucket.List(&blob.ListOptions{Prefix: k + "/", Delimiter: "/"}).Next(w.ctx)
	switch {
	case listErr == io.EOF:
		return nil, err
	case listErr != nil:
		return nil, f.failed("stat", name, w, listErr)
	}
	return info{name: path.Base(k), modified: first.ModTime, dir: true}, nil
}

// Rename copies a file, within the store and over one that may be there, and removes the old one. The copy appears whole. If
// only the removing fails, that is the error, and both exist: see Copied. What is too large for the store to copy (S3: 5 GiB) is
// read and uploaded again. Folders can't be renamed.
func (f *FS) Rename(from, to string) error {
	source, target := key(from), key(to)
	if source == "" || target == "" {
		return &fs.PathError{Op: "rename", Path: from, Err: syscall.EISDIR}
	}
	w := f.wait()
	defer w.end()
	if source == target {
		_, err := f.bucket.Attributes(w.ctx, source)
		return f.failed("rename", from, w, err)
	}
	err := f.bucket.Copy(w.ctx, target, source, nil)
	if err != nil {
		err = f.reload(w, from, to, err)
	}
	if err == nil {
		err = f.bucket.Delete(w.ctx, source)
	}
	return f.failed("rename", from, w, err)
}

// reload copies a file that is too large for the store to copy, by reading and writing it. It returns the error of the store's
// own copy if that had another reason.
func (f *FS) reload(w *waiting, from, to string, cause error) error {
	a, err := f.bucket.Attributes(w.ctx, key(from))
	if err != nil || a.Size <= f.copyBytes {
		return cause
	}
	w.pause()
	defer w.progress()
	in, err := f.Open(from)
	if err != nil {
		return err
	}
	out := f.newWriter(to, key(to), &blob.WriterOptions{ContentType: cmp.Or(a.ContentType, contentType), Metadata: a.Metadata})
	_, err = io.Copy(out, in)
	if err != nil {
		return errors.Join(err, out.Abort(), in.Close())
	}
	return errors.Join(out.Close(), in.Close())
}

// Copied tells whether the file to is what a Rename of from has left that was broken off before it had removed from. It tells
// by a mark that files have from the beginning if they were made with vfs.Exclusive: others are never taken for copies.
func (f *FS) Copied(from, to string) (bool, error) {
	w := f.wait()
	defer w.end()
	a, err := f.bucket.Attributes(w.ctx, key(from))
	if err != nil {
		return false, f.failed("stat", from, w, err)
	}
	b, err := f.bucket.Attributes(w.ctx, key(to))
	if err != nil {
		return false, f.failed("stat", to, w, err)
	}
	mark := a.Metadata[writerMark]
	return mark != "" && mark == b.Metadata[writerMark] && a.Size == b.Size, nil
}

// Remove removes a file. A folder is gone with the last file in it: removing it is syscall.ENOTEMPTY before and fs.ErrNotExist
// thereafter.
func (f *FS) Remove(name string) error {
	k := key(name)
	if k == "" {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrInvalid}
	}
	w := f.wait()
	defer w.end()
	if others, err := f.others(w.ctx, k); others || err != nil {
		return f.failed("remove", name, w, err)
	}
	err := f.bucket.Delete(w.ctx, k)
	if err == nil {
		return nil
	}
	if err = f.failed("remove", name, w, err); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	list := f.bucket.List(&blob.ListOptions{Prefix: k + "/"})
	first, listErr := list.Next(w.ctx)
	switch {
	case listErr == io.EOF:
		return err
	case listErr != nil:
		return f.failed("remove", name, w, listErr)
	}
	if _, more := list.Next(w.ctx); first.Key == k+"/" && more == io.EOF {
		return f.failed("remove", name, w, f.bucket.Delete(w.ctx, first.Key)) // an object that a tool made for the folder
	}
	return &fs.PathError{Op: "remove", Path: name, Err: syscall.ENOTEMPTY}
}

// others tells whether a file of which we do not know if we made it was made by somebody else, or by nobody.
func (f *FS) others(ctx context.Context, k string) (bool, error) {
	f.mu.Lock()
	mark, doubt := f.doubtful[k]
	delete(f.doubtful, k)
	f.mu.Unlock()
	if !doubt {
		return false, nil
	}
	mine, err := f.marked(ctx, k, mark)
	if err != nil {
		f.doubt(k, mark)
	}
	return !mine, err
}

// marked tells whether an object exists and has the mark.
func (f *FS) marked(ctx context.Context, k, mark string) (bool, error) {
	a, err := f.bucket.Attributes(ctx, k)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return false, nil
	}
	return err == nil && a.Metadata[writerMark] == mark, err
}

func (f *FS) doubt(k, mark string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.doubtful[k] = mark
}

// Truncate is not supported.
func (f *FS) Truncate(name string, _ int64) error {
	return &fs.PathError{Op: "truncate", Path: name, Err: errors.ErrUnsupported}
}

// MkdirAll does nothing: folders exist as soon as something is in them.
func (f *FS) MkdirAll(string) error { return nil }

// WholeFiles implements checkpoint.WholeFS: all files appear when they are closed.
func (f *FS) WholeFiles(string) bool { return true }

// SyncDir does nothing: names survive as soon as they are there.
func (f *FS) SyncDir(string) error { return nil }

// failed describes an error of the store, if it is one.
func (f *FS) failed(op, name string, w *waiting, err error) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(w.ctx); cause != nil {
		err = fmt.Errorf("%w (%w)", cause, err)
	} else if kind := f.kind(err); kind != nil {
		err = fmt.Errorf("%w: %w", kind, err)
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// kind is the error of io/fs that an error means, or nil.
func (f *FS) kind(err error) error {
	if f.options.Classify != nil {
		if kind := f.options.Classify(err); kind != nil {
			return kind
		}
	}
	switch gcerrors.Code(err) {
	case gcerrors.NotFound:
		return fs.ErrNotExist
	case gcerrors.AlreadyExists, gcerrors.FailedPrecondition:
		return fs.ErrExist
	case gcerrors.PermissionDenied:
		return fs.ErrPermission
	case gcerrors.InvalidArgument:
		return fs.ErrInvalid
	}
	return nil
}

// info is a file or folder.
type info struct {
	name     string
	size     int64
	modified time.Time
	dir      bool
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) ModTime() time.Time { return i.modified }
func (i info) IsDir() bool        { return i.dir }
func (i info) Sys() any           { return nil }

func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}
