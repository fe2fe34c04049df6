package checkpoint

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// itemRange is which items of one list of one old subtask a new subtask gets.
type itemRange struct {
	part     *Part
	index    int // of the list in the part
	from, to int64
}

// dealt is what a new subtask gets of one list.
type dealt struct {
	info   ListInfo
	ranges []itemRange
}

// deal says which items of an operator's lists each of the new subtasks gets, as Flink does it. With another parallelism, the
// items of a split list, in the order of the old subtasks, are cut into even pieces; the first pieces, which may have an item
// more, go on with the subtask at which those of the list before ended, so that many short lists are even together. With the
// same parallelism they stay where they were. A broadcast list is that of an old subtask that has it, in turn.
func deal(parts []*Part, old, parallelism int) ([][]dealt, error) {
	all, err := gather(parts)
	if err != nil {
		return nil, err
	}
	out := make([][]dealt, parallelism)
	start := 0
	for _, ranges := range all {
		info := ranges[0].part.Lists[ranges[0].index]
		for i := range out {
			out[i] = append(out[i], dealt{info: info})
		}
		give := func(subtask int, r ...itemRange) {
			d := &out[subtask][len(out[subtask])-1]
			d.ranges = append(d.ranges, r...)
		}
		switch {
		case info.Mode == Union:
			for i := range out {
				give(i, ranges...)
			}
		case info.Mode == Broadcast:
			for i := range out {
				give(i, ranges[i%len(ranges)])
			}
		case old == parallelism:
			for _, r := range ranges {
				give(r.part.Subtask, r)
			}
		default:
			start = split(ranges, start, parallelism, give)
		}
	}
	return out, nil
}

// gather collects the lists by name, each in the order of the old subtasks.
func gather(parts []*Part) ([][]itemRange, error) {
	places := map[string]int{}
	var all [][]itemRange
	for _, p := range parts {
		for i := range p.Lists {
			l := &p.Lists[i]
			at, ok := places[l.Name]
			if !ok {
				at = len(all)
				places[l.Name] = at
				all = append(all, nil)
			} else if first := &all[at][0].part.Lists[all[at][0].index]; first.Mode != l.Mode || !sameSchema(first.Schema, l.Schema) {
				return nil, fmt.Errorf("its subtasks do not agree on what list %q is: subtask %d differs from those before", l.Name, p.Subtask)
			}
			all[at] = append(all[at], itemRange{part: p, index: i, to: l.Items})
		}
	}
	slices.SortFunc(all, func(a, b []itemRange) int {
		return strings.Compare(a[0].part.Lists[a[0].index].Name, b[0].part.Lists[b[0].index].Name)
	})
	return all, nil
}

// split cuts the items of a list into even pieces, the first of which goes to subtask start. It gives the subtask that is the
// first not to have got one more than others.
func split(ranges []itemRange, start, parallelism int, give func(int, ...itemRange)) int {
	total := int64(0)
	for _, r := range ranges {
		total += r.to
	}
	each, more := total/int64(parallelism), int(total%int64(parallelism))
	for i := range parallelism {
		want := each
		if i < more {
			want++
		}
		for want > 0 {
			r := ranges[0]
			r.to = min(r.to, r.from+want)
			if r.from < r.to {
				give((start+i)%parallelism, r)
			}
			want -= r.to - r.from
			if ranges[0].from = r.to; ranges[0].from == ranges[0].to {
				ranges = ranges[1:]
			}
		}
	}
	return (start + more) % parallelism
}

// lists reads the items of a subtask's lists.
func (r *restoredOperator) lists(subtask, parallelism int) ([]List, error) {
	all, err := deal(r.operator.Parts, r.operator.Parallelism, parallelism)
	if err != nil {
		return nil, err
	}
	var lists []List
	for _, d := range all[subtask] {
		l := List{Name: d.info.Name, Mode: d.info.Mode, Schema: d.info.Schema}
		for _, items := range d.ranges {
			if l.Items, err = r.items(l.Items, items); err != nil {
				return nil, fmt.Errorf("read list %q: %w", l.Name, err)
			}
		}
		lists = append(lists, l)
	}
	return lists, nil
}

// items appends the items of a range.
func (r *restoredOperator) items(dst [][]byte, items itemRange) ([][]byte, error) {
	seen := int64(0)
	for i := range items.part.chunks {
		c := &items.part.chunks[i]
		at := int64(chunkHeader)
		for j := range c.sections {
			s := &c.sections[j]
			if s.place == len(items.part.Tables)+items.index {
				if seen < items.to && seen+s.rows > items.from {
					var err error
					if dst, err = r.section(dst, c, s, at, items.from-seen, items.to-seen); err != nil {
						return nil, err
					}
				}
				seen += s.rows
			}
			at += s.bytes()
		}
	}
	return dst, nil
}

// section appends items [from, to) of a section, which begins at byte at of the chunk.
func (r *restoredOperator) section(dst [][]byte, c *chunk, s *section, at, from, to int64) (_ [][]byte, err error) {
	reader, err := openChunk(r.fs, r.folder, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.close()) }()
	n := int64(0)
	err = reader.blocks(s, at, func(b *block) (bool, error) {
		first := n
		if n += int64(b.rows); n <= from {
			return true, nil
		}
		rest := slices.Clone(b.payload)
		for i := range b.rows {
			length, tail, ok := readLength(rest)
			if !ok || length > len(tail) {
				return false, reader.damaged("item %d of the block at byte %d is cut or malformed", i+1, b.at)
			}
			if k := first + int64(i); k >= from && k < to {
				dst = append(dst, tail[:length:length])
			}
			rest = tail[length:]
		}
		if len(rest) > 0 {
			return false, reader.damaged("the block at byte %d has %d bytes behind its %d items", b.at, len(rest), b.rows)
		}
		return n < to, nil
	})
	if err == nil && n < min(to, s.rows) {
		err = reader.damaged("a list has %d items and should have %d", n, s.rows)
	}
	return dst, err
}
