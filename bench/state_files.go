package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/stream"
)

const (
	commitInterval = 100 * time.Millisecond
	commitLate     = 20 * time.Millisecond // after the interval, at most
	commitKeys     = 1000
	commitRate     = 50_000 // elements per second
)

// exactlyOnceFiles measures the time from when an element was due until it is in a file that is visible, which happens at
// the checkpoint after it. The files are read back: they hold each element once.
func exactlyOnceFiles(ctx context.Context, o stateOptions) (l stateLine, err error) {
	l.StateBytes = commitKeys * accountBytes
	out := filepath.Join(o.folder, "files")
	j := newStateJob("files", commitInterval, o.folder, commitKeys, uniform(commitKeys))
	sink := &timedFiles{Sink: visibleFiles(out, &j.written), dir: out, feed: j.feed, at: map[string]time.Duration{}}
	j.files = sink
	var till time.Duration
	var checkpoints times
	n, digest, err := j.run(ctx, func(ctx context.Context) error {
		j.feed.at(commitRate)
		j.flows = true
		seen, err := j.observe(ctx, max(4*commitInterval, o.span(watched)), wantSeen)
		till, checkpoints = j.feed.now(), seen.checkpoint
		return err
	})
	if err = l.add(n, digest, err); err != nil {
		return l, err
	}
	files, err := sink.read(till)
	if err == nil && (files.n != n || files.digest != digest) {
		err = fmt.Errorf("read the files back: %d elements with digest %d, want %d with %d", files.n, files.digest, n, digest)
	}
	if err != nil {
		return l, err
	}
	raw, err := l.floors(o, files.bytes/int64(len(sink.at)))
	l.Figures = []figure{
		perSecond("elements", commitRate),
		inMillis("p50", files.latency.quantile(.5), 0),
		inMillis("p99", files.latency.quantile(.99), float64((commitInterval + commitLate).Milliseconds())),
		inMillis("p99.9", files.latency.quantile(.999), 0),
		inMillis("checkpoint", checkpoints.median(), 0),
		multiple("checkpoint / raw write of one file", ratio(checkpoints.median(), raw), 0),
		{Name: "files", Value: float64(len(sink.at))},
	}
	return l, errors.Join(err, os.RemoveAll(out))
}

// visibleFiles writes a line for each element, and counts them.
func visibleFiles(folder string, written *atomic.Uint64) *filesink.Sink[touched] {
	e := file.Encoding[touched]{Open: func() func([]byte, touched) ([]byte, error) {
		return func(dst []byte, x touched) ([]byte, error) {
			written.Add(1)
			dst = strconv.AppendUint(dst, x.Key, 10)
			dst = strconv.AppendUint(append(dst, ' '), x.Count, 10)
			return strconv.AppendInt(append(dst, ' '), x.At, 10), nil
		}
	}}
	return filesink.New(folder, e).NoBuckets().RollOnCheckpoint()
}

// timedFiles is a file sink that notes when each file becomes visible.
type timedFiles struct {
	*filesink.Sink[touched]
	feed *feed
	dir  string
	mu   sync.Mutex
	at   map[string]time.Duration // by name
}

// PlacedBy implements connector.Placed: that of the sink within would give the job the sink alone.
func (t *timedFiles) PlacedBy(find connector.Places) connector.CommittingSink[touched, filesink.Committable] {
	t.Sink = t.Sink.PlacedBy(find).(*filesink.Sink[touched])
	return t
}

// Committer implements connector.CommittingSink.
func (t *timedFiles) Committer(ctx connector.WriterContext) (connector.Committer[filesink.Committable], error) {
	c, err := t.Sink.Committer(ctx)
	return &timedCommitter{c, t}, err
}

type timedCommitter struct {
	connector.Committer[filesink.Committable]
	files *timedFiles
}

func (c *timedCommitter) Commit(ctx context.Context, all []filesink.Committable) error {
	err := c.Committer.Commit(ctx, all)
	now := c.files.feed.now()
	c.files.mu.Lock()
	defer c.files.mu.Unlock()
	for _, f := range all {
		if _, known := c.files.at[f.Name]; err == nil && !known && f.Name != "" {
			c.files.at[f.Name] = now
		}
	}
	return err
}

// contents are the elements in all files.
type contents struct {
	n, digest uint64
	bytes     int64
	latency   latencies
}

// read reads all files. Elements that were due before the given time have a latency.
func (t *timedFiles) read(till time.Duration) (c contents, err error) {
	for name, at := range t.at {
		text, err := os.ReadFile(filepath.Join(t.dir, name))
		if err != nil {
			return c, fmt.Errorf("read the files back: %w", err)
		}
		c.bytes += int64(len(text))
		for line := range bytes.Lines(text) {
			var x touched
			if _, err := fmt.Sscanf(string(line), "%d %d %d\n", &x.Key, &x.Count, &x.At); err != nil {
				return c, fmt.Errorf("read the files back: line %q of %s: %w", line, name, err)
			}
			c.n++
			c.digest += rolling(x.Key, x.Count)
			if x.At > 0 && time.Duration(x.At) < till {
				c.latency.add(at - time.Duration(x.At))
			}
		}
	}
	left, err := os.ReadDir(t.dir)
	if err == nil && len(left) != len(t.at) {
		err = fmt.Errorf("read the files back: there are %d files, %d were committed", len(left), len(t.at))
	}
	return c, err
}

// wire ends the job's stream in the sink.
func (t *timedFiles) wire(s *stream.Stream[touched]) {
	s.CommitTo[filesink.Committable](t).UID("files")
}
