package iterate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/vfs"
)

type letter struct {
	N    int64
	Text string
}

func typeOf[T any](t testing.TB) *frame.Type {
	t.Helper()
	typ, err := frame.TypeOf[T]()
	if err != nil {
		t.Fatal(err)
	}
	return typ
}

// reader takes from a spool as a head does.
type reader struct {
	t     *testing.T
	s     *spool
	col   *frame.Column
	bytes []byte
	times []int64
}

// next returns the next item as text: letters with their times, or a probe.
func (r *reader) next() (out []string, ok bool) {
	it, ok := r.s.take()
	if !ok {
		return nil, false
	}
	switch {
	case it.frame != nil:
		run := it.frame.Run()
		out = format(&run)
		r.s.recycle(it.frame)
	case it.seg != nil:
		run, bytes, times, err := r.s.read(&it, r.col, r.bytes, r.times)
		if err != nil {
			r.t.Fatal(err)
		}
		r.bytes, r.times = bytes, times
		out = format(&run)
		r.col.Reset()
		if err := r.s.done(&it); err != nil {
			r.t.Fatal(err)
		}
	default:
		out = []string{fmt.Sprint("probe ", it.probe)}
	}
	return out, true
}

func format(r *frame.Run) (out []string) {
	for i, l := range frame.Values[letter](r) {
		out = append(out, fmt.Sprint(l.N, " ", l.Text, "@", r.Time(i)))
	}
	return out
}

func files(t *testing.T, m *vfs.Mem) []string {
	t.Helper()
	entries, err := m.ReadDir("/spill")
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestSpoolIsAQueue compares random sequences of calls with a slice.
func TestSpoolIsAQueue(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := vfs.NewMem()
		typ := typeOf[letter](t)
		s := newSpool(typ, []int64{0, 40 << 10, 1 << 30}[seed%3], nil, m, "/spill/x")
		r := &reader{t: t, s: s, col: frame.NewColumn(typ, typ.FrameLen(frame.Bytes))}
		var want []string
		var queued, n int64
		col := frame.NewColumn(typ, frame.MaxLen)
		for step := range 1500 {
			switch x := rng.IntN(10); {
			case x == 0:
				s.mark(int64(step + 1))
				want = append(want, fmt.Sprint("probe ", step+1))
			case x < 6 && (step/500)%2 == 0 || x < 2:
				for range 1 + rng.IntN(700) {
					at := int64(frame.NoTime)
					if step%3 == 0 {
						at = n * 10
					}
					l := letter{n, strings.Repeat("ab", int(n%5))}
					frame.Add(col, l, at)
					want = append(want, fmt.Sprint(l.N, " ", l.Text, "@", at))
					n++
				}
				run := col.Run()
				queued += int64(run.N)
				if err := s.add(&run); err != nil {
					t.Fatal(err)
				}
				col.Reset()
			default:
				got, ok := r.next()
				if ok != (len(want) > 0) || ok && !slices.Equal(got, want[:len(got)]) {
					t.Fatalf("seed %d, step %d: took %v, want %v", seed, step, got, want[:min(len(want), len(got)+1)])
				}
				want = want[len(got):]
				if ok && !strings.HasPrefix(got[0], "probe") {
					queued -= int64(len(got))
				}
			}
			if s.queued != queued {
				t.Fatalf("seed %d, step %d: %d elements queued, want %d", seed, step, s.queued, queued)
			}
		}
		if spilled := s.spilled > 0; spilled != (seed%3 != 2) {
			t.Errorf("seed %d: spilled %d elements with a limit of %d bytes", seed, s.spilled, s.limit)
		}
		if dropped, err := s.close(); err != nil || dropped != queued {
			t.Errorf("seed %d: %d dropped, want %d, %v", seed, dropped, queued, err)
		}
		if left := files(t, m); len(left) != 0 {
			t.Errorf("seed %d: files left: %q", seed, left)
		}
	}
}

func fill(t *testing.T, s *spool, n int) error {
	t.Helper()
	col := frame.NewColumn(s.typ, frame.MaxLen)
	for i := range n {
		if col.Room() == 0 {
			run := col.Run()
			if err := s.add(&run); err != nil {
				return err
			}
			col.Reset()
		}
		frame.Add(col, letter{int64(i), "text"}, frame.NoTime)
	}
	run := col.Run()
	return s.add(&run)
}

func TestSpoolKeepsItsMemoryBound(t *testing.T) {
	m := vfs.NewMem()
	s := newSpool(typeOf[letter](t), 64<<10, nil, m, "/spill/x")
	if err := fill(t, s, 100_000); err != nil {
		t.Fatal(err)
	}
	if s.used > 64<<10+2*s.bytes {
		t.Errorf("%d bytes in memory", s.used)
	}
	if len(files(t, m)) != 1 {
		t.Errorf("files %q", files(t, m))
	}
}

func TestSpoolDrawsOnTheBudgetOfTheProcess(t *testing.T) {
	typ := typeOf[letter](t)
	budget := host.NewMemory(100 << 10)
	s := newSpool(typ, 1<<30, budget, vfs.NewMem(), "/spill/x")
	if err := fill(t, s, 50_000); err != nil {
		t.Fatal(err)
	}
	if s.spilled == 0 || budget.Used() > 100<<10 {
		t.Errorf("spilled %d elements, %d bytes are reserved", s.spilled, budget.Used())
	}
	r := &reader{t: t, s: s, col: frame.NewColumn(typ, typ.FrameLen(frame.Bytes))}
	for n := 0; n < 20_000; {
		got, ok := r.next()
		if !ok {
			t.Fatal("the queue is empty")
		}
		n += len(got)
	}
	if _, err := s.close(); err != nil {
		t.Fatal(err)
	}
	if budget.Used() != 0 {
		t.Errorf("%d bytes are reserved at the end", budget.Used())
	}
	if err := fill(t, newSpool(typ, 1<<30, host.NewMemory(1), vfs.NewMem(), "/spill/x"), 1); err == nil {
		t.Error("there is no memory for one frame, but nothing was said")
	}
}

func TestSpoolBeginsFilesAnewAndRemovesThoseItHasRead(t *testing.T) {
	m := vfs.NewMem()
	typ := typeOf[letter](t)
	s := newSpool(typ, 0, nil, m, "/spill/x")
	if err := m.MkdirAll("/spill"); err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteFile(m, "/spill/x-1.spill", nil); err != nil { // somebody else's
		t.Fatal(err)
	}
	if err := fill(t, s, 5000); err != nil {
		t.Fatal(err)
	}
	s.current.size = segmentBytes // as if it were full
	if err := fill(t, s, 5000); err != nil {
		t.Fatal(err)
	}
	if got := files(t, m); !reflect.DeepEqual(got, []string{"x-0.spill", "x-1.spill", "x-2.spill"}) {
		t.Errorf("files %q", got)
	}
	r := &reader{t: t, s: s, col: frame.NewColumn(typ, typ.FrameLen(frame.Bytes))}
	for n := 0; n < 5500; {
		got, ok := r.next()
		if !ok {
			t.Fatal("the queue is empty")
		}
		n += len(got)
	}
	if got := files(t, m); !reflect.DeepEqual(got, []string{"x-1.spill", "x-2.spill"}) {
		t.Errorf("files after the first was read: %q", got)
	}
	if _, err := s.close(); err != nil {
		t.Fatal(err)
	}
	if got := files(t, m); !reflect.DeepEqual(got, []string{"x-1.spill"}) {
		t.Errorf("files at the end: %q", got)
	}
}

func TestSpoolReportsAFullDisk(t *testing.T) {
	full := errors.New("disk full")
	s := newSpool(typeOf[letter](t), 0, nil, brokenFS{vfs.NewMem(), full}, "/spill/x")
	err := fill(t, s, 5000)
	if !errors.Is(err, full) || !strings.Contains(err.Error(), "/spill/x-0.spill") {
		t.Errorf("error %v", err)
	}
}

// brokenFS makes files that can't be written.
type brokenFS struct {
	vfs.FS
	err error
}

func (f brokenFS) Create(name string, how vfs.Mode) (vfs.Writer, error) {
	w, err := f.FS.Create(name, how)
	return brokenWriter{w, f.err}, err
}

type brokenWriter struct {
	vfs.Writer
	err error
}

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func FuzzDecodeRun(f *testing.F) {
	typ := typeOf[letter](f)
	col := frame.NewColumn(typ, 8)
	for i := range 3 {
		frame.Add(col, letter{int64(i), "text"}, int64(i))
	}
	run := col.Run()
	b, err := encodeRun(nil, &run)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, 3)
	f.Add([]byte{0}, 0)
	f.Add([]byte{2, 3}, 1)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		if n < 0 || n > 8 {
			return
		}
		run := frame.NewColumn(typ, 8).Fill(n)
		if _, err := decodeRun(b, &run, nil); err != nil {
			return
		}
		again, err := encodeRun(nil, &run)
		if err != nil {
			t.Fatal(err)
		}
		other := frame.NewColumn(typ, 8).Fill(n)
		if _, err := decodeRun(again, &other, nil); err != nil || !slices.Equal(format(&run), format(&other)) {
			t.Errorf("decoded %v, then %v (%v)", format(&run), format(&other), err)
		}
	})
}
