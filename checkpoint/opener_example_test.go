package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"

	"github.com/flott-dev/flott/checkpoint"
)

// share is a storage of one's own: a mounted network share. It has all that snapshots need.
type share struct{ root string }

func (s share) at(name string) string { return filepath.Join(s.root, filepath.FromSlash(name)) }

func (s share) Open(name string) (checkpoint.File, error) {
	f, err := os.Open(s.at(name))
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (s share) Create(name string, how checkpoint.CreateMode) (checkpoint.FileWriter, error) {
	flags := os.O_WRONLY | os.O_CREATE
	switch how {
	case checkpoint.Truncate:
		flags |= os.O_TRUNC
	case checkpoint.Exclusive:
		flags |= os.O_EXCL
	default:
		return nil, &fs.PathError{Op: "create", Path: name, Err: errors.ErrUnsupported}
	}
	f, err := os.OpenFile(s.at(name), flags, 0o666)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (s share) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(s.at(name)) }
func (s share) Stat(name string) (fs.FileInfo, error)      { return os.Stat(s.at(name)) }
func (s share) Rename(from, to string) error               { return os.Rename(s.at(from), s.at(to)) }
func (s share) Remove(name string) error                   { return os.Remove(s.at(name)) }
func (s share) Truncate(name string, size int64) error     { return os.Truncate(s.at(name), size) }
func (s share) MkdirAll(name string) error                 { return os.MkdirAll(s.at(name), 0o777) }

func (s share) SyncDir(name string) error {
	f, err := os.Open(s.at(name))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// opener opens URLs such as share://backup/checkpoints. A program passes it to stream.WithStorage.
type opener struct{ mounted string }

func (opener) Schemes() []string { return []string{"share"} }

func (o opener) Open(_ context.Context, u *url.URL) (checkpoint.FS, string, error) {
	return share{filepath.Join(o.mounted, u.Host)}, path.Join("/", u.Path), nil
}

// A storage of one's own is an FS and an Opener. A draft writes a snapshot into it here; jobs do so alike.
func ExampleOpener() {
	mounted, err := os.MkdirTemp("", "shares")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(mounted)
	var o checkpoint.Opener = opener{mounted}
	u, _ := url.Parse("share://backup/savepoints/first")
	storage, dir, err := o.Open(context.Background(), u)
	if err == nil {
		err = storage.MkdirAll("/") // the share exists already
	}
	if err == nil {
		err = checkpoint.NewDraft("bootstrap").Write(context.Background(), storage, dir)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := checkpoint.Load(storage, dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Kind, "in", m.Folder)
	// Output: savepoint in /savepoints/first
}
