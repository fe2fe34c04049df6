package checkpoint_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/statebackend/heap"
)

// storeGroups is the number of key groups.
const storeGroups = 16

// stores is the state of one operator: a heap store for each subtask.
type stores struct {
	t    *testing.T
	key  *serde.Key
	subs []*storeOf
}

// storeOf is a store with a table of each kind.
type storeOf struct {
	store  statebackend.Store
	groups keygroup.Range
	value  statebackend.Table
	list   statebackend.ListTable
	maps   statebackend.MapTable
}

func openStores(t *testing.T, parallelism int, from *checkpoint.Manifest, f vfs.FS) *stores {
	t.Helper()
	key, err := serde.KeyOf[int64]()
	if err != nil {
		t.Fatal(err)
	}
	s := &stores{t: t, key: key}
	number, err := serde.Of[int64]()
	if err != nil {
		t.Fatal(err)
	}
	text, err := serde.KeyOf[string]()
	if err != nil {
		t.Fatal(err)
	}
	for subtask := range parallelism {
		first, last := keygroup.RangeOf(storeGroups, parallelism, subtask)
		o := statebackend.Options{Key: key, Seed: checkpoint.DefaultHashSeed, MaxParallelism: storeGroups, FirstGroup: first, LastGroup: last}
		if from != nil {
			if o.Restored, _, err = from.Restore(f, storeOperator, subtask, parallelism, storeGroups); err != nil {
				t.Fatal(err)
			}
		}
		sub := &storeOf{groups: keygroup.Range{First: first, Last: last}}
		if sub.store, err = (heap.Backend{}).Open(o); err != nil {
			t.Fatal(err)
		}
		sub.value, err = sub.store.Table(statebackend.TableSpec{Name: "value", Value: text.Handle})
		if err == nil {
			sub.list, err = sub.store.List(statebackend.TableSpec{Name: "list", Value: number, List: true})
		}
		if err == nil {
			sub.maps, err = sub.store.Map(statebackend.TableSpec{Name: "map", Value: number, MapKey: text})
		}
		if err != nil {
			t.Fatal(err)
		}
		s.subs = append(s.subs, sub)
	}
	return s
}

const storeOperator = "000102030405060708090a0b0c0d0e0f"

// change changes the state of one key in some way.
func (s *stores) change(rnd *rand.Rand) {
	k := rnd.Int64N(60)
	var scratch serde.KeyScratch
	c, err := s.key.Canon(serde.Column{P: unsafe.Pointer(&k), N: 1, Stride: 8}, &scratch)
	if err != nil {
		s.t.Fatal(err)
	}
	hash := []uint64{0}
	s.key.Hash(&c, checkpoint.DefaultHashSeed, hash)
	group := keygroup.Of(uint32(hash[0]), storeGroups)
	sub := s.subs[slices.IndexFunc(s.subs, func(x *storeOf) bool { return x.groups.Contains(group) })]
	sub.store.BeginRun(&c, hash)
	number, word, mapKey := rnd.Int64(), strings.Repeat("w", rnd.IntN(40)), fmt.Sprint("m", rnd.IntN(6))
	switch rnd.IntN(9) {
	case 0, 1:
		err = sub.value.Save(0, unsafe.Pointer(&word))
	case 2:
		err = sub.value.Delete(0)
	case 3, 4:
		err = sub.list.Append(0, unsafe.Pointer(&number))
	case 5:
		err = sub.list.Delete(0)
	case 6, 7:
		err = sub.maps.Save(0, unsafe.Pointer(&mapKey), unsafe.Pointer(&number))
	default:
		if rnd.IntN(4) == 0 {
			err = sub.maps.Delete(0)
		} else {
			_, err = sub.maps.Remove(0, unsafe.Pointer(&mapKey))
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// text is all that the stores hold, ordered by key.
func (s *stores) text() string {
	var lines []string
	for _, sub := range s.subs {
		frozen, err := sub.store.Freeze(statebackend.Freezing{})
		if err != nil {
			s.t.Fatal(err)
		}
		for _, t := range frozen.Tables() {
			for r, err := range t.Rows {
				if err != nil {
					s.t.Fatal(err)
				}
				lines = append(lines, fmt.Sprintf("%s %x\x00 %s %x", t.Name, r.Key, r.MapKey, r.Value))
			}
		}
		frozen.Release()
	}
	slices.SortStableFunc(lines, func(a, b string) int {
		a, _, _ = strings.Cut(a, "\x00")
		b, _, _ = strings.Cut(b, "\x00")
		return strings.Compare(a, b)
	})
	return strings.Join(lines, "\n")
}

func (s *stores) close() {
	for _, sub := range s.subs {
		if err := sub.store.Close(); err != nil {
			s.t.Error(err)
		}
	}
}

// TestIncrementalCheckpointsOfAStoreAreRestored runs stores through checkpoints of changes, and compares what stores of several
// parallelisms begin with.
func TestIncrementalCheckpointsOfAStoreAreRestored(t *testing.T) {
	layered := 0
	for seed := range uint64(6) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		mem := vfs.NewMem()
		storage, err := checkpoint.OpenStorage(mem, "/c")
		if err != nil {
			t.Fatal(err)
		}
		live := openStores(t, 1+int(seed%3), nil, mem)
		var parts []*checkpoint.Part
		folder := ""
		for id := range int64(10) {
			for range 40 + rnd.IntN(100) {
				live.change(rnd)
			}
			at, err := storage.Begin(id)
			if err != nil {
				t.Fatal(err)
			}
			w := &checkpoint.Writer{FS: mem, Folder: at, InlineBytes: rnd.IntN(2000), ChunkBytes: 500}
			var now []*checkpoint.Part
			for i, sub := range live.subs {
				frozen, err := sub.store.Freeze(statebackend.Freezing{Anchor: true, Changes: parts != nil})
				if err != nil {
					t.Fatal(err)
				}
				state := &checkpoint.State{Tables: frozen.Tables(), EarlierFolder: folder}
				if parts != nil {
					state.Earlier = parts[i]
				}
				p, err := w.Write(t.Context(), storeOperator, i, sub.groups.First, sub.groups.Last, state)
				if err != nil {
					t.Fatal(err)
				}
				frozen.Release()
				n, _, _ := p.Layers()
				layered = max(layered, n)
				now = append(now, p)
			}
			parts, folder = now, at
			m := &checkpoint.Manifest{
				Folder: at, ID: id, HashSeed: checkpoint.DefaultHashSeed,
				Operators: []checkpoint.Operator{{ID: storeOperator, Parallelism: len(parts), MaxParallelism: storeGroups, Parts: parts}},
			}
			if _, err := storage.Complete(m); err != nil {
				t.Fatal(err)
			}
			want := live.text()
			for _, parallelism := range []int{1, 4} {
				again := openStores(t, parallelism, m, mem)
				if got := again.text(); got != want {
					t.Fatalf("seed %d, checkpoint %d, parallelism %d: got\n%s\nwant\n%s", seed, id, parallelism, got, want)
				}
				again.close()
			}
		}
		live.close()
	}
	if layered < 3 {
		t.Errorf("at most %d layers: the test tests little", layered)
	}
}

// TestHeapStoresRefuseFilesOfOtherBackends begins with state that they could not see.
func TestHeapStoresRefuseFilesOfOtherBackends(t *testing.T) {
	m, err := checkpoint.Load(nil, "testdata/v2/chk-9")
	if err != nil {
		t.Fatal(err)
	}
	restored, _, err := m.Restore(nil, "counts", 0, 2, 4)
	if err != nil {
		t.Fatal(err)
	}
	key, err := serde.KeyOf[string]()
	if err != nil {
		t.Fatal(err)
	}
	_, err = (heap.Backend{}).Open(statebackend.Options{Key: key, MaxParallelism: 4, LastGroup: 1, Operator: "Counts", Restored: restored})
	if err == nil || !strings.Contains(err.Error(), `files of the format "lines/1"`) {
		t.Errorf("got %v", err)
	}
}
