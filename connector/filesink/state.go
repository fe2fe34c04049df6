package filesink

import (
	"encoding/binary"
	"errors"
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
	groups  []group    // closed files that are held back
	scratch []place    // hidden files that are of no use to anybody else
}

// place is where a hidden file is.
type place struct{ bucket, temp string }

// openPart is a file that is written further.
type openPart struct {
	bucket, temp, name string
	size               int64 // bytes that the checkpoint covers
	created, changed   int64 // ms
	elements           int64 // 0 in version 1, which did not count them

	joins string // the name of the group to which it was added if it was closed soon after the snapshot; no part of the state
}

func (s *state) append(b []byte) []byte {
	b = binary.AppendUvarint(append(b, stateVersion), uint64(s.next))
	b = binary.AppendUvarint(b, uint64(len(s.parts)))
	for i := range s.parts {
		p := &s.parts[i]
		b = appendText(appendText(appendText(b, p.bucket), p.temp), p.name)
		b = binary.AppendUvarint(b, uint64(p.size))
		b = binary.AppendVarint(binary.AppendVarint(b, p.created), p.changed)
		b = binary.AppendUvarint(b, uint64(p.elements))
	}
	b = binary.AppendUvarint(b, uint64(len(s.buckets)))
	for _, bucket := range s.buckets {
		b = appendText(b, bucket)
	}
	b = binary.AppendUvarint(b, uint64(len(s.groups)))
	for i := range s.groups {
		b = s.groups[i].append(b)
	}
	b = binary.AppendUvarint(b, uint64(len(s.scratch)))
	for _, at := range s.scratch {
		b = appendText(appendText(b, at.bucket), at.temp)
	}
	return b
}

func (g *group) append(b []byte) []byte {
	b = appendText(b, g.bucket)
	kind := uint64(0)
	if g.whole {
		kind = 1
	}
	b = binary.AppendUvarint(binary.AppendUvarint(b, kind), uint64(g.head))
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(g.age)), uint64(len(g.pieces)))
	for i := range g.pieces {
		b = binary.AppendUvarint(appendText(b, g.pieces[i].temp), uint64(g.pieces[i].size))
	}
	return b
}

func readState(b []byte) (*state, error) {
	d, s := decoder{rest: b}, &state{}
	v := d.version(stateVersion)
	s.next = d.size()
	for range d.count() {
		p := openPart{d.text(), d.text(), d.text(), d.size(), d.time(), d.time(), 0, ""}
		if v > 1 {
			p.elements = d.size()
		}
		s.parts = append(s.parts, p)
	}
	for range d.count() {
		s.buckets = append(s.buckets, d.text())
	}
	if v > 1 {
		for range d.count() {
			s.groups = append(s.groups, d.group())
		}
		for range d.count() {
			s.scratch = append(s.scratch, place{d.text(), d.text()})
		}
	}
	return s, d.end()
}

func (d *decoder) group() group {
	g := group{bucket: d.text()}
	kind := d.number()
	if kind > 1 {
		d.fail(fmt.Errorf("a group of kind %d is not known", kind))
	}
	g.whole, g.head, g.age = kind == 1, d.size(), int(d.size())
	for range d.count() {
		g.pieces = append(g.pieces, piece{temp: d.text(), size: d.size()})
	}
	if len(g.pieces) == 0 {
		d.fail(errors.New("a group without files"))
	}
	return g
}

// coverage is what the snapshot that a job was restored from knows of hidden files.
type coverage struct {
	next map[int]int64     // by subtasks of then: the files from this count on are younger than the snapshot
	mine map[int]bool      // subtasks of then whose files are the writer's now
	most int64             // of next
	open map[string]string // hidden names of the files that are written further, by the path of their visible names

	scratch map[place]bool // hidden files that the snapshot knows and has no use for
}

// restored is what a writer begins with.
type restored struct {
	coverage
	parts   []openPart // to be written further
	groups  []group    // to be held back further
	buckets []string   // where leftovers may be
}

func readStates(states []connector.WriterState) (*restored, error) {
	r := &restored{coverage: coverage{next: map[int]int64{}, mine: map[int]bool{}, open: map[string]string{}, scratch: map[place]bool{}}}
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
		joining := map[string]string{}
		for i := range s.groups {
			joining[s.groups[i].bucket] = s.groups[i].name()
		}
		for i := range s.parts {
			s.parts[i].joins = joining[s.parts[i].bucket]
		}
		r.parts = append(r.parts, s.parts...)
		for i := range s.parts {
			r.open[path.Join(s.parts[i].bucket, s.parts[i].name)] = s.parts[i].temp
		}
		for _, b := range s.buckets {
			buckets[b] = true
		}
		r.groups = append(r.groups, s.groups...)
		for _, at := range s.scratch {
			r.scratch[at], buckets[at.bucket] = true, true
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
	if p.count >= next || c.scratch[place{bucket, temp}] {
		return false
	}
	open, ok := c.open[path.Join(bucket, name)]
	return !ok || open == temp
}
