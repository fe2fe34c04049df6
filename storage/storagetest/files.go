package storagetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/flott-dev/flott/internal/vfs"
)

// largeBytes is more than the parts in which object stores take files.
const largeBytes = 20<<20 + 12345

func fileHoldsWhatWasWritten(p *place) {
	for _, n := range []int{0, 1, 511, 512, 513, 100_000} {
		name := p.at(fmt.Sprint("file-", n))
		data := pattern(n)
		p.ok(p.write(name, vfs.Exclusive, data))
		p.holds(name, data)
	}
	w, err := p.fs.Create(p.at("pieces"), vfs.Exclusive)
	p.ok(err)
	var all []byte
	for i := range 300 {
		piece := pattern(i)
		n, err := w.Write(piece)
		if n != len(piece) || err != nil {
			p.Fatalf("wrote %d of %d bytes: %v", n, len(piece), err)
		}
		all = append(all, piece...)
		clear(piece) // what was written is the file system's no more
	}
	p.ok(errors.Join(w.Sync(), w.Close(), p.fs.SyncDir(p.dir)))
	p.holds(p.at("pieces"), all)
	if _, err := w.Write([]byte("x")); err == nil {
		p.Error("a closed writer writes")
	}
}

func largeFileIsReadFromAnywhere(p *place) {
	data := pattern(largeBytes)
	name := p.at("large")
	p.ok(p.write(name, vfs.Exclusive, data))
	f, err := p.again.Open(name)
	p.ok(err)
	info, err := f.Stat()
	p.ok(err)
	if info.Size() != largeBytes || info.IsDir() {
		p.Fatalf("stat of the open file: %d bytes, folder %v", info.Size(), info.IsDir())
	}
	read := func(at, n int) {
		p.Helper()
		b := make([]byte, n)
		got, err := f.ReadAt(b, int64(at))
		want := data[min(at, largeBytes):min(at+n, largeBytes)]
		if !bytes.Equal(b[:got], want) {
			p.Fatalf("reading %d bytes at %d gave %d, not those that are there", n, at, got)
		}
		if short := len(want) < n; short && err != io.EOF || !short && err != nil && err != io.EOF {
			p.Fatalf("reading %d bytes at %d: error %v", n, at, err)
		}
	}
	read(0, 8) // a header, the end, then from front to back with a gap: as chunks are read
	read(largeBytes-16, 16)
	for at := 8; at < 9<<20; at += 256 << 10 {
		read(at, 256<<10)
	}
	read(10<<20, 1<<20)
	read(11<<20+1000, 1<<20)
	read(5, 100)
	read(largeBytes-10, 20)
	read(largeBytes, 1)
	read(largeBytes+100, 1)
	read(3, 0)
	if _, err := f.ReadAt(make([]byte, 1), -1); err == nil {
		p.Error("read before the beginning")
	}
	p.ok(f.Close())
	p.holds(name, data)
}

func fileIsReadBySeveralGoroutines(p *place) {
	data := pattern(1 << 20)
	p.ok(p.write(p.at("shared"), vfs.Exclusive, data))
	f, err := p.fs.Open(p.at("shared"))
	p.ok(err)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			b := make([]byte, 64<<10)
			for i := range 8 {
				at := (g*3 + i*5) % 16 * len(b)
				if _, err := f.ReadAt(b, int64(at)); err != nil && err != io.EOF || !bytes.Equal(b, data[at:at+len(b)]) {
					p.Errorf("goroutine %d, reading at %d: %v, or other bytes", g, at, err)
				}
			}
		})
	}
	all.Wait()
	p.ok(f.Close())
}

// fileIsSyncedWhileItIsWritten does what the writer of chunks does: it syncs in the background.
func fileIsSyncedWhileItIsWritten(p *place) {
	data := pattern(largeBytes)
	w, err := p.fs.Create(p.at("synced"), vfs.Exclusive)
	p.ok(err)
	synced := make(chan error, 1)
	running := false
	for at := 0; at < len(data); at += 256 << 10 {
		if at%(8<<20) == 0 {
			if running {
				p.ok(<-synced)
			}
			running = true
			go func() { synced <- w.Sync() }()
		}
		_, err := w.Write(data[at:min(at+256<<10, len(data))])
		p.ok(err)
	}
	p.ok(<-synced)
	p.ok(errors.Join(w.Sync(), w.Close(), p.fs.SyncDir(p.dir)))
	p.holds(p.at("synced"), data)
}

func truncatingWriterReplacesTheFile(p *place) {
	name := p.at("file")
	for _, text := range []string{"a long first text", "second", ""} {
		p.ok(p.write(name, vfs.Truncate, []byte(text)))
		p.holds(name, []byte(text))
	}
}

func exclusiveWriterReplacesNothing(p *place) {
	name := p.at("file")
	p.ok(p.write(name, vfs.Exclusive, []byte("first")))
	p.is("making it again", p.write(name, vfs.Exclusive, []byte("second")), fs.ErrExist)
	p.holds(name, []byte("first"))
	p.ok(p.fs.Remove(name))
	p.ok(p.write(name, vfs.Exclusive, []byte("third")))
	p.holds(name, []byte("third"))
}

// oneOfManyExclusiveWritersWins lets writers meet that were all told that the file does not exist, and has the losers clean up
// after themselves: that must not take away the winner's file.
func oneOfManyExclusiveWritersWins(p *place) {
	name := p.at("file")
	files := []vfs.FS{p.fs, p.again, p.fs, p.again}
	writers := make([]vfs.Writer, len(files))
	for i, f := range files {
		w, err := f.Create(name, vfs.Exclusive)
		if err != nil {
			p.is("making it", err, fs.ErrExist)
			continue
		}
		writers[i] = w
	}
	var won []int
	for i, w := range writers {
		if w == nil {
			continue
		}
		_, err := fmt.Fprint(w, "writer ", i)
		if err = errors.Join(err, w.Sync(), w.Close()); err == nil {
			won = append(won, i)
			continue
		}
		p.is("closing it", err, fs.ErrExist)
		if err := files[i].Remove(name); err != nil {
			p.is("cleaning up", err, fs.ErrNotExist)
		}
	}
	if len(won) != 1 {
		p.Fatalf("writers %v won", won)
	}
	p.holds(name, fmt.Append(nil, "writer ", won[0]))
	p.ok(p.fs.Remove(name))
	_, err := p.again.Stat(name)
	p.is("after removing", err, fs.ErrNotExist)
}

func unsupportedCallsChangeNothing(p *place) {
	name := p.at("file")
	p.make(name, "12345")
	switch err := p.fs.Truncate(name, 3); {
	case err == nil:
		p.holds(name, []byte("123"))
		p.make(name, "12345")
	default:
		p.is("cutting", err, errors.ErrUnsupported)
	}
	switch err := p.write(name, vfs.Append, []byte("67")); {
	case err == nil:
		p.holds(name, []byte("1234567"))
	default:
		p.is("appending", err, errors.ErrUnsupported)
		p.holds(name, []byte("12345"))
	}
}

func manyGoroutinesHaveFilesOfTheirOwn(p *place) {
	var all sync.WaitGroup
	for g := range 16 {
		all.Go(func() {
			name, data := p.at(fmt.Sprint("file-", g)), pattern(1000*g)
			for range 3 {
				err := p.write(name, vfs.Exclusive, data)
				got, readErr := vfs.ReadFile(p.fs, name)
				if err = errors.Join(err, readErr, p.fs.Remove(name)); err != nil || !bytes.Equal(got, data) {
					p.Errorf("goroutine %d: %v, or other bytes", g, err)
				}
			}
		})
	}
	all.Wait()
	if left := p.list(p.dir); len(left) != 0 {
		p.Errorf("%v are left", left)
	}
}
