package file

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/vfs"
)

// ErrExists says that the target of a sink is there and must not be overwritten.
var ErrExists = errors.New("target exists; Overwrite replaces it")

// Encoding turns elements into the records of a file.
type Encoding[T any] struct {
	// Begin stands at the begin of each file, with its delimiter.
	Begin string
	// Delimiter is written behind each record; "" is "\n".
	Delimiter string
	// Open is called once per writer. What it returns appends a record without its delimiter; it is called on the
	// subtask's goroutine only, so it may keep scratch memory, but dst is the sink's.
	Open func() func(dst []byte, x T) ([]byte, error)
	// Err is a mistake of the description, reported when the job is built.
	Err error
}

// Sink writes files as Flink's writeAsText does: at parallelism 1 the path is a file, otherwise a folder with one file
// per subtask, named 1, 2, ... It is a description: its methods return a changed copy, and one Sink may be used many
// times.
//
// Records are written to the files themselves, not to temporary ones: those of a job that runs for ever can be read while
// it does. They are in the file, as a whole, after each checkpoint and at the end of the input; only a job that ended
// well has all of them there. If a write fails, what was written of a record is cut off again. The sink has no part in
// checkpoints: after a restart, and when the job goes on from a savepoint or checkpoint in another process, a subtask goes on
// at the end of its file, so that records since the checkpoint are there twice (at least once). A job that is started anew is
// stopped by what is there, or replaces it.
type Sink[T any] struct {
	target
	encoding Encoding[T]
}

// NewSink writes with an encoding to a file or, at higher parallelism, a folder. Missing folders above are made.
func NewSink[T any](path string, e Encoding[T]) *Sink[T] {
	if e.Delimiter == "" {
		e.Delimiter = "\n"
	}
	return &Sink[T]{target{fs: vfs.OS{}, path: filepath.ToSlash(path)}, e}
}

// On makes the sink write to another file system; for the engine and for tests.
func (s Sink[T]) On(fs vfs.FS) *Sink[T] { s.fs = fs; return &s }

// PlacedBy implements connector.Placed: streams call it with what the environment has linked.
func (s Sink[T]) PlacedBy(find connector.Places) connector.Sink[T] {
	at, err := find(s.path)
	switch {
	case s.path == "":
	case err != nil:
		s.lost = err
	case at.Remote:
		s.lost = fmt.Errorf("write %s: files that are written to as long as the job runs can only lie on a disk: write with WriteToFiles, or CommitTo and a filesink.Sink", s.path)
	default:
		s.path = at.Path
	}
	return &s
}

// Overwrite replaces what is there: a file, or the numbered files of a folder. The default is to fail with ErrExists,
// before anything is written. A folder that holds anything else is never removed to make place for a file, nor is anything
// that the job itself has written before the snapshot that it goes on from.
func (s Sink[T]) Overwrite() *Sink[T] { s.overwrite = true; return &s }

// Check reports mistakes of the description. It looks at no file.
func (s *Sink[T]) Check() error {
	switch {
	case s.path == "":
		return errors.New("file sink: empty path")
	case s.lost != nil:
		return fmt.Errorf("file sink: %w", s.lost)
	case connector.IsURL(s.path):
		return fmt.Errorf("file sink: %s is a URL, which the environment opens: write with SinkTo, or give a path", s.path)
	}
	if s.encoding.Err != nil {
		return fmt.Errorf("file sink: %w", s.encoding.Err)
	}
	return nil
}

// Prepare looks at the target before the job runs, as far as that can be told from here: a target that exists and must
// not be overwritten is an error. Writer does so as well, but a subtask knows only of its own file.
func (s *Sink[T]) Prepare(parallelism int) error {
	if err := s.Check(); err != nil {
		return err
	}
	return s.prepare(parallelism)
}

// Writer implements connector.Sink.
func (s *Sink[T]) Writer(ctx connector.WriterContext) (connector.Writer[T], error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	f, err := s.open(ctx, s.encoding.Delimiter)
	if err != nil {
		return nil, err
	}
	w := &writer[T]{file: f, append: s.encoding.Open(), delimiter: s.encoding.Delimiter}
	if f.size == 0 && s.encoding.Begin != "" {
		f.buf = append(f.buf, s.encoding.Begin...)
	}
	return w, nil
}

// target is where a sink writes.
type target struct {
	fs        vfs.FS
	path      string
	lost      error // why a URL leads nowhere
	overwrite bool
}

// prepare reports a target that must not be overwritten.
func (t *target) prepare(parallelism int) error {
	info, err := t.fs.Stat(t.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("file sink: %w", err)
	case t.overwrite:
		return nil
	case !info.IsDir() || parallelism == 1:
		return fmt.Errorf("write %s: %w", t.path, ErrExists)
	}
	entries, err := t.fs.ReadDir(t.path)
	if err != nil {
		return fmt.Errorf("file sink: %w", err)
	}
	for _, e := range entries {
		if number(e.Name()) > 0 {
			return fmt.Errorf("write %s: %w", path.Join(t.path, e.Name()), ErrExists)
		}
	}
	return nil
}

// number is the number of a subtask's file, 0 if a name is none.
func number(name string) int {
	n, err := strconv.Atoi(name)
	if err != nil || n < 1 || strconv.Itoa(n) != name {
		return 0
	}
	return n
}

// open opens the file of a subtask.
func (t *target) open(ctx connector.WriterContext, delimiter string) (*output, error) {
	out := &output{fs: t.fs, name: t.path}
	makePlace := func() error { return t.fileOnly(ctx) }
	if ctx.Parallelism() > 1 {
		out.name = path.Join(t.path, strconv.Itoa(ctx.Subtask()+1))
		makePlace = func() error { return t.folder(ctx) }
	}
	out.folders = t.newFolders(path.Dir(out.name))
	err := makePlace()
	if err != nil {
		return nil, err
	}
	how := vfs.Exclusive
	if t.overwrite {
		how = vfs.Truncate
	}
	if ctx.Attempt() > 0 || restored(ctx) {
		how = vfs.Append
		if out.size, err = resume(t.fs, out.name, delimiter); err != nil {
			return nil, fmt.Errorf("go on with %s: %w", out.name, err)
		}
	}
	out.w, err = t.fs.Create(out.name, how)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("write %s: %w", out.name, ErrExists)
	}
	if err != nil {
		return nil, fmt.Errorf("file sink: %w", err)
	}
	return out, nil
}

// restored reports whether the job goes on from a snapshot, so that what lies at the target is its own.
func restored(ctx connector.WriterContext) bool {
	c, ok := ctx.(connector.RestoredContext)
	return ok && c.Restored()
}

// misfit is the error of a job that goes on where its sink has written at another parallelism, and what is there is of another
// kind.
func (t *target) misfit(is, would string, parallelism int) error {
	return fmt.Errorf("go on with %s: it is %s, as the job wrote it, and at parallelism %d it would be %s: keep the sink's parallelism, or write to another path", t.path, is, parallelism, would)
}

// newFolders are a folder and those above it up to the first that exists, whose names are to be synced.
func (t *target) newFolders(dir string) []string {
	all := []string{dir}
	for dir != path.Dir(dir) {
		if _, err := t.fs.Stat(dir); err == nil {
			break
		}
		dir = path.Dir(dir)
		all = append(all, dir)
	}
	return all
}

// What lies at the target.
const (
	oneFile    = "a file"
	manyInside = "a folder with a file for each subtask"
)

// fileOnly makes place for a single file.
func (t *target) fileOnly(ctx connector.WriterContext) error {
	info, err := t.fs.Stat(t.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = t.fs.MkdirAll(path.Dir(t.path))
	case err != nil || !info.IsDir():
	case restored(ctx):
		return t.misfit(manyInside, oneFile, 1)
	case !t.overwrite:
		return fmt.Errorf("write %s: %w", t.path, ErrExists)
	default:
		return t.clear(0, true)
	}
	if err != nil {
		return fmt.Errorf("file sink: %w", err)
	}
	return nil
}

// folder makes the folder of the subtasks' files. Subtasks do so at the same time: whatever one of them finds done is
// fine, and what another one undid in between is done again.
func (t *target) folder(ctx connector.WriterContext) error {
	var err error
	for range 10 {
		info, serr := t.fs.Stat(t.path)
		if serr == nil && info.IsDir() {
			if ctx.Subtask() == 0 && t.overwrite && ctx.Attempt() == 0 && !restored(ctx) {
				return t.clear(ctx.Parallelism(), false)
			}
			return nil
		}
		if serr == nil && restored(ctx) {
			return t.misfit(oneFile, manyInside, ctx.Parallelism())
		}
		if serr == nil && !t.overwrite {
			return fmt.Errorf("write %s: %w", t.path, ErrExists)
		}
		if serr == nil {
			err = t.fs.Remove(t.path)
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = t.fs.MkdirAll(t.path)
		}
	}
	return fmt.Errorf("file sink: make folder %s: %w", t.path, err)
}

// clear removes the files of an earlier run whose numbers are above keep, and the folder itself if asked.
func (t *target) clear(keep int, folder bool) error {
	entries, err := t.fs.ReadDir(t.path)
	if err != nil {
		return fmt.Errorf("file sink: %w", err)
	}
	for _, e := range entries {
		if folder && number(e.Name()) == 0 {
			return fmt.Errorf("write %s: it is a folder with other things than files of a sink, such as %s", t.path, e.Name())
		}
	}
	for _, e := range entries {
		if number(e.Name()) > keep {
			if err := t.fs.Remove(path.Join(t.path, e.Name())); err != nil {
				return fmt.Errorf("file sink: %w", err)
			}
		}
	}
	if !folder {
		return nil
	}
	if err := t.fs.Remove(t.path); err != nil {
		return fmt.Errorf("file sink: %w", err)
	}
	return nil
}
