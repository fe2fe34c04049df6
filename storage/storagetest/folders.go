package storagetest

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"

	"github.com/flott-dev/flott/internal/vfs"
)

// manyFiles is more than object stores list at once.
const manyFiles = 1010

func whatDoesNotExistIsSaidNotToExist(p *place) {
	name := p.at("nothing")
	_, err := p.fs.Open(name)
	p.is("open", err, fs.ErrNotExist)
	_, err = p.fs.Stat(name)
	p.is("stat", err, fs.ErrNotExist)
	p.is("remove", p.fs.Remove(name), fs.ErrNotExist)
	p.is("rename", p.fs.Rename(name, p.at("other")), fs.ErrNotExist)
	_, err = p.fs.Stat(p.at("other"))
	p.is("stat of the new name", err, fs.ErrNotExist)
	// Folders of object stores come and go with what is in them, so that one without anything may as well exist.
	if entries, err := p.fs.ReadDir(name); err != nil {
		p.is("readdir", err, fs.ErrNotExist)
	} else if len(entries) != 0 {
		p.Errorf("a folder that does not exist lists %v", entries)
	}
	p.ok(vfs.RemoveAll(p.fs, name))
}

func foldersListWhatIsInThem(p *place) {
	dir := p.at("a/b")
	p.ok(p.fs.MkdirAll(dir))
	p.ok(p.fs.MkdirAll(dir))
	p.ok(p.fs.SyncDir(p.dir))
	if got := p.list(dir); len(got) != 0 {
		p.Errorf("a new folder lists %v", got)
	}
	for _, name := range []string{"a/b/z", "a/b/x", "a/b-file", "a/c", "a/b/deep/er/file", "a/b/y"} {
		p.make(p.at(name), name)
	}
	for dir, want := range map[string][]string{
		".":        {"a/"},
		"a":        {"b-file", "b/", "c"},
		"a/b":      {"deep/", "x", "y", "z"},
		"a/b/":     {"deep/", "x", "y", "z"},
		"a/b/deep": {"er/"},
	} {
		got := p.list(p.at(dir))
		slices.Sort(got)
		if !slices.Equal(got, want) {
			p.Errorf("%s lists %v, want %v", dir, got, want)
		}
	}
	if got := p.list(p.at("a/b")); !slices.Equal(got, []string{"deep/", "x", "y", "z"}) {
		p.Errorf("not in the order of names: %v", got)
	}
	for _, dir := range []string{".", "a", "a/b", "a/b/deep"} {
		info, err := p.again.Stat(p.at(dir))
		p.ok(err)
		if !info.IsDir() || info.Mode().IsRegular() || info.Name() != path.Base(p.at(dir)) {
			p.Errorf("stat of folder %s: %q, mode %v", dir, info.Name(), info.Mode())
		}
	}
	entries, err := p.fs.ReadDir(p.at("a/b"))
	p.ok(err)
	info, err := entries[1].Info()
	p.ok(err)
	if info.Size() != int64(len("a/b/x")) || info.ModTime().IsZero() {
		p.Errorf("listed as %d bytes of %v", info.Size(), info.ModTime())
	}
	if entries, err = p.fs.ReadDir(p.at("a/c")); err == nil {
		p.Errorf("a file lists %v", entries)
	}
}

func longFolderIsListedWhole(p *place) {
	names := make(chan string)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for name := range names {
				if err := p.write(p.at(name), vfs.Truncate, nil); err != nil {
					p.Error(err)
				}
			}
		})
	}
	var want []string
	for i := range manyFiles {
		want = append(want, fmt.Sprintf("file-%04d", i))
		names <- want[i]
	}
	close(names)
	all.Wait()
	if got := p.list(p.dir); !slices.Equal(got, want) {
		p.Errorf("%d files list as %d names", len(want), len(got))
	}
}

func namesKeepTheirLetters(p *place) {
	names := []string{"a b", "a%20b", "a+b", "é-ü", "x=1&y=2", "q?r", "#1", "日本", "per_cent%", "it's", "[x]", "_metadata.new"}
	for _, name := range names {
		p.make(p.at(path.Join("folder "+name, name)), name)
	}
	for _, name := range names {
		dir := p.at("folder " + name)
		p.holds(path.Join(dir, name), []byte(name))
		if got := p.list(dir); !slices.Equal(got, []string{name}) {
			p.Errorf("%q lists as %q", name, got)
		}
		p.ok(p.fs.Rename(path.Join(dir, name), path.Join(dir, name+"2")))
		p.holds(path.Join(dir, name+"2"), []byte(name))
	}
}

func renameMovesOverAnotherFile(p *place) {
	p.make(p.at("from"), "new")
	p.make(p.at("to"), "the old one")
	p.ok(p.fs.Rename(p.at("from"), p.at("to")))
	p.ok(p.fs.SyncDir(p.dir))
	p.holds(p.at("to"), []byte("new"))
	_, err := p.again.Stat(p.at("from"))
	p.is("the old name", err, fs.ErrNotExist)
	p.make(p.at("large"), string(pattern(3<<20)))
	p.ok(p.fs.Rename(p.at("large"), p.at("moved")))
	p.holds(p.at("moved"), pattern(3<<20))
	if got := p.list(p.dir); !slices.Equal(got, []string{"moved", "to"}) {
		p.Errorf("left are %v", got)
	}
}

func removeRemovesFilesAndEmptyFolders(p *place) {
	p.make(p.at("a/b/c"), "c")
	p.make(p.at("a/d"), "d")
	for _, dir := range []string{"a", "a/b"} {
		if err := p.fs.Remove(p.at(dir)); err == nil {
			p.Errorf("removed folder %s, which was not empty", dir)
		}
	}
	p.holds(p.at("a/b/c"), []byte("c"))
	p.ok(p.fs.Remove(p.at("a/b/c")))
	p.ok(p.fs.SyncDir(p.at("a/b")))
	if err := p.fs.Remove(p.at("a/b")); err != nil {
		p.is("removing a folder that may be gone", err, fs.ErrNotExist)
	}
	if got := p.list(p.at("a")); !slices.Equal(got, []string{"d"}) {
		p.Errorf("left are %v", got)
	}
	p.make(p.at("a/b/e/f"), "f")
	p.ok(vfs.RemoveAll(p.fs, p.at("a")))
	_, err := p.again.Stat(p.at("a"))
	p.is("after removing all", err, fs.ErrNotExist)
	p.ok(vfs.RemoveAll(p.fs, p.at("a")))
}
