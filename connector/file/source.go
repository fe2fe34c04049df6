package file

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/vfs"
)

// DefaultSplitSize is the length of a split unless SplitSize says otherwise.
const DefaultSplitSize = 16 << 20

// Source reads files. It is a description: its methods return a changed copy, and one Source may be used many times.
type Source[T any] struct {
	settings
	format Format[T]
}

// settings is what is not about the element type.
type settings struct {
	paths     []string
	fs        vfs.FS
	splitSize int64
	recursive bool
	hidden    bool
	filter    func(path string, info fs.FileInfo) bool
	folders   func(path string, info fs.FileInfo) bool
	lost      error // why a URL leads nowhere
	watch     time.Duration
	horizon   time.Duration
	charset   Charset
	trailing  bool // trailing garbage of compressed files is ignored
	lenient   bool
	onBad     func(Bad)
}

// New reads the files at paths with a format. A path is a file, a folder (the files in it; see Recursive), a pattern, or
// "-" for standard input. In patterns * and ? match within a name, [a-z] one character, and ** any number of folders; a
// file whose name is the pattern itself goes first. In folders and patterns, names that begin with "." or "_" are
// skipped. Files that are named twice are read once. A path without any file is an error when the job starts. Files are
// handed to the readers in the order of their paths.
//
// A path may be a URL: "file:///logs", or one that the environment links what opens it (stream.WithStorage), such as
// "s3://bucket/logs/*.csv" or hdfs://. There a ? begins options and is no pattern. All paths of a source lie in one storage.
//
// Files whose names end with .gz, .gzip, .deflate, .bz2, .zst or .xz are decompressed and read as one split.
func New[T any](format Format[T], paths ...string) *Source[T] {
	s := &Source[T]{format: format}
	s.fs, s.splitSize, s.horizon = vfs.OS{}, DefaultSplitSize, DefaultHorizon
	for _, p := range paths {
		s.paths = append(s.paths, filepath.ToSlash(p))
	}
	return s
}

// PlacedBy implements connector.Placed: streams call it with what the environment has linked.
func (s Source[T]) PlacedBy(find connector.Places) connector.Source[T, Split] {
	s.place(find)
	return &s
}

// place finds what the user's paths and URLs mean.
func (s *settings) place(find connector.Places) {
	paths, remote := slices.Clone(s.paths), 0
	for i, p := range s.paths {
		if p == "" || p == "-" {
			continue
		}
		at, err := find(p)
		if err != nil {
			s.lost = err
			return
		}
		paths[i] = at.Path
		if !at.Remote {
			continue
		}
		if remote++; remote > 1 && at.FS != s.fs {
			s.lost = fmt.Errorf("%s is in another storage than %s: use two sources, and Union", p, s.paths[0])
			return
		}
		s.fs = at.FS
	}
	if remote > 0 && remote < len(paths) {
		s.lost = fmt.Errorf("of %s some are in a storage and some are not: use two sources, and Union", strings.Join(s.paths, ", "))
		return
	}
	s.paths = paths
}

// Lines reads the lines of text files; see New for paths and Text for what a line is.
func Lines(paths ...string) *Source[string] { return New(Text{}, paths...) }

// On makes the source read from another file system; for the engine and for tests.
func (s Source[T]) On(fs vfs.FS) *Source[T] { s.fs = fs; return &s }

// SplitSize cuts files into splits of n bytes, at least 1; the default is DefaultSplitSize. It changes how work is spread,
// never what is read.
func (s Source[T]) SplitSize(n int64) *Source[T] { s.splitSize = n; return &s }

// Recursive reads the folders in folders, too. Links to folders are not followed.
func (s Source[T]) Recursive() *Source[T] { s.recursive = true; return &s }

// Hidden reads files and folders whose names begin with "." or "_", too.
func (s Source[T]) Hidden() *Source[T] { s.hidden = true; return &s }

// Filter reads only files for which keep returns true. It is asked about every file that was found, files named as such,
// too, but not about standard input. It is called by one goroutine at a time, whenever files are looked for: a watching
// source asks again about a file that was not kept.
func (s Source[T]) Filter(keep func(path string, info fs.FileInfo) bool) *Source[T] {
	s.filter = keep
	return &s
}

// FilterFolders reads only what is in folders for which keep returns true, and in the folders in them: those that Recursive
// goes into and those that a pattern leads through, but not those that are named as such. It is called as that of Filter is.
func (s Source[T]) FilterFolders(keep func(path string, info fs.FileInfo) bool) *Source[T] {
	s.folders = keep
	return &s
}

// Watch makes the source unbounded: it looks for files again and again, with a pause of interval (at least 1 ms), and
// reads what is new. A file is known by its path: a renamed file is a new one. Each file is read once, whatever its time
// of change; a file whose size or time of change differs from what was seen is read again as a whole. So a file should
// be written under a hidden name and renamed when it is complete. Missing folders are errors, patterns without a match
// are not. What was seen is part of checkpoints.
func (s Source[T]) Watch(interval time.Duration) *Source[T] {
	s.watch = interval
	if interval == 0 {
		s.watch = -1 // reported by Check
	}
	return &s
}

// Horizon is how long a watching source remembers a file that has vanished; should it come back unchanged after that, it
// is read again. The default is DefaultHorizon.
func (s Source[T]) Horizon(d time.Duration) *Source[T] { s.horizon = d; return &s }

// Charset tells the encoding of the files; the default is UTF8. Files in another one are not cut into splits; elements
// are UTF-8, and positions count the bytes of the UTF-8 text.
func (s Source[T]) Charset(c Charset) *Source[T] { s.charset = c; return &s }

// IgnoreTrailing reads gzip files that have something else behind the compressed data up to there; the default is an
// error that names the offset.
func (s Source[T]) IgnoreTrailing() *Source[T] { s.trailing = true; return &s }

// SkipBad skips records that can't be decoded and counts them in the metric BadRecords; the default is to fail.
func (s Source[T]) SkipBad() *Source[T] { s.lenient = true; return &s }

// OnBad is SkipBad and calls f for each such record. Subtasks call it concurrently; after a restore the records since
// the checkpoint come again.
func (s Source[T]) OnBad(f func(Bad)) *Source[T] { s.lenient, s.onBad = true, f; return &s }

// Check reports mistakes of the description. It opens no file.
func (s *Source[T]) Check() error {
	if err := s.settings.check(); err != nil {
		return err
	}
	if err := s.format.Check(); err != nil {
		return fmt.Errorf("file source: %w", err)
	}
	return nil
}

func (s *settings) check() error {
	switch {
	case len(s.paths) == 0:
		return errors.New("file source: no path")
	case s.lost != nil:
		return fmt.Errorf("file source: %w", s.lost)
	case s.splitSize < 1:
		return fmt.Errorf("file source: split size %d is less than 1", s.splitSize)
	case s.watch < 0:
		return errors.New("file source: the watch interval is not positive")
	case s.horizon < 0:
		return fmt.Errorf("file source: negative horizon %v", s.horizon)
	}
	if err := s.charset.check(); err != nil {
		return fmt.Errorf("file source: %w", err)
	}
	for _, p := range s.paths {
		if connector.IsURL(p) {
			return fmt.Errorf("file source: %s is a URL, which the environment opens: read it with FromSource, ReadFile and the like, or give a path", p)
		}
		if err := checkPattern(p); err != nil {
			return fmt.Errorf("file source: %w", err)
		}
	}
	return nil
}

// Bounded implements connector.Source.
func (s *Source[T]) Bounded() bool { return s.watch == 0 }

// Enumerator implements connector.Source.
func (s *Source[T]) Enumerator(ctx connector.EnumeratorContext[Split], restored []byte) (connector.Enumerator[Split], error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	return newEnumerator(ctx, &s.settings, s.format.Splittable(), restored)
}

// Reader implements connector.Source.
func (s *Source[T]) Reader(ctx connector.ReaderContext) (connector.Reader[T, Split], error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	return &reader[T]{ctx: ctx, format: s.format, opener: opener{&s.settings, ctx.Counter, ctx.Wake, s.onBad}}, nil
}
