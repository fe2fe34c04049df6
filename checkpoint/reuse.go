package checkpoint

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Reuse gives the part as a later checkpoint names it that has nothing new to write for the operator: from is the folder of
// the snapshot that the part was written for, to that of the later checkpoint. Its files stay where they are and are shared;
// Storage removes them with the last checkpoint that names them. A savepoint can't reuse parts with files: it has all of its
// own. It is an error if one of the folders is absolute and the other is not.
func (p *Part) Reuse(from, to string) (*Part, error) {
	again := *p
	again.chunks = slices.Clone(p.chunks)
	for i := range again.chunks {
		if c := &again.chunks[i]; c.path != "" {
			var err error
			if c.path, err = relative(to, inFolder(from, c.path)); err != nil {
				return nil, err
			}
		}
	}
	if p.files != nil {
		set := *p.files
		set.files = slices.Clone(set.files)
		for i := range set.files {
			f := &set.files[i]
			var err error
			if f.path, err = relative(to, inFolder(from, f.path)); err != nil {
				return nil, err
			}
		}
		again.files = &set
	}
	return &again, nil
}

// relative is the path of a file seen from a folder.
func relative(folder, file string) (string, error) {
	folder, file = path.Clean(folder), path.Clean(file)
	from, to := elements(folder), elements(file)
	same := 0
	for same < len(from) && same < len(to)-1 && from[same] == to[same] {
		same++
	}
	if path.IsAbs(folder) != path.IsAbs(file) || slices.Contains(from[same:], "..") {
		return "", fmt.Errorf("there is no path from folder %s to file %s", folder, file)
	}
	return strings.Repeat("../", len(from)-same) + strings.Join(to[same:], "/"), nil
}

func elements(name string) []string {
	name = strings.TrimPrefix(name, "/")
	if name == "" || name == "." {
		return nil
	}
	return strings.Split(name, "/")
}
