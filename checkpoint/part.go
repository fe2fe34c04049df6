package checkpoint

import (
	"path"
	"strings"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// Part describes what one operator of one subtask wrote for a snapshot: where its rows and items lie, or, if they are few,
// the bytes themselves. It travels in the subtask's acknowledgement (Encode, DecodePart) and ends up in the manifest. It
// must not be changed.
type Part struct {
	// Subtask is the number of the subtask, from 0.
	Subtask int
	// Finished says that the subtask had ended before the snapshot, so that there is nothing to restore.
	Finished bool
	// FirstGroup and LastGroup are the key groups that were the subtask's, both inclusive.
	FirstGroup, LastGroup int
	// Tables are the tables, Lists the lists of which the chunks hold rows and items.
	Tables []statebackend.TableInfo
	Lists  []ListInfo
	// Chunks hold the rows and items, in order.
	Chunks []Chunk
}

// ListInfo says what the items of a list are.
type ListInfo struct {
	// Name, Mode and Schema are those of the List.
	Name   string
	Mode   Mode
	Schema *serde.Schema
	// Items is the number of items.
	Items int64
}

// Chunk is a piece of a part: a file of its own, or bytes inside the manifest.
type Chunk struct {
	// Path is the file, slash-separated, seen from the snapshot's folder: a name, or a path to an earlier checkpoint's file
	// ("../chk-3/..."). Empty for a chunk that lies in the manifest.
	Path string
	// Inline is the chunk itself if it lies in the manifest.
	Inline []byte
	// Size is the number of bytes.
	Size int64
	// Digest names the contents: a file with another one is not the one that was written.
	Digest Digest
	// Sections are the parts of tables and lists in the chunk, in the order of their bytes.
	Sections []Section
}

// Digest names the contents of a chunk: two chunks with one digest are equal.
type Digest [16]byte

// Section is consecutive rows of one table, or items of one list, in a chunk.
type Section struct {
	// Index is the table's place in Part.Tables or, from len(Part.Tables) on, the list's in Part.Lists.
	Index int
	// Rows is the number of rows or items.
	Rows int64
	// Groups are the key groups with rows, in rising order, and how many bytes each takes. A list has group 0 only.
	Groups []GroupBytes
}

// GroupBytes is how many bytes of a section are one key group's.
type GroupBytes struct {
	// Group is the key group.
	Group int
	// Bytes is what its rows take in the chunk, checksums included.
	Bytes int64
}

// Files are the files that the part needs, as paths: those that lie in the folder of its snapshot, and those of earlier
// checkpoints.
func (p *Part) Files(folder string) (own, earlier []string) {
	for i := range p.Chunks {
		switch c := &p.Chunks[i]; {
		case c.Path == "":
		case strings.Contains(c.Path, "/"):
			earlier = append(earlier, c.file(folder))
		default:
			own = append(own, c.file(folder))
		}
	}
	return own, earlier
}

// file is the path of the chunk's file.
func (c *Chunk) file(folder string) string {
	if path.IsAbs(c.Path) {
		return c.Path
	}
	return path.Join(folder, c.Path)
}
