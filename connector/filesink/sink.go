// Package filesink writes files exactly once: what a job that fails and goes on leaves visible in a folder holds each
// element one time, and no half files. It owns the life of part files (begun hidden, closed, made visible when the
// checkpoint that covers them is complete), when a new one begins and in which folder it lies; how an element becomes
// bytes is a file.Encoding's. It takes no checkpoints: the engine, which drives its writers and committers, does. It starts
// goroutines only to wait for several requests to a store at a time. Programs call it: filesink.New("out", jsonl.Encoding[Event]()), written to with CommitTo, or leave that to
// WriteToFiles of a stream.
package filesink

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/internal/vfs"
)

// Sink writes elements into part files below a folder, exactly once. It is a description: its methods return a changed
// copy, and one Sink may be used many times, but for the same folder and prefix only by one job at a time.
//
// Each subtask writes files of its own, named {prefix}-{subtask}-{count}{suffix}, in folders called buckets. A file is
// begun under a hidden name, .{name}.inprogress.{id}, and closed when it is large, old or idle enough; the checkpoint that
// follows covers it, and when that is complete the file gets its name. Small files may be merged before (CompactAfter,
// CompactSize). The end of the input closes all files. After a
// failure the job goes on with what its snapshot covers: of a file that was open, the bytes of the moment of the snapshot
// are copied into a new hidden file, which is written further; the old one is removed once a later checkpoint is complete.
// What no snapshot covers stays hidden or is removed, in the buckets that the job writes to.
//
// The folder may be the URL of an object store or of HDFS that the environment links (stream.WithStorage). A file is uploaded
// while it is written, and exists, hidden, when it is closed: so all files are closed at each checkpoint, as with
// RollOnCheckpoint, and CompactAfter and CompactSize are what makes them large. Becoming visible is a copy within the store.
//
// A job that is restored from another snapshot than its last one removes and overtakes hidden files that later snapshots
// cover: those can't be restored any more. What is visible is never changed, so it holds twice what such a job writes again.
type Sink[T any] struct {
	settings
	encoding file.Encoding[T]
	bulk     *file.BulkEncoding[T] // nil: encoding
	reading  file.Format[T]        // of what bulk writes; nil: it is not read
	by       func(*T) string       // nil: not by the element
	with     func(T, connector.ElementContext) string
}

// New writes with an encoding (file.TextEncoding, csv.Encoding, jsonl.Encoding or one's own) into a folder, which is made
// if it is missing. Buckets are hours of processing time, "2006-01-02--15" in the machine's time zone; a new file is begun
// after 128 MiB, after a minute, and after a minute without an element.
func New[T any](dir string, e file.Encoding[T]) *Sink[T] {
	if e.Delimiter == "" {
		e.Delimiter = "\n"
	}
	s := describe[T](dir)
	s.encoding, s.begin = e, e.Begin
	return s
}

// describe is a description without an encoding.
func describe[T any](where string) *Sink[T] {
	dir := "" // not known yet
	if where != "" && !connector.IsURL(where) {
		dir = filepath.ToSlash(filepath.Clean(where))
	}
	return &Sink[T]{settings: settings{
		fs: vfs.OS{}, dir: dir, where: where, prefix: "part",
		pattern: DefaultPattern, zone: time.Local,
		maxSize: DefaultMaxPartSize, rollover: time.Minute, inactivity: time.Minute, every: time.Minute,
		compaction: compaction{atCheckpoint: 8 << 20, portion: 1 << 20},
	}}
}

// randomID is a part of the names of hidden files.
func randomID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// On makes the sink write to another file system, with ids for the names of hidden files that no two writers share (nil:
// random ones), for which subtasks ask concurrently; for the engine and for tests.
func (s Sink[T]) On(fs vfs.FS, ids func() string) *Sink[T] {
	s.fs = fs
	if ids != nil {
		s.ids = ids
	}
	return &s
}

// PlacedBy implements connector.Placed: CommitTo calls it with what the environment has linked.
func (s Sink[T]) PlacedBy(find connector.Places) connector.CommittingSink[T, Committable] {
	s.place(find)
	s.run = randomID()
	return &s
}

// BucketByTime puts each element into the bucket of the processing time at which it is written, named by a pattern of
// Java's DateTimeFormatter: y M d D H m s S and text, letters of which stand in single quotes. A slash makes folders in
// folders.
func (s Sink[T]) BucketByTime(pattern string, zone *time.Location) *Sink[T] {
	s.assign(processingTime)
	s.pattern, s.zone = pattern, zone
	return &s
}

// BucketByEventTime is BucketByTime by the timestamp of each element; an element without one is an error.
func (s Sink[T]) BucketByEventTime(pattern string, zone *time.Location) *Sink[T] {
	s.assign(eventTime)
	s.pattern, s.zone = pattern, zone
	return &s
}

// BucketBy puts each element into the bucket that f names: a relative path with slashes; "" is the folder itself. Parts of
// it that are empty or begin with a dot or an underscore, which readers skip, are an error of the element. f takes the
// element or its address (for the time of the call); subtasks call it concurrently.
func (s Sink[T]) BucketBy[F func(T) string | func(*T) string](f F) *Sink[T] {
	s.assign(byElement)
	switch f := any(f).(type) {
	case func(T) string:
		s.by = func(x *T) string { return f(*x) }
		s.noFunction = f == nil
	case func(*T) string:
		s.by = f
		s.noFunction = f == nil
	}
	return &s
}

// BucketWith is BucketBy with a function that sees the element's timestamp, the watermark and the processing time, too.
func (s Sink[T]) BucketWith(f func(x T, at connector.ElementContext) string) *Sink[T] {
	s.assign(byContext)
	s.with, s.noFunction = f, f == nil
	return &s
}

// NoBuckets writes all files into the folder itself.
func (s Sink[T]) NoBuckets() *Sink[T] {
	s.assign(noBuckets)
	return &s
}

// MaxPartSize begins a new file when the one at hand has more bytes; 0 sets no limit. The default is DefaultMaxPartSize.
// Compressed files are measured as they lie on the disk, up to what the compressor still holds.
func (s Sink[T]) MaxPartSize(bytes int64) *Sink[T] { s.maxSize = bytes; return &s }

// RolloverInterval closes a file that was begun so long ago, in processing time: when the next element for its bucket comes,
// at the next look at the clock (CheckInterval) or at the next checkpoint. 0 sets no limit, the default is a minute.
func (s Sink[T]) RolloverInterval(d time.Duration) *Sink[T] { s.rollover = d; return &s }

// InactivityInterval closes a file that has got no element for so long, in processing time, at the next checkpoint, look at
// the clock or element. 0 sets no limit, the default is a minute.
func (s Sink[T]) InactivityInterval(d time.Duration) *Sink[T] { s.inactivity = d; return &s }

// CheckInterval is how often the clock is looked at, in processing time, for files that are to be closed although no element
// comes for them. 0: never; the default is a minute. What is closed becomes visible with the next checkpoint all the same.
func (s Sink[T]) CheckInterval(d time.Duration) *Sink[T] { s.every = d; return &s }

// RollWhen closes files when a function says so, before each element, at each look at the clock and at each checkpoint. It
// stands in the place of MaxPartSize, RolloverInterval and InactivityInterval, which do not count then; what has to be closed
// at every checkpoint is closed without being asked about. Subtasks call the function concurrently. With NewBulk it makes
// formats get their elements one by one.
func (s Sink[T]) RollWhen(f func(p Part) bool) *Sink[T] {
	s.policy, s.noPolicy = f, f == nil
	return &s
}

// RollOnCheckpoint closes all files at each checkpoint, so that everything before it becomes visible with it. Compressed
// files always do so.
func (s Sink[T]) RollOnCheckpoint() *Sink[T] { s.onCheckpoint = true; return &s }

// CompactAfter merges closed files of a bucket that are small: they stay hidden for up to so many checkpoints, savepoints
// and failed ones included, and become visible as one file, under the name of the first. 1 merges what one checkpoint
// leaves; 0, the default, sets no limit. Files of records are put one behind the other as they are, those of NewBulk are
// read and written again: see CompactReading.
//
// Everything in small files is written twice. That is done in portions: an element waits for a megabyte, now and then for
// the disk to take eight, a checkpoint for eight; what is not through at a checkpoint becomes visible with a later one. The
// end of the input merges what is left, at once. Without elements and checkpoints it goes on all the same.
//
// A file that was open at a restore stays a file of its own; what was held back then is merged, but not with what comes
// later.
func (s Sink[T]) CompactAfter(checkpoints int) *Sink[T] {
	s.compaction.checkpoints = checkpoints
	return &s
}

// CompactSize is CompactAfter by size: the files of a bucket are merged when they have so many bytes together, and those
// that have so many alone are left as they are. 0, the default, sets no limit. Without CompactAfter, what is less than that
// stays hidden until the end of the input.
func (s Sink[T]) CompactSize(bytes int64) *Sink[T] { s.compaction.size = bytes; return &s }

// CompactReading says how files that NewBulk's format has written are read again, to be merged. Those that a restored job
// finds held back are not read, as T may have changed: each becomes visible by itself.
func (s Sink[T]) CompactReading(f file.Format[T]) *Sink[T] { s.reading = f; return &s }

// PartPrefix sets the begin of the files' names; the default is "part".
func (s Sink[T]) PartPrefix(prefix string) *Sink[T] { s.prefix = prefix; return &s }

// PartSuffix sets the end of the files' names, such as ".csv"; that of a compression follows it. The default is none, with
// NewBulk the format's.
func (s Sink[T]) PartSuffix(suffix string) *Sink[T] { s.suffix = suffix; return &s }

// Compress compresses the files; their names end in .gz or .zst. With NewBulk it is a mistake: see its format's options.
func (s Sink[T]) Compress(c Compression) *Sink[T] { s.compression = c; return &s }

// KeepLeftovers leaves the hidden files that a restored job finds and does not know. The default is to remove those of the
// sink's own names that its snapshot doesn't cover, and of a job that begins anew after a failure those that its attempts in
// the same process have left. What a process has left that was killed before its first checkpoint, nobody knows: it stays for
// ever, unless ClearLeftovers says otherwise.
func (s Sink[T]) KeepLeftovers() *Sink[T] { s.keep = true; return &s }

// ClearLeftovers makes a job that begins without a snapshot of the sink remove all hidden files that have the sink's names
// (prefix, suffix, compression), in all buckets, before it writes: those of processes that were killed before their first
// checkpoint. Visible files, those of other names and folders whose names readers skip are left alone. A file that can't be
// removed is counted (leftoversKept) and stays; a folder that can't be listed is an error.
//
// It is for sinks that have the names for themselves, and for good: whoever asks for it says that no other job, in this or any
// other process, is writing to them, and that no savepoint or checkpoint of an earlier run is going to be restored, whose open
// files are among the hidden ones. Jobs that are restored do as without it. A second process of the same job is refused before
// it comes to this if the job has WithRecovery. Each subtask lists all folders once.
func (s Sink[T]) ClearLeftovers() *Sink[T] { s.clear = true; return &s }

// Check reports mistakes of the description. It looks at no file.
func (s *Sink[T]) Check() error {
	_, err := s.checked()
	return err
}

// Claim implements connector.Claiming: two sinks with the same names in a folder would take each other's files for their own.
func (s *Sink[T]) Claim() string {
	where := s.where
	if !s.remote {
		if abs, err := filepath.Abs(s.dir); err == nil {
			where = abs
		}
	}
	return fmt.Sprintf("files %s-*%s in %s", s.prefix, s.ending(), where)
}

// Prepare looks at the folder before the job runs.
func (s *Sink[T]) Prepare(int) error {
	if err := s.Check(); err != nil {
		return err
	}
	return s.prepare()
}

// Writer implements connector.Sink.
func (s *Sink[T]) Writer(ctx connector.WriterContext) (connector.Writer[T], error) {
	return s.open(ctx, nil)
}

// RestoreWriter implements connector.StatefulSink.
func (s *Sink[T]) RestoreWriter(ctx connector.WriterContext, _ int64, states []connector.WriterState) (connector.Writer[T], error) {
	return s.open(ctx, states)
}

// Committer implements connector.CommittingSink.
func (s *Sink[T]) Committer(ctx connector.WriterContext) (connector.Committer[Committable], error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	return &committer{fs: s.fs, dir: s.dir, requests: s.requests, count: ctx.Counter}, nil
}

// checked is Check; it returns the pattern of the buckets, nil if they are not by time.
func (s *Sink[T]) checked() (*layout, error) {
	switch {
	case s.bulk != nil && s.bulk.Err != nil:
		return nil, s.mistake("%w", s.bulk.Err)
	case s.encoding.Err != nil:
		return nil, s.mistake("%w", s.encoding.Err)
	case s.bulk == nil && s.encoding.Open == nil, s.bulk != nil && s.bulk.Open == nil:
		return nil, s.mistake("no encoding")
	case s.reading == nil && s.bulk != nil && s.compaction.on():
		return nil, s.mistake("whole files are merged by reading them again: CompactReading says how")
	case s.reading != nil && (s.bulk == nil || !s.compaction.on()):
		return nil, s.mistake("CompactReading is for files of NewBulk that are merged: with CompactAfter or CompactSize")
	case s.keep && s.clear:
		return nil, s.mistake("KeepLeftovers and ClearLeftovers are contradictory: choose one")
	}
	if s.reading != nil {
		if err := s.reading.Check(); err != nil {
			return nil, s.mistake("read files again, to merge them: %w", err)
		}
	}
	return s.settings.check()
}
