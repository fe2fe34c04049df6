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
	// bases say where the rows of each table begin; nil: all tables are whole, in layer 0.
	bases []base
	// files are those of a backend; nil: there are none.
	files *fileSet
	// chunks hold the rows and items: layer by layer, and in each in the order of tables and lists.
	chunks []chunk
}

// base says where the whole table lies to which the changes of later layers are applied.
type base struct {
	// files: in the files of a backend, and all layers are changes.
	files bool
	// layer is the number of the layer that holds the whole table. Those below have nothing of the table.
	layer int
}

// base gives the base of a table.
func (p *Part) base(table int) base {
	if p.bases == nil {
		return base{}
	}
	return p.bases[table]
}

// changes says whether the rows of a table in a layer are changes.
func (p *Part) changes(table, layer int) bool {
	b := p.base(table)
	return b.files || layer > b.layer
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
	digest digest
	// layer is the number of the layer that the chunk belongs to: higher ones are applied to lower ones.
	layer    int
	sections []section
}

// digest names the contents of a chunk.
type digest [16]byte

// section is consecutive rows of one table, or items of one list, in a chunk. They lie one behind the other.
type section struct {
	// index is what the blocks say: the place of the table or list in the part that the chunk was written for.
	index int
	// place is the table's place in Part.Tables or, from len(Part.Tables) on, the list's in Part.Lists; nobody: what an earlier
	// checkpoint had there is needed no more.
	place int
	// rows is the number of rows or items.
	rows int64
	// groups are the key groups with rows, in rising order. A list has group 0 only.
	groups []groupBytes
}

// nobody is the place of sections that are there because others of their chunk are needed.
const nobody = -1

// groupBytes is how many bytes of a section are the blocks of one key group.
type groupBytes struct {
	group int
	bytes int64
}

// Files are the files that the part needs, as paths: those that lie in the folder of its snapshot, and those of earlier
// checkpoints. All layers, and the files of backends, are among them.
func (p *Part) Files(folder string) (own, earlier []string) {
	add := func(name string) {
		switch {
		case name == "":
		case isEarlier(name):
			earlier = append(earlier, inFolder(folder, name))
		default:
			own = append(own, inFolder(folder, name))
		}
	}
	for i := range p.chunks {
		add(p.chunks[i].path)
	}
	if p.files != nil {
		for i := range p.files.files {
			add(p.files.files[i].path)
		}
	}
	return own, earlier
}

// isEarlier says whether the path of a file leads out of the snapshot's folder.
func isEarlier(name string) bool { return strings.Contains(name, "/") }

// inFolder is the path of a file that is named as seen from a folder.
func inFolder(folder, name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Join(folder, name)
}

// Layers says how the tables of stores (values, lists, maps) lie: n is the most layers that one of them has, 1 if all are
// whole; whole is the bytes of whole tables and of the files of backends, changes those of the changes that lie upon them.
func (p *Part) Layers() (n int, whole, changes int64) {
	for i := range p.Tables {
		if !layerable(p.Tables[i].Kind) {
			continue
		}
		layers, last := 1, p.base(i).layer
		if p.base(i).files {
			last = -1
		}
		for j := range p.chunks {
			c := &p.chunks[j]
			for k := range c.sections {
				switch s := &c.sections[k]; {
				case s.place != i:
				case !p.changes(i, c.layer):
					whole += s.bytes()
				default:
					changes += s.bytes()
					if c.layer > last {
						layers, last = layers+1, c.layer
					}
				}
			}
		}
		n = max(n, layers)
	}
	if p.files != nil {
		n, whole = max(n, 1), whole+p.files.bytes()
	}
	return n, whole, changes
}

// layerable says whether tables of a kind may lie in layers.
func layerable(kind string) bool { return kind == "value" || kind == "list" || kind == "map" }

// fileable says whether tables of a kind may lie in files of backends.
func fileable(kind string) bool { return layerable(kind) || kind == statebackend.TimerKind }
