package pebble

import "unsafe"

// segment is memory in which rows lie one after the other, in the order in which they came. It holds no pointers. Rows stay
// where they are until the whole segment is cleared.
type segment struct {
	number uint32
	mem    []uint64
	used   int // words
	dirty  int // rows, about: never less
	views  []pending
}

// pending is a snapshot that has not taken yet what it needs of a segment: place is the segment's in it.
type pending struct {
	v     *view
	place int
}

func (s *segment) bytes() int64 { return int64(len(s.mem)) * 8 }

func (s *segment) at(word int) *row { return (*row)(unsafe.Pointer(&s.mem[word])) }

// each calls f for every row, dead ones too.
func (s *segment) each(f func(r *row)) {
	for at := 0; at < s.used; {
		r := s.at(at)
		n := r.words()
		f(r)
		at += n
	}
}

// queue is segments in the order in which they were begun; the last one takes new rows.
type queue struct {
	segments []*segment
	bytes    int64
}

func (q *queue) push(s *segment) {
	q.segments = append(q.segments, s)
	q.bytes += s.bytes()
}

func (q *queue) pop() *segment {
	s := q.segments[0]
	q.segments[0] = nil
	q.segments = q.segments[1:]
	q.bytes -= s.bytes()
	return s
}

// last is the segment that takes rows, if it has room for words more.
func (q *queue) last(words int) *segment {
	if n := len(q.segments); n > 0 {
		if s := q.segments[n-1]; len(s.mem)-s.used >= words {
			return s
		}
	}
	return nil
}

// place makes room for a row of words in a queue.
func (c *cache) place(q *queue, words int) (*row, *segment, error) {
	s := q.last(words)
	if s == nil {
		var err error
		if s, err = c.segment(words); err != nil {
			return nil, nil, err
		}
		q.push(s)
	}
	r := s.at(s.used)
	s.used += words
	return r, s, nil
}

// segment gives an empty segment with room for words, which may be more than segments usually have.
func (c *cache) segment(words int) (*segment, error) {
	var s *segment
	if n := len(c.spare); n > 0 && words <= c.segmentWords {
		s = c.spare[n-1]
		c.spare[n-1] = nil
		c.spare = c.spare[:n-1]
	} else {
		words = max(words, c.segmentWords)
		if err := c.reserve(int64(words) * 8); err != nil {
			return nil, err
		}
		s = c.build(words)
	}
	c.bytes += s.bytes()
	return s, nil
}

// prepare sees to it that there is a spare segment, if the budget allows it.
func (c *cache) prepare() bool {
	if len(c.spare) == 0 {
		if c.reserve(int64(c.segmentWords)*8) != nil {
			return false
		}
		c.spare = append(c.spare, c.build(c.segmentWords))
	}
	return true
}

// build makes a segment, whose memory was reserved.
func (c *cache) build(words int) *segment {
	s := &segment{mem: make([]uint64, words)}
	if n := len(c.numbers); n > 0 {
		s.number = c.numbers[n-1]
		c.numbers = c.numbers[:n-1]
		c.segments[s.number] = s
		return s
	}
	if len(c.segments) == 0 {
		c.segments = append(c.segments, nil) // no segment has number 0
	}
	s.number = uint32(len(c.segments))
	c.segments = append(c.segments, s)
	if s.number > maxSegments {
		panic("pebble: a cache of more segments than an index can name") // 256 GiB at least
	}
	return s
}

// vacate makes a segment whose rows are gone a spare one, or gives its memory back.
func (c *cache) vacate(s *segment) {
	c.bytes -= s.bytes()
	clear(s.views)
	s.used, s.dirty, s.views = 0, 0, s.views[:0]
	if len(s.mem) == c.segmentWords {
		c.spare = append(c.spare, s)
		return
	}
	c.scrap(s)
}

// scrap gives the memory of an empty segment back.
func (c *cache) scrap(s *segment) {
	c.segments[s.number] = nil
	c.numbers = append(c.numbers, s.number)
	c.giveBack(s.bytes())
}
