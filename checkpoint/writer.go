package checkpoint

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend"
)

// The defaults of a Writer.
const (
	// DefaultChunkBytes is the size from which on a chunk ends at the next key group.
	DefaultChunkBytes = 64 << 20
	// DefaultInlineBytes is the size up to which a chunk goes into the manifest: Flink's 20 KB.
	DefaultInlineBytes = 20 << 10
)

// Writer writes parts of one snapshot into its folder. It may be used by several goroutines at a time.
type Writer struct {
	// FS is where the folder is.
	FS vfs.FS
	// Folder is the snapshot's folder; it exists already (Storage.Begin).
	Folder string
	// Token is part of the names of the files, if it is set: letters and digits that no other process or attempt has that may
	// write for a snapshot of this folder. One that stood still while its files were swept, and removes them when it goes on,
	// then removes nothing of its successor's.
	Token string
	// ChunkBytes is the size from which on a chunk ends at the next key group; 0: DefaultChunkBytes.
	ChunkBytes int64
	// InlineBytes is the size up to which a chunk goes into the description of the part, and so into the manifest, and makes
	// no file; 0: DefaultInlineBytes; negative: every chunk is a file.
	InlineBytes int
	// Direct has files on the machine's own disks written past its cache; nil: they are written as in any file system.
	Direct *DirectFiles
	// Memory is the budget that buffers of Direct count against; nil: none.
	Memory statebackend.Budget
}

// Write writes what one operator of one subtask adds to the snapshot and describes it. operator is its id, 32 hex digits;
// firstGroup and lastGroup are the key groups of the subtask, both inclusive (of any operator, keyed or not). The rows of
// each table are read once, in their order; rows of other key groups, or groups out of order, are an error. When Write
// returns, the part is on disk and survives a crash. It takes a few ms at least if there are files, as it waits for the disk.
// After an error, and when ctx ends, it leaves no file behind.
//
// Tables of changes lie on the tables of the same names of state.Earlier, whose chunks are named and not written again, or, if
// there are state.Files, on these. It is an error if there is no such table, or another one.
func (w *Writer) Write(ctx context.Context, operator string, subtask, firstGroup, lastGroup int, state *State) (*Part, error) {
	p := &partWriter{
		fs: w.FS, folder: w.Folder, token: w.Token, operator: operator, ctx: ctx,
		part: &Part{Subtask: subtask, FirstGroup: firstGroup, LastGroup: lastGroup}, direct: w.Direct, memory: w.Memory,
	}
	p.chunkBytes, p.inlineBytes = w.ChunkBytes, w.InlineBytes
	if p.chunkBytes == 0 {
		p.chunkBytes = DefaultChunkBytes
	}
	if p.inlineBytes == 0 {
		p.inlineBytes = DefaultInlineBytes
	}
	part, err := p.write(state)
	if err != nil {
		return nil, fmt.Errorf("write snapshot of operator %s, subtask %d, to %s: %w", operator, subtask, w.Folder, err)
	}
	return part, nil
}

// write writes everything, or nothing.
func (p *partWriter) write(state *State) (part *Part, err error) {
	defer func() {
		if part == nil {
			p.discard()
		}
		if p.to != nil {
			p.direct.give(p.to)
		}
	}()
	if err := p.describe(state); err != nil {
		return nil, err
	}
	if err := p.backendFiles(state); err != nil {
		return nil, err
	}
	for i := range state.Tables {
		if i > 0 && layerable(state.Tables[i-1].Kind) && !layerable(state.Tables[i].Kind) && p.inFile {
			// Checkpoints to come may name the chunks of a store's tables. What else there is would stay with them.
			if err := p.endChunk(); err != nil {
				return nil, err
			}
		}
		if err := p.table(i, &state.Tables[i]); err != nil {
			return nil, fmt.Errorf("table %q: %w", state.Tables[i].Name, err)
		}
	}
	for i := range state.Lists {
		if err := p.list(len(state.Tables)+i, &state.Lists[i]); err != nil {
			return nil, fmt.Errorf("list %q: %w", state.Lists[i].Name, err)
		}
	}
	if err := p.finish(); err != nil {
		return nil, err
	}
	return p.part, nil
}

// describe notes what is to be written.
func (p *partWriter) describe(state *State) error {
	if _, err := parseID(p.operator); err != nil {
		return err
	}
	if strings.Trim(strings.ToLower(p.token), "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return fmt.Errorf("token %q: it has something else than letters and digits", p.token)
	}
	if _, err := keygroup.NewRange(p.part.FirstGroup, p.part.LastGroup); err != nil {
		return err
	}
	for i := range state.Tables {
		p.part.Tables = append(p.part.Tables, state.Tables[i].TableInfo)
	}
	if err := p.layUpon(state); err != nil {
		return err
	}
	for i := range state.Lists {
		l := &state.Lists[i]
		p.part.Lists = append(p.part.Lists, ListInfo{Name: l.Name, Mode: l.Mode, Schema: l.Schema, Items: int64(len(l.Items))})
	}
	return p.part.checkInfo()
}

// table writes the rows of a table.
func (p *partWriter) table(index int, t *statebackend.FrozenTable) error {
	of := layoutOf
	if t.Changes {
		of = changesOf
	}
	layout, err := of(&t.TableInfo)
	if err != nil {
		return err
	}
	p.begin(index)
	if t.Batches != nil && layout.stride(false) > 0 {
		for b, err := range t.Batches {
			if err == nil {
				err = p.batch(&layout, b)
			}
			if err != nil {
				return err
			}
		}
		return p.end()
	}
	if t.Rows == nil {
		return nil
	}
	for row, err := range t.Rows {
		if err == nil {
			err = p.row(&layout, row)
		}
		if err != nil {
			return err
		}
	}
	return p.end()
}

// row writes one row. It allocates nothing.
func (p *partWriter) row(layout *rowLayout, row *statebackend.Row) error {
	if !p.open || row.Group != p.group {
		if err := p.nextGroup(row.Group); err != nil {
			return err
		}
	}
	var err error
	if p.buf, err = layout.append(p.buf, row, &p.last); err != nil {
		return err
	}
	return p.wrote()
}

// batch writes rows, as row does one by one.
func (p *partWriter) batch(layout *rowLayout, b *statebackend.RowBatch) error {
	if err := layout.fits(b); err != nil {
		return err
	}
	stride := layout.stride(b.Deleted)
	for from := 0; from < b.N; {
		if !p.open || b.Group != p.group {
			if err := p.nextGroup(b.Group); err != nil {
				return err
			}
		}
		room := blockTarget - (len(p.buf) - p.blockAt)
		to := min(b.N, from+(room+stride-1)/stride)
		at := len(p.buf)
		p.buf = slices.Grow(p.buf, (to-from)*stride)[:at+(to-from)*stride]
		layout.put(p.buf[at:], b, from, to)
		p.blockCount += to - from
		from = to
		if err := p.sealIfFull(); err != nil {
			return err
		}
	}
	return nil
}

// nextGroup ends the block of a key group and begins one of another.
func (p *partWriter) nextGroup(group int) error {
	if group < p.part.FirstGroup || group > p.part.LastGroup {
		return fmt.Errorf("a row of key group %d, but the subtask has %d ... %d", group, p.part.FirstGroup, p.part.LastGroup)
	}
	var err error
	index := p.index
	switch {
	case group != p.group && p.size() >= p.chunkBytes:
		err = p.endChunk()
		p.begin(index)
	case group < p.group: // another stretch
		err = p.end()
		p.begin(index)
	default:
		err = p.seal()
	}
	if err != nil {
		return err
	}
	p.group = group
	p.openBlock()
	return nil
}

// list writes the items of a list.
func (p *partWriter) list(index int, l *List) error {
	p.begin(index)
	p.group = 0
	items := fieldLayout{}
	for _, item := range l.Items {
		if !p.open {
			p.openBlock()
		}
		p.buf, _ = items.append(p.buf, item)
		if err := p.wrote(); err != nil {
			return err
		}
	}
	return p.end()
}
