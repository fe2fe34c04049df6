package checkpoint

import (
	"errors"
	"fmt"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/statebackend"
)

// partVersion is the version of the encoding of parts, which manifests of the same version use as well.
const partVersion = ManifestVersion

// Encode gives the bytes of the part, as DecodePart reads them.
func (p *Part) Encode() []byte {
	e := newEncoder([]byte{partVersion})
	p.encode(e)
	return e.b
}

// DecodePart reads the bytes that Part.Encode gave. The part shares no memory with them.
func DecodePart(b []byte) (*Part, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("decode part of a snapshot: %w", errCut)
	}
	if b[0] != partVersion {
		return nil, fmt.Errorf("decode part of a snapshot: its version is %d and this program reads version %d", b[0], partVersion)
	}
	d := newDecoder(b[1:])
	d.version = partVersion
	p := decodePart(d)
	err := d.end()
	if err == nil {
		err = p.check()
	}
	if err != nil {
		return nil, fmt.Errorf("decode part of a snapshot: %w", err)
	}
	return p, nil
}

func (p *Part) encode(e *encoder) {
	e.uint(uint64(p.Subtask))
	e.bool(p.Finished)
	e.uint(uint64(p.FirstGroup))
	e.uint(uint64(p.LastGroup))
	e.uint(uint64(len(p.Tables)))
	for i := range p.Tables {
		encodeTable(e, &p.Tables[i])
		if b := p.base(i); b.files {
			e.uint(0)
		} else {
			e.uint(uint64(b.layer) + 1)
		}
	}
	e.uint(uint64(len(p.Lists)))
	for i := range p.Lists {
		l := &p.Lists[i]
		e.string(l.Name)
		e.byte(byte(l.Mode))
		e.schema(l.Schema)
		e.uint(uint64(l.Items))
	}
	e.bool(p.files != nil)
	if p.files != nil {
		p.files.encode(e)
	}
	e.uint(uint64(len(p.chunks)))
	for i := range p.chunks {
		p.chunks[i].encode(e)
	}
}

func decodePart(d *decoder) *Part {
	p := &Part{
		Subtask: d.number(keygroup.MaxParallelismLimit), Finished: d.bool(),
		FirstGroup: d.number(keygroup.MaxParallelismLimit), LastGroup: d.number(keygroup.MaxParallelismLimit),
	}
	for range d.items(7) {
		p.Tables = append(p.Tables, decodeTable(d))
		if d.version > 1 {
			n := d.number(maxLayer + 1)
			p.bases = append(p.bases, base{files: n == 0, layer: max(0, n-1)})
		}
	}
	for range d.items(4) {
		p.Lists = append(p.Lists, ListInfo{
			Name: d.string(), Mode: Mode(d.byte()), Schema: d.schema(), Items: int64(d.number(maxRows)),
		})
	}
	if d.version > 1 && d.bool() {
		p.files = decodeFiles(d)
	}
	for range d.items(3) {
		p.chunks = append(p.chunks, decodeChunk(d))
	}
	return p
}

// maxLayer bounds the numbers of layers.
const maxLayer = 1 << 16

// The bits of a table's TTL.
const (
	ttlSet = 1 << iota
	ttlOnRead
	ttlReturnExpired
	ttlBits = iota
)

func encodeTable(e *encoder, t *statebackend.TableInfo) {
	e.string(t.Name)
	e.string(t.Kind)
	e.schema(t.Key)
	e.schema(t.Value)
	e.schema(t.MapKey)
	e.schema(t.Namespace)
	if t.TTL == nil {
		e.byte(0)
		return
	}
	how := byte(ttlSet)
	if t.TTL.OnRead {
		how |= ttlOnRead
	}
	if t.TTL.ReturnExpired {
		how |= ttlReturnExpired
	}
	e.byte(how)
	e.int(t.TTL.Millis)
}

func decodeTable(d *decoder) statebackend.TableInfo {
	t := statebackend.TableInfo{
		Name: d.string(), Kind: d.string(), Key: d.schema(), Value: d.schema(), MapKey: d.schema(), Namespace: d.schema(),
	}
	switch how := d.byte(); {
	case how == 0:
	case how&ttlSet == 0 || how >= 1<<ttlBits:
		d.fail(fmt.Errorf("a time to live of kind %#x", how))
	default:
		t.TTL = &statebackend.TTL{OnRead: how&ttlOnRead != 0, ReturnExpired: how&ttlReturnExpired != 0, Millis: d.int()}
	}
	return t
}

func (c *chunk) encode(e *encoder) {
	e.bool(c.path != "")
	if c.path != "" {
		e.uint(uint64(len(c.path)))
		e.raw([]byte(c.path))
		e.uint(uint64(c.size))
		e.raw(c.digest[:])
	} else {
		e.bytes(c.inline) // its digest is at its end
	}
	e.uint(uint64(c.layer))
	e.uint(uint64(len(c.sections)))
	for i := range c.sections {
		s := &c.sections[i]
		e.uint(uint64(s.index))
		e.uint(uint64(s.place - nobody))
		e.uint(uint64(s.rows))
		e.uint(uint64(len(s.groups)))
		before := -1
		for _, g := range s.groups {
			e.uint(uint64(g.group - before - 1))
			e.uint(uint64(g.bytes))
			before = g.group
		}
	}
}

func decodeChunk(d *decoder) chunk {
	var c chunk
	if d.bool() {
		c.path = string(d.take(d.uint()))
		c.size = int64(d.number(maxChunk))
		if c.path == "" {
			d.fail(errors.New("a chunk file without a path"))
		}
		copy(c.digest[:], d.take(uint64(digestBytes)))
	} else {
		c.inline = d.bytes()
		c.size = int64(len(c.inline))
		if n := len(c.inline); n < digestBytes {
			d.fail(errCut)
		} else {
			c.digest = digest(c.inline[n-digestBytes:])
		}
	}
	if d.version > 1 {
		c.layer = d.number(maxLayer)
	}
	for range d.items(3) {
		c.sections = append(c.sections, decodeSection(d))
	}
	return c
}

func decodeSection(d *decoder) section {
	s := section{index: d.number(1 << 16)}
	s.place = s.index
	if d.version > 1 {
		s.place = d.number(1<<16) + nobody
	}
	s.rows = int64(d.number(maxRows))
	n := d.count(2)
	if n > 0 {
		s.groups = make([]groupBytes, 0, n)
	}
	group := -1
	for range n {
		group += d.number(keygroup.MaxParallelismLimit) + 1
		s.groups = append(s.groups, groupBytes{group: group, bytes: int64(d.number(maxChunk))})
	}
	return s
}
