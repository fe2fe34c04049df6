package checkpoint

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// benchTables are tables whose rows are made beforehand: 8-byte keys with 8-byte values, words with text values, and windows
// (namespaces) of words.
func benchTables(b *testing.B, n int) map[string]statebackend.FrozenTable {
	rnd := rand.New(rand.NewPCG(1, 2))
	numbers := info(b, "numbers", "value", "int64", "int64", "", "", nil)
	texts := info(b, "texts", "value", "string", "struct{Name string;Count int64}", "", "", nil)
	windows := info(b, "windows", "value", "string", "int64", "", "struct{Start int64;End int64}", nil)
	tables := map[string]statebackend.FrozenTable{}
	for _, i := range []statebackend.TableInfo{numbers, texts, windows} {
		rows := make([]statebackend.Row, n)
		for k := range rows {
			key := le(rnd.Uint64())
			if i.Key.Kind == serde.String {
				key = fmt.Appendf(nil, "user-%d", rnd.Uint64N(1e12))
			}
			rows[k] = keyed(b, i, 128, key)
			rows[k].Value = le(rnd.Uint64())
			if i.Value.Kind != serde.Int64 {
				rows[k].Value = append([]byte("\x18somebody with a long name"), rows[k].Value...)
			}
			if i.Namespace != nil {
				rows[k].Namespace = append(le(uint64(k)), le(uint64(k+1))...)
			}
		}
		slices.SortFunc(rows, func(a, b statebackend.Row) int { return a.Group - b.Group })
		tables[i.Name] = statebackend.FrozenTable{TableInfo: i, Rows: each(packed(rows))}
	}
	return tables
}

// packed lays the bytes of rows side by side, as a backend's pages do, so that cold memory is not what is measured.
func packed(rows []statebackend.Row) []statebackend.Row {
	var all []byte
	keep := func(b *[]byte) {
		if *b != nil {
			at := len(all)
			all = append(all, *b...)
			*b = all[at:len(all):len(all)]
		}
	}
	size := 0
	for i := range rows {
		size += len(rows[i].Key) + len(rows[i].Namespace) + len(rows[i].Value)
	}
	all = make([]byte, 0, size)
	for i := range rows {
		keep(&rows[i].Key)
		keep(&rows[i].Namespace)
		keep(&rows[i].Value)
	}
	return rows
}

const benchRows = 2_000_000

func BenchmarkWrite(b *testing.B) {
	tables := benchTables(b, benchRows)
	for _, where := range []string{"discard", "disk"} {
		for name, t := range tables {
			b.Run(where+"/"+name, func(b *testing.B) {
				dir := filepath.ToSlash(b.TempDir())
				var fs vfs.FS = vfs.OS{}
				if where == "discard" {
					fs = discard{vfs.NewMem()}
				}
				b.ReportAllocs()
				for i := range b.N {
					w := &Writer{FS: fs, Folder: dir}
					p, err := w.Write(b.Context(), op(i), 0, 0, 127, &State{Tables: []statebackend.FrozenTable{t}})
					if err != nil {
						b.Fatal(err)
					}
					b.SetBytes(p.Bytes())
					b.StopTimer()
					own, _ := p.Files(dir)
					for _, f := range own {
						_ = fs.Remove(f)
					}
					b.StartTimer()
				}
				b.ReportMetric(float64(benchRows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}

// discard is a file system that loses what is written.
type discard struct{ vfs.FS }

func (discard) Create(string, vfs.Mode) (vfs.Writer, error) { return nowhere{}, nil }
func (discard) SyncDir(string) error                        { return nil }
func (discard) Remove(string) error                         { return nil }

type nowhere struct{}

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) Sync() error                 { return nil }
func (nowhere) Close() error                { return nil }

// BenchmarkRawWrite is the floor of BenchmarkWrite: as many bytes, in the same pieces, and one fsync.
func BenchmarkRawWrite(b *testing.B) {
	for _, size := range []int{34 << 20, 100 << 20} {
		b.Run(fmt.Sprint(size>>20, "MiB"), func(b *testing.B) {
			buf := make([]byte, flushBytes)
			for i := range buf {
				buf[i] = byte(i * 7)
			}
			b.SetBytes(int64(size))
			for range b.N {
				f, err := os.Create(filepath.Join(b.TempDir(), "raw"))
				if err != nil {
					b.Fatal(err)
				}
				for n := 0; n < size; n += len(buf) {
					if _, err := f.Write(buf); err != nil {
						b.Fatal(err)
					}
				}
				if err := f.Sync(); err != nil {
					b.Fatal(err)
				}
				_ = f.Close()
				_ = os.Remove(f.Name())
			}
		})
	}
}

func BenchmarkRestore(b *testing.B) {
	for name, t := range benchTables(b, benchRows) {
		b.Run(name, func(b *testing.B) {
			dir := filepath.ToSlash(b.TempDir())
			p, err := (&Writer{FS: vfs.OS{}, Folder: dir}).Write(b.Context(), op(1), 0, 0, 127, &State{Tables: []statebackend.FrozenTable{t}})
			if err != nil {
				b.Fatal(err)
			}
			m := &Manifest{Folder: dir, HashSeed: seed, Operators: []Operator{{ID: op(1), Parallelism: 1, MaxParallelism: 128, Parts: []*Part{p}}}}
			b.SetBytes(p.Bytes())
			b.ReportAllocs()
			for b.Loop() {
				r, _, err := m.Restore(vfs.OS{}, op(1), 0, 1, 128)
				if err != nil {
					b.Fatal(err)
				}
				frozen, _ := r.Table(name)
				n := 0
				for row, err := range frozen.Rows {
					if err != nil {
						b.Fatal(err)
					}
					n += len(row.Key)
				}
			}
			b.ReportMetric(float64(benchRows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkRestoreLayers restores tables upon which changes of a tenth of the keys lie, in five layers.
func BenchmarkRestoreLayers(b *testing.B) {
	for name, t := range benchTables(b, benchRows/4) {
		b.Run(name, func(b *testing.B) {
			dir := filepath.ToSlash(b.TempDir())
			w := &Writer{FS: vfs.OS{}, Folder: dir}
			p, err := w.Write(b.Context(), op(1), 0, 0, 127, &State{Tables: []statebackend.FrozenTable{t}})
			for layer := 0; layer < 5 && err == nil; layer++ {
				some := func(yield func(*statebackend.Row, error) bool) {
					n := layer
					for r, err := range t.Rows {
						if n++; n%50 == 0 && !yield(r, err) {
							return
						}
					}
				}
				p, err = w.Write(b.Context(), op(1), 0, 0, 127, &State{
					Earlier: p, EarlierFolder: dir, Tables: []statebackend.FrozenTable{{TableInfo: t.TableInfo, Changes: true, Rows: some}},
				})
			}
			if err != nil {
				b.Fatal(err)
			}
			m := &Manifest{Folder: dir, HashSeed: seed, Operators: []Operator{{ID: op(1), Parallelism: 1, MaxParallelism: 128, Parts: []*Part{p}}}}
			b.SetBytes(p.Bytes())
			b.ReportAllocs()
			for b.Loop() {
				restoreRows(b, m, name, benchRows/4)
			}
			b.ReportMetric(float64(benchRows/4)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// restoreRows reads all rows of a table, of which there are n.
func restoreRows(b *testing.B, m *Manifest, name string, n int) {
	r, _, err := m.Restore(vfs.OS{}, op(1), 0, 1, 128)
	if err != nil {
		b.Fatal(err)
	}
	table, _ := r.Table(name)
	rows := 0
	for _, err := range table.Rows {
		if err != nil {
			b.Fatal(err)
		}
		rows++
	}
	if rows != n {
		b.Fatalf("%d rows, want %d", rows, n)
	}
}

// BenchmarkRestoreChain restores the ends of long chains: tables upon which so many layers lie, each of which changes the same
// hot keys, so that all changes together are as many as the rows. Beside it is the same state in one layer ("whole"). A chain of
// 64 is the longest that checkpoints make, longer ones show that nothing grows with the square.
func BenchmarkRestoreChain(b *testing.B) {
	const n = benchRows / 4
	for name, t := range benchTables(b, n) {
		for _, layers := range []int{0, 8, 64, 256} {
			kind := "whole"
			if layers > 0 {
				kind = fmt.Sprint(layers, "-layers")
			}
			b.Run(name+"/"+kind, func(b *testing.B) {
				m := hotChain(b, t, layers)
				b.ReportAllocs()
				for b.Loop() {
					restoreRows(b, m, name, n)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n)/float64(b.N), "ns/row")
			})
		}
	}
}

// hotChain writes a table and layers of changes, in each of which one row of so many as there are layers is changed.
func hotChain(b *testing.B, t statebackend.FrozenTable, layers int) *Manifest {
	dir := filepath.ToSlash(b.TempDir())
	w := &Writer{FS: vfs.OS{}, Folder: dir}
	p, err := w.Write(b.Context(), op(1), 0, 0, 127, &State{Tables: []statebackend.FrozenTable{t}})
	for layer := 0; layer < layers && err == nil; layer++ {
		hot := func(yield func(*statebackend.Row, error) bool) {
			i := 0
			for r, err := range t.Rows {
				if i++; i%layers == 0 && !yield(r, err) {
					return
				}
			}
		}
		p, err = w.Write(b.Context(), op(1), 0, 0, 127, &State{
			Earlier: p, EarlierFolder: dir, Tables: []statebackend.FrozenTable{{TableInfo: t.TableInfo, Changes: true, Rows: hot}},
		})
	}
	if err != nil {
		b.Fatal(err)
	}
	return &Manifest{Folder: dir, HashSeed: seed, Operators: []Operator{{ID: op(1), Parallelism: 1, MaxParallelism: 128, Parts: []*Part{p}}}}
}
