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
	// chunks hold the rows and items, in the order of tables and lists.
	chunks []chunk
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

// chunk is a piece of a part: a file of its own, or bytes inside the manifest.
type chunk struct {
	// path is the file, slash-separated, seen from the snapshot's folder: a name, or a path to an earlier checkpoint's file
	// ("../chk-3/..."). Empty for a chunk that lies in the manifest.
	path string
	// inline is the chunk itself if it lies in the manifest.
	inline []byte
	size   int64
	// digest names the contents: a file with another one is not the one that was written.
	digest   digest
	sections []section
}

// digest names the contents of a chunk.
type digest [16]byte

// section is consecutive rows of one table, or items of one list, in a chunk. They lie one behind the other.
type section struct {
	// index is the table's place in Part.Tables or, from len(Part.Tables) on, the list's in Part.Lists.
	index int
	// rows is the number of rows or items.
	rows int64
	// groups are the key groups with rows, in rising order. A list has group 0 only.
	groups []groupBytes
}

// groupBytes is how many bytes of a section are the blocks of one key group.
type groupBytes struct {
	group int
	bytes int64
}

// Files are the files that the part needs, as paths: those that lie in the folder of its snapshot, and those of earlier
// checkpoints.
func (p *Part) Files(folder string) (own, earlier []string) {
	for i := range p.chunks {
		switch c := &p.chunks[i]; {
		case c.path == "":
		case strings.Contains(c.path, "/"):
			earlier = append(earlier, c.file(folder))
		default:
			own = append(own, c.file(folder))
		}
	}
	return own, earlier
}

// file is the path of the chunk's file.
func (c *chunk) file(folder string) string {
	if path.IsAbs(c.path) {
		return c.path
	}
	return path.Join(folder, c.path)
}
