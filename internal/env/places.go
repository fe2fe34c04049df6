package env

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/vfs"
)

// places is the file system of all folders in which a job's snapshots may lie: those of the machine, by absolute paths, and
// those that URLs name, by names that url turns into the URLs again: "s3:/bucket/folder". It may be used by all goroutines.
type places struct {
	disk    vfs.FS
	openers []checkpoint.Opener

	mu     sync.Mutex
	mounts map[string]mount // by the name of the folder that was opened
}

// mount is a folder of some storage.
type mount struct {
	fs  vfs.FS
	dir string
}

// noHost stands where a URL has no host.
const noHost = "~"

// places are those of the environment's next job.
func (e *Env) places() *places {
	c := &e.Settings.Checkpoints
	p := &places{disk: c.disk()}
	memory := e.memoryStorage
	for _, o := range e.Settings.Storage {
		if m, ok := o.(*MemoryStorage); ok {
			memory = m
			continue
		}
		p.openers = append(p.openers, o)
	}
	p.openers = append(p.openers, limited{memory, c.MemoryLimit})
	return p
}

// split cuts the scheme from a text that is a URL. One letter is a drive of a machine, and a name with a colon is a URL only if
// somebody opens its scheme, or slashes follow.
func (p *places) split(location string) (scheme, rest string, ok bool) {
	scheme, rest, ok = strings.Cut(location, ":")
	if !ok || len(scheme) < 2 || strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+-.") != "" {
		return "", "", false
	}
	scheme = strings.ToLower(scheme)
	return scheme, rest, scheme == "file" || p.opener(scheme) != nil || strings.HasPrefix(rest, "//")
}

func (p *places) opener(scheme string) checkpoint.Opener {
	for _, o := range p.openers {
		for _, s := range o.Schemes() {
			if s == scheme {
				return o
			}
		}
	}
	return nil
}

// name is the name of a folder that a user means by a path or URL; its storage is opened.
func (p *places) name(ctx context.Context, location string) (string, error) {
	scheme, _, ok := p.split(location)
	if !ok {
		return slashed(location)
	}
	u, err := url.Parse(location)
	if err != nil {
		return "", fmt.Errorf("find the folder %s: %w", location, err)
	}
	if scheme == "file" {
		return ofFile(location, u)
	}
	name := nameOf(scheme, u)
	p.mu.Lock()
	defer p.mu.Unlock()
	return name, p.open(ctx, name)
}

// ofFile is the path of a file: URL.
func ofFile(location string, u *url.URL) (string, error) {
	if u.Host != "" && u.Host != "localhost" {
		return "", fmt.Errorf("find the folder %s: a file is on this machine, not on %s: write file:/%s%s", location, u.Host, u.Host, u.Path)
	}
	return slashed(filepath.FromSlash(u.Path + u.Opaque))
}

// onDisk is the path of a folder that must lie on a disk of this machine.
func onDisk(location string) (string, error) {
	if !connector.IsURL(location) {
		return slashed(location)
	}
	u, err := url.Parse(location)
	switch {
	case err != nil:
		return "", fmt.Errorf("find the folder %s: %w", location, err)
	case strings.EqualFold(u.Scheme, "file"):
		return ofFile(location, u)
	}
	return "", fmt.Errorf("%s is a URL, and a folder on a local disk is needed", location)
}

// open opens the storage of a folder. The caller holds the lock.
func (p *places) open(ctx context.Context, name string) error {
	if _, ok := p.mounts[name]; ok {
		return nil
	}
	location := locationOf(name)
	scheme, _, _ := strings.Cut(name, ":")
	o := p.opener(scheme)
	if o == nil {
		return fmt.Errorf("find the folder %s: no storage for %s: is linked; %s", location, scheme, howToLink(scheme))
	}
	u, err := url.Parse(location)
	var m mount
	if err == nil {
		m.fs, m.dir, err = o.Open(ctx, u)
	}
	if err != nil {
		return fmt.Errorf("open the folder %s: %w", location, err)
	}
	if p.mounts == nil {
		p.mounts = map[string]mount{}
	}
	p.mounts[name] = m
	return nil
}

// howToLink is the code that links the storage for a scheme.
func howToLink(scheme string) string {
	module := map[string]string{"s3": "s3", "s3a": "s3", "s3n": "s3", "s3p": "s3", "gs": "gs", "azblob": "azure", "abfs": "azure", "abfss": "azure", "wasb": "azure", "wasbs": "azure", "hdfs": "hdfs", "viewfs": "hdfs"}[scheme]
	if module == "" {
		return "pass what opens it: stream.NewEnv(stream.WithStorage(opener))"
	}
	return fmt.Sprintf("import github.com/flott-dev/flott/storage/%s and write stream.NewEnv(stream.WithStorage(%s.Opener{}))", module, module)
}

// nameOf is the name of a URL's folder: the scheme, one element for all that is not its path, the path.
func nameOf(scheme string, u *url.URL) string {
	host := u.Host
	if u.User != nil {
		host = u.User.String() + "@" + host
	}
	if u.RawQuery != "" {
		host += "?" + u.RawQuery
	}
	if host = url.PathEscape(host); host == "" {
		host = noHost
	}
	return path.Join(scheme+":", host, u.Path+u.Opaque)
}

// locationOf is what users know a folder by: the path, or the URL.
func locationOf(name string) string {
	if !remote(name) || strings.Contains(name, "://") {
		return filepath.FromSlash(name)
	}
	scheme, rest, _ := strings.Cut(name, ":/")
	host, folder, _ := strings.Cut(rest, "/")
	if host == noHost {
		host = ""
	}
	if h, err := url.PathUnescape(host); err == nil {
		host = h
	}
	host, query, asked := strings.Cut(host, "?")
	escaped := (&url.URL{Path: "/" + folder}).EscapedPath()
	if folder == "" {
		escaped = ""
	}
	location := scheme + "://" + host + escaped
	if asked {
		location += "?" + query
	}
	return location
}

// remote says whether a name is that of a URL.
func remote(name string) bool {
	scheme, _, ok := strings.Cut(name, ":")
	return ok && len(scheme) > 1 && !strings.Contains(scheme, "/")
}

// route is where a name leads: a storage, the name in it, and the folder by which the storage was opened, "" on the machine.
// Names above a folder that was opened lead nowhere: who makes folders durably looks at them, and they exist.
func (p *places) route(name string) (m vfs.FS, inner, opened string, err error) {
	name = path.Clean(name)
	if !remote(name) {
		return p.disk, name, "", nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for dir := name; dir != "."; dir = path.Dir(dir) {
		if m, ok := p.mounts[dir]; ok {
			return m.fs, path.Join(m.dir, strings.TrimPrefix(name, dir)), dir, nil
		}
	}
	for opened := range p.mounts {
		if strings.HasPrefix(opened, name+"/") {
			return above{}, name, name, nil
		}
	}
	root := rootOf(name) // a file of a snapshot that another job has left
	if err := p.open(context.Background(), root); err != nil {
		return nil, "", "", err
	}
	return p.mounts[root].fs, path.Join(p.mounts[root].dir, strings.TrimPrefix(name, root)), root, nil
}

// Open implements vfs.FS.
func (p *places) Open(name string) (vfs.File, error) {
	f, inner, _, err := p.route(name)
	if err != nil {
		return nil, err
	}
	return f.Open(inner)
}

// Create implements vfs.FS.
func (p *places) Create(name string, how vfs.Mode) (vfs.Writer, error) {
	f, inner, _, err := p.route(name)
	if err != nil {
		return nil, err
	}
	return f.Create(inner, how)
}

// ReadDir implements vfs.FS.
func (p *places) ReadDir(name string) ([]fs.DirEntry, error) {
	f, inner, _, err := p.route(name)
	if err != nil {
		return nil, err
	}
	return f.ReadDir(inner)
}

// Stat implements vfs.FS.
func (p *places) Stat(name string) (fs.FileInfo, error) {
	f, inner, _, err := p.route(name)
	if err != nil {
		return nil, err
	}
	return f.Stat(inner)
}

// Rename implements vfs.FS: both names must lead to one storage.
func (p *places) Rename(from, to string) error {
	f, innerFrom, a, err := p.route(from)
	if err != nil {
		return err
	}
	_, innerTo, b, err := p.route(to)
	if err != nil {
		return err
	}
	if a != b {
		return &fs.PathError{Op: "rename", Path: to, Err: errors.New("it is in another storage than " + from)}
	}
	return f.Rename(innerFrom, innerTo)
}

// Remove implements vfs.FS.
func (p *places) Remove(name string) error {
	return p.at(name, vfs.FS.Remove)
}

// Truncate implements vfs.FS.
func (p *places) Truncate(name string, size int64) error {
	return p.at(name, func(f vfs.FS, name string) error { return f.Truncate(name, size) })
}

// MkdirAll implements vfs.FS.
func (p *places) MkdirAll(name string) error { return p.at(name, vfs.FS.MkdirAll) }

// SyncDir implements vfs.FS.
func (p *places) SyncDir(name string) error { return p.at(name, vfs.FS.SyncDir) }

// WholeFiles implements checkpoint.WholeFS.
func (p *places) WholeFiles(folder string) bool {
	f, inner, _, err := p.route(folder)
	w, ok := f.(checkpoint.WholeFS)
	return err == nil && ok && w.WholeFiles(inner)
}

// OnDisk implements vfs.OnDisk.
func (p *places) OnDisk(folder string) bool {
	return !remote(folder) && vfs.IsOnDisk(p.disk, folder)
}

func (p *places) at(name string, f func(vfs.FS, string) error) error {
	m, inner, _, err := p.route(name)
	if err != nil {
		return err
	}
	return f(m, inner)
}

// above are the folders above those that were opened: they exist, and nothing is looked for in them.
type above struct{ vfs.FS }

func (above) MkdirAll(string) error { return nil }
func (above) SyncDir(string) error  { return nil }

func (above) Remove(name string) error {
	return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrExist}
}

func (above) Stat(name string) (fs.FileInfo, error) { return folderInfo(path.Base(name)), nil }

func (above) ReadDir(name string) ([]fs.DirEntry, error) {
	return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrPermission}
}

func (above) Open(name string) (vfs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func (above) Create(name string, _ vfs.Mode) (vfs.Writer, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}

func (above) Rename(_, to string) error {
	return &fs.PathError{Op: "rename", Path: to, Err: fs.ErrPermission}
}

func (above) Truncate(name string, _ int64) error {
	return &fs.PathError{Op: "truncate", Path: name, Err: fs.ErrNotExist}
}

// folderInfo is a folder of that name.
type folderInfo string

func (i folderInfo) Name() string     { return string(i) }
func (folderInfo) Size() int64        { return 0 }
func (folderInfo) Mode() fs.FileMode  { return fs.ModeDir | 0o777 }
func (folderInfo) ModTime() time.Time { return time.Time{} }
func (folderInfo) IsDir() bool        { return true }
func (folderInfo) Sys() any           { return nil }
