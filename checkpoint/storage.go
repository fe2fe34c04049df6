package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/flott-dev/flott/internal/vfs"
)

// Storage is the folder of one job's checkpoints: folders chk-1, chk-2, ... in it. It counts which files the manifests name,
// so that a file is removed with the last checkpoint that needs it. One process at a time owns the folder; the methods may
// be called from any goroutine.
type Storage struct {
	fs     vfs.FS
	dir    string
	direct *DirectFiles // nil: it has none

	mu sync.Mutex
	// complete are the complete checkpoints by folder, with the files that they name; named counts by how many a file is.
	complete map[string][]string
	named    map[string]int
	// begun are folders of checkpoints that were begun here and not completed: a manifest in them is somebody else's.
	begun map[string]bool
}

// Found is a checkpoint in a Storage.
type Found struct {
	// ID is its number, Folder where it lies.
	ID     int64
	Folder string
	// Manifest is what it holds; nil if Err says why it can't be read.
	Manifest *Manifest
	Err      error
}

const checkpointPrefix = "chk-"

// OpenStorage opens the folder of a job's checkpoints and makes it if there is none. It reads the manifests that are there;
// damaged ones are no error here (List shows them).
func OpenStorage(f vfs.FS, dir string) (*Storage, error) {
	s := &Storage{fs: f, dir: path.Clean(dir), complete: map[string][]string{}, named: map[string]int{}, begun: map[string]bool{}}
	if err := makeFolder(f, s.dir); err != nil {
		return nil, fmt.Errorf("open checkpoint storage %s: %w", dir, err)
	}
	found, err := s.List()
	if err != nil {
		return nil, err
	}
	for i := range found {
		if m := found[i].Manifest; m != nil {
			s.uses(m.Folder, m.Files())
		}
	}
	return s, nil
}

// Folder is where the checkpoint with the id lies, or would.
func (s *Storage) Folder(id int64) string {
	return path.Join(s.dir, checkpointPrefix+strconv.FormatInt(id, 10))
}

// Begin makes the folder of a checkpoint, durably, and gives its path. The folder may exist: an earlier process may have
// ended in the middle of a checkpoint of this number. If it is complete, that is an error: numbers are not used again.
func (s *Storage) Begin(id int64) (folder string, err error) {
	folder = s.Folder(id)
	err = refuseComplete(s.fs, folder)
	if err == nil {
		err = s.fs.MkdirAll(folder)
	}
	if err == nil {
		err = s.fs.SyncDir(s.dir)
	}
	if err != nil {
		return "", fmt.Errorf("begin checkpoint %d in %s: %w", id, folder, err)
	}
	s.mu.Lock()
	s.begun[folder] = true
	s.mu.Unlock()
	return folder, nil
}

// BeginSnapshot makes the folder of a snapshot, durably, with those above it. It is an error if a complete snapshot lies
// there. Savepoints are begun with it; their folder has files of theirs only.
func BeginSnapshot(f vfs.FS, folder string) error {
	err := refuseComplete(f, folder)
	if err == nil {
		err = makeFolder(f, folder)
	}
	if err != nil {
		return fmt.Errorf("begin snapshot %s: %w", folder, err)
	}
	return nil
}

// refuseComplete fails if a folder has a manifest.
func refuseComplete(f vfs.FS, folder string) error {
	_, err := f.Stat(path.Join(folder, ManifestName))
	switch {
	case err == nil:
		return fmt.Errorf("a complete snapshot lies there already: %w", fs.ErrExist)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// makeFolder makes a folder so that it survives a crash, with those above it. Those that exist may have been made by somebody
// who did not wait for the disk, so the names of all of them are synced, from above, so that what is durable has a way to it.
func makeFolder(f vfs.FS, dir string) error {
	var above []string
	missing := false
	for d := dir; path.Dir(d) != d; d = path.Dir(d) {
		_, err := f.Stat(d)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		missing = missing || err != nil
		above = append(above, path.Dir(d))
	}
	if missing {
		if err := f.MkdirAll(dir); err != nil {
			return err
		}
	}
	for _, d := range slices.Backward(above) {
		// Folders that this user may not read are not of this user's making.
		if err := f.SyncDir(d); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

// Complete makes the snapshot of m.Folder, which was begun and whose parts are written, exist: it writes the manifest so that
// after a crash all of it is there or nothing. It gives the folder's path, by which users name the snapshot. After an error
// the snapshot does not exist, or, if the disk refuses to forget it, may come back after a crash as long as its files are
// not removed: Remove sees to that. If somebody else has completed it, the error is fs.ErrExist, and theirs stays.
func (s *Storage) Complete(m *Manifest) (folder string, err error) {
	if err = refuseComplete(s.fs, m.Folder); err == nil {
		// Others need not wait for a disk that hangs: the files are counted before the manifest names them.
		s.mu.Lock()
		s.uses(m.Folder, m.Files())
		begun := s.begun[m.Folder]
		delete(s.begun, m.Folder)
		s.mu.Unlock()
		if err = s.write(m); err != nil {
			s.mu.Lock()
			s.uses(m.Folder, nil)
			if begun && errors.Is(err, fs.ErrExist) {
				s.begun[m.Folder] = true
			}
			s.mu.Unlock()
		}
	}
	if err != nil {
		return "", fmt.Errorf("complete %v %d in %s: %w", m.Kind, m.ID, m.Folder, err)
	}
	return m.Folder, nil
}

func (s *Storage) write(m *Manifest) error {
	b, err := m.Encode()
	if err != nil {
		return err
	}
	m.size = int64(len(b))
	final := path.Join(m.Folder, ManifestName)
	if wholeFiles(s.fs, m.Folder) {
		err := writeNew(s.fs, final, b)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			err = errors.Join(err, s.dropManifest(m.Folder))
		}
		return err
	}
	written := final + temporary
	err = vfs.WriteFile(s.fs, written, b)
	if err == nil {
		err = s.fs.Rename(written, final)
	}
	if err != nil {
		_ = s.fs.Remove(written)
		return err
	}
	if err := s.fs.SyncDir(m.Folder); err != nil {
		return errors.Join(err, s.dropManifest(m.Folder))
	}
	return nil
}

// writeNew makes a file that must not exist.
func writeNew(f vfs.FS, name string, data []byte) error {
	w, err := f.Create(name, vfs.Exclusive)
	if err != nil {
		return err
	}
	_, err = vfs.WriteAll(w, data)
	if err == nil {
		err = w.Sync()
	}
	return errors.Join(err, w.Close())
}

// temporary is the end of the name of a manifest that is being written.
const temporary = ".new"

// uses says which files the complete snapshot of a folder names; none: there is no such snapshot any more.
func (s *Storage) uses(folder string, files []string) {
	for _, file := range s.complete[folder] {
		if s.named[file]--; s.named[file] == 0 {
			delete(s.named, file)
		}
	}
	delete(s.complete, folder)
	if len(files) == 0 {
		return
	}
	s.complete[folder] = files
	for _, file := range files {
		s.named[file]++
	}
}

// Files are the paths of all files that the snapshot needs beside its manifest, each once.
func (m *Manifest) Files() []string {
	var all []string
	for i := range m.Operators {
		for _, p := range m.Operators[i].Parts {
			own, earlier := p.Files(m.Folder)
			all = append(append(all, own...), earlier...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// List gives the complete checkpoints of the storage in the order of their ids, damaged ones as well. Savepoints are not
// among them.
func (s *Storage) List() ([]Found, error) {
	entries, err := s.fs.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("list checkpoints in %s: %w", s.dir, err)
	}
	var all []Found
	for _, e := range entries {
		id, ok := checkpointID(e.Name())
		if !ok || !e.IsDir() {
			continue
		}
		f := Found{ID: id, Folder: path.Join(s.dir, e.Name())}
		f.Manifest, f.Err = Load(s.fs, f.Folder)
		if errors.Is(f.Err, fs.ErrNotExist) {
			continue
		}
		if f.Err == nil && f.Manifest.ID != id {
			f.Manifest, f.Err = nil, &DamagedError{
				File: path.Join(f.Folder, ManifestName), Reason: fmt.Sprintf("it is that of checkpoint %d", f.Manifest.ID),
			}
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b Found) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

func checkpointID(name string) (int64, bool) {
	digits, ok := strings.CutPrefix(name, checkpointPrefix)
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseInt(digits, 10, 64)
	return id, err == nil && id >= 0 && strconv.FormatInt(id, 10) == digits
}

// Latest is the complete checkpoint with the largest id; nil if there is none. If its manifest can't be read, that is the
// error: to go back to an older one, whose successor may have committed results, is for somebody else to decide (List).
func (s *Storage) Latest() (*Manifest, error) {
	all, err := s.List()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	last := all[len(all)-1]
	return last.Manifest, last.Err
}

// Discard removes a snapshot: its manifest first, then its files, except those that another complete checkpoint of the
// storage names. After an error or a crash in between, files may stay as litter (Sweep), but no snapshot stays half.
func (s *Storage) Discard(m *Manifest) error { return s.Remove(m.Folder, m.Files()) }

// Remove removes what lies in the folder of a snapshot: the manifest, if there is one, and then these files (Part.Files),
// except those that another complete checkpoint of the storage names, and folders that are empty thereafter. It serves
// snapshots that were given up as well as complete ones; what does not exist is no error. With an empty folder it removes
// files only, and of a checkpoint that was begun here and completed by somebody else as well.
func (s *Storage) Remove(folder string, files []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if folder != "" && !s.begun[folder] {
		if err := s.removeManifest(folder); err != nil {
			return fmt.Errorf("remove snapshot %s: %w", folder, err)
		}
	}
	delete(s.begun, folder)
	if err := s.removeFiles(folder, files); err != nil {
		return fmt.Errorf("remove files of snapshot %s: %w", folder, err)
	}
	return nil
}

// removeManifest makes a snapshot one that never was.
func (s *Storage) removeManifest(folder string) error {
	if err := s.dropManifest(folder); err != nil {
		return err
	}
	s.uses(folder, nil)
	return nil
}

func (s *Storage) dropManifest(folder string) error {
	for _, name := range []string{ManifestName, ManifestName + temporary} {
		if err := s.fs.Remove(path.Join(folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := s.fs.SyncDir(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// UseDirectFiles lets Remove have the room of files on the machine's disks freed beside its caller: a file system may take 10 ms
// for a large one. It must come before other calls.
func (s *Storage) UseDirectFiles(d *DirectFiles) { s.direct = d }

// removeFiles removes files that nobody names, and folders that become empty by it.
func (s *Storage) removeFiles(folder string, files []string) error {
	var failed []error
	folders := map[string]bool{folder: folder != ""}
	disk := s.direct.take(s.fs, s.dir)
	defer s.direct.give(disk)
	for _, file := range files {
		if s.named[file] > 0 {
			continue
		}
		if err := disk.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, err)
		}
		folders[path.Dir(file)] = true
	}
	failed = append(failed, disk.Wait())
	for dir, ours := range folders {
		if ours {
			_ = s.fs.Remove(dir) // fails, as it should, if something is left in it
		}
	}
	return errors.Join(failed...)
}

// Sweep removes the litter of processes that ended in the middle: files of checkpoints that were never completed, or were
// being discarded. It must not be called while a snapshot is being taken. If a manifest can't be read, nothing is removed, as
// it could name anything.
func (s *Storage) Sweep() error {
	found, err := s.List()
	if err != nil {
		return err
	}
	for i := range found {
		if found[i].Err != nil {
			return fmt.Errorf("sweep checkpoints: %w", found[i].Err)
		}
	}
	entries, err := s.fs.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("sweep checkpoints: %w", err)
	}
	for _, e := range entries {
		if _, ok := checkpointID(e.Name()); ok && e.IsDir() {
			if err := s.sweepFolder(path.Join(s.dir, e.Name())); err != nil {
				return fmt.Errorf("sweep checkpoints: %w", err)
			}
		}
	}
	return nil
}

func (s *Storage) sweepFolder(folder string) error {
	entries, err := s.fs.ReadDir(folder)
	if err != nil {
		return err
	}
	var litter []string
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, chunkSuffix) || strings.HasSuffix(name, fileSuffix) || name == ManifestName+temporary {
			litter = append(litter, path.Join(folder, name))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removeFiles(folder, litter)
}
