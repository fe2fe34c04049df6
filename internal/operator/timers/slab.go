package timers

import (
	"unsafe"
)

// record is the head of a timer; the bytes of key and namespace follow it in the slab, or the arena's reference to them.
type record struct {
	at   int64
	hash uint64
	tag  uint32 // hash of key, namespace and time in the index; of a free record: the next free one
	gen  uint32 // odd while the timer is set; each use of the record has its own
	klen uint32
	nlen uint32
}

const (
	recordSize = unsafe.Sizeof(record{})
	slabPage   = 256 // records
)

// slab holds records in pages that never move. Records are named by number; a freed one is used again first.
type slab struct {
	pages  []unsafe.Pointer
	inline int     // payload bytes in place
	stride uintptr // recordSize and the payload
	free   uint32  // number+1 of the first free record
	used   uint32  // records ever handed out
}

func (s *slab) init(inline int) {
	s.inline = (inline + 7) &^ 7
	s.stride = recordSize + uintptr(s.inline)
}

func (s *slab) at(id uint32) *record {
	return (*record)(unsafe.Add(s.pages[id/slabPage], uintptr(id%slabPage)*s.stride))
}

// take hands out a record with an odd generation.
func (s *slab) take() (uint32, *record) {
	var id uint32
	if s.free != 0 {
		id = s.free - 1
		s.free = s.at(id).tag
	} else {
		id = s.used
		s.used++
		if id == 1<<32-2 {
			panic("timers: more than 4 billion timers in one subtask")
		}
		if id/slabPage == uint32(len(s.pages)) {
			words := make([]uint64, slabPage*s.stride/8)
			s.pages = append(s.pages, unsafe.Pointer(unsafe.SliceData(words)))
		}
	}
	r := s.at(id)
	r.gen |= 1
	return id, r
}

// retire ends the record's generation, give makes it free; in between its payload can still be read.
func (s *slab) retire(r *record) { r.gen++ }

func (s *slab) give(id uint32, r *record) {
	r.tag = s.free
	s.free = id + 1
}

// bytes is the payload in place.
func (s *slab) bytes(r *record) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(r), recordSize)), s.inline)
}

// each calls f for every record of a timer that is set, until it returns false.
func (s *slab) each(f func(r *record) bool) {
	for id := range s.used {
		if r := s.at(id); r.gen&1 == 1 && !f(r) {
			return
		}
	}
}

func (s *slab) memory() int64 { return int64(len(s.pages)) * int64(slabPage*s.stride) }
