package checkpoint

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// FuzzDecodePart decodes arbitrary bytes: no panic, no endless allocation, and what is accepted has one encoding.
func FuzzDecodePart(f *testing.F) {
	mem := vfs.NewMem()
	m, err := newJob(f, mem).checkpoint(openStorage(f, mem), 1)
	if err != nil {
		f.Fatal(err)
	}
	for _, p := range append(m.Operators[0].Parts, &Part{Finished: true}, &Part{Subtask: 5, FirstGroup: 3, LastGroup: 9}) {
		f.Add(p.Encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := DecodePart(b)
		if err != nil {
			return
		}
		again := p.Encode()
		q, err := DecodePart(again)
		if err != nil {
			t.Fatalf("its own encoding: %v", err)
		}
		if !bytes.Equal(q.Encode(), again) {
			t.Fatalf("encoded differently\n%x\n%x", q.Encode(), again)
		}
	})
}

// FuzzDecodeManifest decodes arbitrary bodies of manifests, with a right header and checksum around them.
func FuzzDecodeManifest(f *testing.F) {
	for version := range uint32(ManifestVersion) {
		b, err := os.ReadFile(fmt.Sprintf("testdata/v%d/chk-8/_metadata", version+1))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(version, b[manifestHeader:len(b)-manifestEnd])
	}
	mem := vfs.NewMem()
	j := newJob(f, mem)
	j.keys = 10
	m, err := j.checkpoint(openStorage(f, mem), 1)
	if err != nil {
		f.Fatal(err)
	}
	b, err := m.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(ManifestVersion-1), b[manifestHeader:len(b)-manifestEnd])
	if b, err = os.ReadFile("testdata/v2/chk-9/_metadata"); err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(ManifestVersion-1), b[manifestHeader:len(b)-manifestEnd])
	f.Fuzz(func(t *testing.T, version uint32, body []byte) {
		b := binary.LittleEndian.AppendUint32([]byte(manifestMagic), version%ManifestVersion+1)
		b = binary.LittleEndian.AppendUint64(b, uint64(len(body)))
		b = append(b, body...)
		b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
		m, err := Decode("f", b)
		if err != nil {
			return
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		n, err := Decode("f", again)
		if err != nil {
			t.Fatalf("its own encoding: %v", err)
		}
		if x, y := fmt.Sprintf("%+v", flat(m)), fmt.Sprintf("%+v", flat(n)); x != y {
			t.Fatalf("decoded differently\n%s\n%s", x, y)
		}
	})
}

// FuzzChunk reads arbitrary payloads of a block as rows of a table and as items of a list. What is read is written again.
func FuzzChunk(f *testing.F) {
	tables := []statebackend.TableInfo{
		info(f, "t", "value", "string", "int16", "", "", &statebackend.TTL{Millis: 1}),
		info(f, "t", "list", "int16", "string", "", "string", nil),
		info(f, "t", "map", "string", "string", "bool", "", nil),
		info(f, "t", "timers", "int32", "", "int64", "", nil),
	}
	for kind := range byte(5) {
		f.Add(kind, uint32(1), []byte("\x01a\x00\x00\x00\x00\x00\x00\x00\x00ab"))
		f.Add(kind, uint32(2), []byte("\x00ab\x01n\x01v\x01\x01w"))
		f.Add(kind, uint32(3), []byte("\x01\x02\x03\x04\x05"))
	}
	f.Fuzz(func(t *testing.T, kind byte, rows uint32, payload []byte) {
		p := &Part{}
		if kind %= 5; kind < 4 {
			p.Tables = []statebackend.TableInfo{tables[kind]}
		} else {
			p.Lists = []ListInfo{{Name: "l", Items: int64(rows)}}
		}
		p.chunks = []chunk{byHand(rows, payload)}
		if p, err := DecodePart(p.Encode()); err != nil && rows > 0 {
			t.Fatalf("part by hand: %v, %+v", err, p)
		}
		m := one("/s", p, 1)
		if err := m.Verify(vfs.NewMem()); err != nil && rows > 0 {
			t.Fatalf("chunk by hand: %v", err)
		}
		r, lists, err := m.Read(vfs.NewMem(), "u")
		if err != nil {
			return
		}
		state := &State{Lists: lists}
		if kind < 4 {
			frozen, _ := r.Table("t")
			if _, err := dumpRows(frozen.Rows); err != nil {
				return
			}
			state.Tables = []statebackend.FrozenTable{frozen}
		}
		w := &Writer{FS: vfs.NewMem(), Folder: "/s", InlineBytes: 1 << 30}
		again, err := w.Write(t.Context(), op(1), 0, 0, 0, state)
		if err != nil {
			t.Fatalf("written again: %v", err)
		}
		back, lists2, err := one("/s", again, 1).Read(vfs.NewMem(), "u")
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprintf("%+v", lists) != fmt.Sprintf("%+v", lists2) {
			t.Fatalf("got %v, want %v", lists2, lists)
		}
		if kind < 4 {
			a, _ := dumpRows(state.Tables[0].Rows)
			frozen, _ := back.Table("t")
			if b, err := dumpRows(frozen.Rows); err != nil || a != b {
				t.Fatalf("%v\ngot  %s\nwant %s", err, b, a)
			}
		}
	})
}

// byHand makes a chunk of one block.
func byHand(rows uint32, payload []byte) chunk {
	w := &partWriter{inlineBytes: 1 << 30, part: &Part{}}
	w.begin(0)
	w.group = 0
	w.openBlock()
	w.buf = append(w.buf, payload...)
	w.blockCount = int(rows)
	if err := w.endChunk(); err != nil {
		panic(err)
	}
	return w.part.chunks[0]
}

// FuzzChunkFile reads arbitrary bytes as the chunk that a manifest means.
func FuzzChunkFile(f *testing.F) {
	good := byHand(2, []byte("\x01a\x01b"))
	f.Add(good.inline)
	f.Add(append(append([]byte(nil), good.inline[:24]...), good.inline...))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := good
		c.inline = b
		p := &Part{Lists: []ListInfo{{Name: "l", Items: 2}}, chunks: []chunk{c}}
		m := one("/s", p, 1)
		_, lists, err := m.Read(vfs.NewMem(), "u")
		if err != nil {
			return
		}
		if got := fmt.Sprintf("%s", lists[0].Items); got != "[a b]" {
			t.Fatalf("read %s", got)
		}
	})
}

// FuzzAppendJSON shows arbitrary bytes under arbitrary schemas.
func FuzzAppendJSON(f *testing.F) {
	f.Add("struct{ID int64;Tags []string;At time;Next *^2}", append(le(1), "\x02\x01x0123456789012345\x00"...))
	f.Add("map[string][]uint8", []byte("\x02\x01a\x03\x01\x02"))
	f.Add("oneof{A bool;B map[float64]complex64}", []byte("\x01\x01"))
	f.Add("[2][3]struct{}", []byte(""))
	f.Fuzz(func(t *testing.T, text string, b []byte) {
		s, err := serde.ParseSchema(text)
		if err != nil {
			return
		}
		out, used, err := AppendJSON(nil, s, b)
		if err == nil && (used > len(b) || !json.Valid(out)) {
			t.Fatalf("used %d of %d bytes: %s", used, len(b), out)
		}
		if out, err := AppendKeyJSON(nil, s, b); err == nil && !json.Valid(out) {
			t.Fatalf("key: %s", out)
		}
	})
}

// FuzzChanges reads arbitrary payloads of two blocks as a whole table and as changes upon it: no panic, and what comes out is
// a whole table, whose rows are written again as one, and the same in batches.
func FuzzChanges(f *testing.F) {
	tables := []statebackend.TableInfo{
		info(f, "t", "value", "string", "int16", "", "", &statebackend.TTL{Millis: 1}),
		info(f, "t", "list", "int16", "string", "", "string", nil),
		info(f, "t", "map", "string", "string", "bool", "", nil),
		info(f, "t", "value", "int16", "int8", "", "", &statebackend.TTL{Millis: 1}),
	}
	f.Add(byte(3), uint32(2), []byte("ab12345678vcd12345678w"), uint32(1), []byte("\x02ab"))
	f.Add(byte(3), uint32(2), []byte("ab12345678vcd12345678w"), uint32(1), []byte("\x00cd12345678x"))
	for kind := range byte(3) {
		f.Add(kind, uint32(1), []byte("\x01a\x00\x00\x00\x00\x00\x00\x00\x00ab"), uint32(1), []byte("\x02\x01a"))
		f.Add(kind, uint32(2), []byte("\x00ab\x01n\x01v\x01\x01w"), uint32(2), []byte("\x02ab\x01n\x01\x01w"))
		f.Add(kind, uint32(1), []byte("\x00\x01a\x01\x01v"), uint32(3), []byte("\x06\x01a\x01\x01\x01v\x03\x01"))
	}
	f.Fuzz(func(t *testing.T, kind byte, rows uint32, whole []byte, changed uint32, changes []byte) {
		p := &Part{Tables: tables[kind%4 : kind%4+1], bases: []base{{}}, chunks: []chunk{byHand(rows, whole), byHand(changed, changes)}}
		p.chunks[1].layer = 1
		if _, err := DecodePart(p.Encode()); err != nil {
			return
		}
		r, _, err := one("/s", p, 1).Read(vfs.NewMem(), "u")
		if err != nil {
			t.Fatal(err)
		}
		frozen, _ := r.Table("t")
		_, err = dumpRows(frozen.Rows)
		if batches, ok := r.(statebackend.RestoredBatches).Batches("t"); ok && err != nil {
			var other error
			for _, other = range batches {
			}
			if fmt.Sprint(other) != fmt.Sprint(err) {
				t.Fatalf("batches: %v, rows: %v", other, err)
			}
		}
		if err != nil {
			return
		}
		if _, err := sameBatches(r, "t"); err != nil {
			t.Fatal(err)
		}
		w := &Writer{FS: vfs.NewMem(), Folder: "/s", InlineBytes: 1 << 30}
		if _, err := w.Write(t.Context(), op(1), 0, 0, 0, &State{Tables: []statebackend.FrozenTable{frozen}}); err != nil {
			t.Fatalf("written again: %v", err)
		}
	})
}
