package filesink

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/vfs"
)

// DefaultPattern is that of the buckets if nothing else is said: hours.
const DefaultPattern = "yyyy-MM-dd--HH"

// DefaultMaxPartSize is the number of bytes after which a new file is begun if nothing else is said.
const DefaultMaxPartSize = 128 << 20

// assignment is how buckets are found.
type assignment uint8

const (
	processingTime assignment = iota
	eventTime
	byElement
	byContext
	noBuckets
)

// settings are what a sink is told, but for what depends on the type of its elements.
type settings struct {
	fs       vfs.FS
	dir      string // in fs
	where    string // the path or URL that the user gave
	remote   bool   // fs is no disk: files exist when they are closed, and not before
	lost     error  // why the URL leads nowhere
	requests int    // files that are closed and committed at a time; 0: one by one

	ids func() string // nil: random ones
	run string        // begins the ids of the job's writers in this process; "": they have nothing in common

	prefix, suffix string
	begin          string // of each file
	compression    Compression
	whole          bool // files are whole ones of a format: they can't be written further once they are closed

	bucketing  assignment
	pattern    string
	zone       *time.Location
	noFunction bool // the function for the buckets is nil

	maxSize              int64 // bytes; 0: no limit
	rollover, inactivity time.Duration
	every                time.Duration   // between looks at the clock; 0: none
	policy               func(Part) bool // nil: the three above
	noPolicy             bool            // the function is nil
	onCheckpoint         bool
	compaction           compaction
	keep, clear          bool // leftovers
}

// assign chooses how buckets are found; the last choice counts.
func (s *settings) assign(a assignment) { s.bucketing, s.noFunction = a, false }

// sealed tells whether files can't be written further after a failure: compressors and formats can't go on in the middle, and
// in an object store there is nothing before a file is closed. They are closed at every checkpoint.
func (s *settings) sealed() bool { return s.whole || s.remote || s.compression != Uncompressed }

func (s *settings) mistake(format string, args ...any) error {
	return fmt.Errorf("file sink %q: %w", s.where, fmt.Errorf(format, args...))
}

// id is that of a writer: no other one's hidden files have it in their names.
func (s *settings) id() string {
	switch {
	case s.ids != nil:
		return s.run + s.ids()
	case s.run != "":
		return s.run + randomID()
	}
	return randomID() + randomID()
}

// place finds what the user's path or URL means.
func (s *settings) place(find connector.Places) {
	p, err := find(s.where)
	if err != nil {
		s.lost = err
		return
	}
	switch {
	case p.Remote:
		s.fs, s.dir, s.remote, s.requests = p.FS, p.Path, true, requests
	case p.Path != s.where:
		s.dir = p.Path
	}
}

// check reports mistakes; it returns the pattern of the buckets.
func (s *settings) check() (*layout, error) {
	if err := s.checkLimits(); err != nil {
		return nil, err
	}
	switch {
	case s.where == "":
		return nil, errors.New("file sink: empty path of the folder")
	case s.lost != nil:
		return nil, fmt.Errorf("file sink: %w", s.lost)
	case s.dir == "":
		return nil, s.mistake("a URL is opened by the environment: write to the sink with CommitTo, or give the path of a folder")
	case s.prefix == "" || strings.ContainsAny(s.prefix, unfit):
		return nil, s.mistake("prefix %q: the names of part files need one, without slashes", s.prefix)
	case hidden(s.prefix):
		return nil, s.mistake("prefix %q: readers skip files whose names begin with a dot or an underscore", s.prefix)
	case strings.ContainsAny(s.suffix, unfit):
		return nil, s.mistake("suffix %q: the names of part files have no slashes", s.suffix)
	case s.suffix != "" && s.suffix[0] >= '0' && s.suffix[0] <= '9':
		return nil, s.mistake("suffix %q: a digit would be read as part of the count before it", s.suffix)
	case strings.Contains(s.prefix+s.suffix, inProgress):
		return nil, s.mistake("prefix %q, suffix %q: %q marks files that are not complete", s.prefix, s.suffix, inProgress)
	case s.compression > Zstd:
		return nil, s.mistake("unknown compression %d", s.compression)
	case s.whole && s.compression != Uncompressed:
		return nil, s.mistake("%v would compress whole files, which others could not read: tell the format to compress inside", s.compression)
	case s.noFunction:
		return nil, s.mistake("the function that names the buckets is nil")
	case s.bucketing > eventTime:
		return nil, nil
	case s.zone == nil:
		return nil, s.mistake("no time zone for the buckets; time.UTC and time.Local are two")
	}
	l, err := newLayout(s.pattern, s.zone)
	if err != nil {
		return nil, s.mistake("%w", err)
	}
	return l, nil
}

// checkLimits reports mistakes in when files are closed and merged.
func (s *settings) checkLimits() error {
	switch {
	case s.maxSize < 0:
		return s.mistake("largest size of a part of %d bytes is negative", s.maxSize)
	case s.rollover < 0 || s.inactivity < 0 || s.every < 0:
		return s.mistake("negative interval: rollover %v, inactivity %v, check %v", s.rollover, s.inactivity, s.every)
	case fine(s.rollover, s.inactivity, s.every):
		return s.mistake("interval finer than a millisecond: rollover %v, inactivity %v, check %v", s.rollover, s.inactivity, s.every)
	case s.compaction.checkpoints < 0 || s.compaction.size < 0:
		return s.mistake("negative limit of compaction: %d checkpoints, %d bytes", s.compaction.checkpoints, s.compaction.size)
	case s.noPolicy:
		return s.mistake("the function that decides when files are closed is nil")
	}
	return nil
}

// fine tells whether one of some intervals has a fraction of a millisecond.
func fine(intervals ...time.Duration) bool {
	return slices.ContainsFunc(intervals, func(d time.Duration) bool { return d%time.Millisecond != 0 })
}

// prepare reports a folder that is none.
func (s *settings) prepare() error {
	info, err := s.fs.Stat(s.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return s.mistake("%w", err)
	case !info.IsDir():
		return s.mistake("the path is that of a file; the sink needs a folder")
	}
	return nil
}

// unfit are characters that names of files don't have, here or elsewhere.
const unfit = "/\\\x00"

// hidden tells whether readers of files skip a name.
func hidden(name string) bool { return name[0] == '.' || name[0] == '_' }

// checkBucket reports a name of a bucket that leads elsewhere or that readers would not find.
func checkBucket(bucket string) error {
	if bucket == "" {
		return nil
	}
	for part := range strings.SplitSeq(bucket, "/") {
		switch {
		case part == "":
			return fmt.Errorf("bucket %q has an empty part; it is a relative path", bucket)
		case part == "." || part == "..":
			return fmt.Errorf("bucket %q: %q is no name of a folder; a bucket is a path below the sink's folder", bucket, part)
		case hidden(part):
			return fmt.Errorf("bucket %q: readers skip %q, which begins with a dot or an underscore", bucket, part)
		case strings.ContainsAny(part, unfit):
			return fmt.Errorf("bucket %q can't be the name of a folder", bucket)
		}
	}
	return nil
}
