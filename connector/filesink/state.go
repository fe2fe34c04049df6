package filesink

import (
	"encoding/binary"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/flott-dev/flott/connector"
)

// state is what a writer leaves in a checkpoint.
type state struct {
	next    int64      // the count of the next file
	parts   []openPart // files that are written further
	buckets []string   // where files were begun since the checkpoint before
}

// openPart is a file that is written further.
type openPart struct {
	bucket, temp, name string
	size               int64 // bytes that the checkpoint covers
	created, changed   int64 // ms
}

func (s *state) append(b []byte) []byte {
	b = binary.AppendUvarint(append(b, version), uint64(s.next))
	b = binary.AppendUvarint(b, uint64(len(s.parts)))
	for i := range s.parts {
		p := &s.parts[i]
		b = appendText(appendText(appendText(b, p.bucket), p.temp), p.name)
		b = binary.AppendUvarint(b, uint64(p.size))
		b = binary.AppendVarint(binary.AppendVarint(b, p.created), p.changed)
	}
	b = binary.AppendUvarint(b, uint64(len(s.buckets)))
	for _, bucket := range s.buckets {
		b = appendText(b, bucket)
	}
	return b
}

func readState(b []byte) (*state, error) {
	d, s := decoder{rest: b}, &state{}
	d.version()
	s.next = d.size()
	for range d.count() {
		s.parts = append(s.parts, openPart{d.text(), d.text(), d.text(), d.size(), d.time(), d.time()})
	}
	for range d.count() {
		s.buckets = append(s.buckets, d.text())
	}
	return s, d.end()
}

// coverage is what the snapshot that a job was restored from knows of hidden files.
type coverage struct {
	next map[int]int64     // by subtasks of then: the files from this count on are younger than the snapshot
	mine map[int]bool      // subtasks of then whose files are the writer's now
	most int64             // of next
	open map[string]string // hidden names of the files that are written further, by the path of their visible names
}

// restored is what a writer begins with.
type restored struct {
	coverage
	parts   []openPart // to be written further
	buckets []string   // where leftovers may be
}

func readStates(states []connector.WriterState) (*restored, error) {
	r := &restored{coverage: coverage{next: map[int]int64{}, mine: map[int]bool{}, open: map[string]string{}}}
	buckets := map[string]bool{}
	for _, w := range states {
		s, err := readState(w.State)
		if err != nil {
			return nil, fmt.Errorf("read the state of subtask %d: %w", w.Subtask, err)
		}
		r.next[w.Subtask], r.most = s.next, max(r.most, s.next)
		if !w.Mine {
			continue
		}
		r.mine[w.Subtask] = true
		r.parts = append(r.parts, s.parts...)
		for i := range s.parts {
			r.open[path.Join(s.parts[i].bucket, s.parts[i].name)] = s.parts[i].temp
		}
		for _, b := range s.buckets {
			buckets[b] = true
		}
	}
	r.buckets = slices.Sorted(maps.Keys(buckets))
	return r, nil
}

// owns tells whether the hidden files of a subtask are the writer's to remove.
func (c *coverage) owns(subtask, me, parallelism int) bool {
	if _, known := c.next[subtask]; known {
		return c.mine[subtask]
	}
	return subtask%parallelism == me
}

// covers tells whether the snapshot may refer to a hidden file.
func (c *coverage) covers(bucket, temp string, p parsed, name string) bool {
	next, known := c.next[p.subtask]
	if !known {
		next = c.most
	}
	if p.count >= next {
		return false
	}
	open, ok := c.open[path.Join(bucket, name)]
	return !ok || open == temp
}
