package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"
)

var (
	errMissing = errors.New("no such object")
	errExists  = errors.New("object exists")
	errDenied  = errors.New("denied")
)

// fake is a store whose answers a test decides over.
type fake struct {
	driver.Bucket // nil: what is not below is not called

	mu      sync.Mutex
	objects map[string]*fakeObject
	calls   []string
	// before is called before each call, with its name, and may fail it; after, when it has been carried out.
	before, after func(ctx context.Context, call string) error
	// body is what a reader's bytes come from, if set.
	body func(ctx context.Context, b []byte) io.Reader
}

type fakeObject struct {
	data     []byte
	metadata map[string]string
}

func newFake(o Options) (*fake, *FS) {
	d := &fake{objects: map[string]*fakeObject{}}
	return d, New(blob.NewBucket(d), o)
}

func (d *fake) call(ctx context.Context, f func(context.Context, string) error, format string, args ...any) error {
	if f == nil {
		return nil
	}
	return f(ctx, fmt.Sprintf(format, args...))
}

// began notes a call.
func (d *fake) began(ctx context.Context, format string, args ...any) error {
	d.mu.Lock()
	d.calls = append(d.calls, fmt.Sprintf(format, args...))
	d.mu.Unlock()
	return d.call(ctx, d.before, format, args...)
}

// since gives the calls since it was last asked.
func (d *fake) since() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	calls := strings.Join(d.calls, ", ")
	d.calls = nil
	return calls
}

func (d *fake) put(key, text string, metadata map[string]string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.objects[key] = &fakeObject{[]byte(text), metadata}
}

func (d *fake) get(key string) (*fakeObject, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o := d.objects[key]; o != nil {
		return o, nil
	}
	return nil, errMissing
}

func (d *fake) ErrorCode(err error) gcerrors.ErrorCode {
	switch {
	case errors.Is(err, errMissing):
		return gcerrors.NotFound
	case errors.Is(err, errExists):
		return gcerrors.FailedPrecondition
	case errors.Is(err, errDenied):
		return gcerrors.PermissionDenied
	}
	return gcerrors.Unknown
}

func (d *fake) Close() error { return nil }

func (d *fake) Attributes(ctx context.Context, key string) (*driver.Attributes, error) {
	if err := d.began(ctx, "head %s", key); err != nil {
		return nil, err
	}
	o, err := d.get(key)
	if err != nil {
		return nil, err
	}
	return &driver.Attributes{Size: int64(len(o.data)), Metadata: o.metadata, ModTime: time.Unix(1, 0)}, nil
}

func (d *fake) ListPaged(ctx context.Context, opts *driver.ListOptions) (*driver.ListPage, error) {
	if err := d.began(ctx, "list %s", opts.Prefix); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	page := &driver.ListPage{}
	for _, key := range slices.Sorted(maps.Keys(d.objects)) {
		rest, ok := strings.CutPrefix(key, opts.Prefix)
		if !ok {
			continue
		}
		o := &driver.ListObject{Key: key, Size: int64(len(d.objects[key].data))}
		if i := strings.Index(rest, "/"); opts.Delimiter != "" && i >= 0 {
			o = &driver.ListObject{Key: opts.Prefix + rest[:i+1], IsDir: true}
		}
		if n := len(page.Objects); n == 0 || page.Objects[n-1].Key != o.Key {
			page.Objects = append(page.Objects, o)
		}
	}
	return page, nil
}

func (d *fake) Copy(ctx context.Context, to, from string, _ *driver.CopyOptions) error {
	err := d.began(ctx, "copy %s to %s", from, to)
	if err != nil {
		return err
	}
	o, err := d.get(from)
	if err == nil {
		d.put(to, string(o.data), o.metadata)
	}
	return err
}

func (d *fake) Delete(ctx context.Context, key string, _ *driver.DeleteOptions) error {
	err := d.began(ctx, "delete %s", key)
	if err == nil {
		_, err = d.get(key)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		delete(d.objects, key)
	}
	return err
}

func (d *fake) NewTypedWriter(ctx context.Context, key, _ string, opts *driver.WriterOptions) (driver.Writer, error) {
	return &fakeWriter{d: d, ctx: ctx, key: key, opts: opts}, d.began(ctx, "put %s", key)
}

type fakeWriter struct {
	d    *fake
	ctx  context.Context
	key  string
	opts *driver.WriterOptions
	b    bytes.Buffer
	err  error // of writing
}

func (w *fakeWriter) Write(p []byte) (int, error) {
	if w.err = w.d.call(w.ctx, w.d.before, "write %s", w.key); w.err != nil {
		return 0, w.err
	}
	return w.b.Write(p)
}

func (w *fakeWriter) Close() error {
	if err := errors.Join(w.err, w.ctx.Err(), w.d.call(w.ctx, w.d.before, "close %s", w.key)); err != nil {
		return err
	}
	if _, err := w.d.get(w.key); w.opts.IfNotExist && err == nil {
		return errExists
	}
	w.d.put(w.key, w.b.String(), w.opts.Metadata)
	return w.d.call(w.ctx, w.d.after, "close %s", w.key)
}

func (d *fake) NewRangeReader(ctx context.Context, key string, at, n int64, _ *driver.ReaderOptions) (driver.Reader, error) {
	if err := d.began(ctx, "get %d+%d", at, n); err != nil {
		return nil, err
	}
	o, err := d.get(key)
	if err != nil {
		return nil, err
	}
	b := o.data[at:]
	if n >= 0 {
		b = b[:n]
	}
	r := &fakeReader{Reader: bytes.NewReader(b), size: int64(len(o.data))}
	if d.body != nil {
		r.Reader = d.body(ctx, b)
	}
	return r, nil
}

type fakeReader struct {
	io.Reader
	size int64
}

func (r *fakeReader) Close() error { return nil }
func (r *fakeReader) As(any) bool  { return false }
func (r *fakeReader) Attributes() *driver.ReaderAttributes {
	return &driver.ReaderAttributes{Size: r.size}
}
