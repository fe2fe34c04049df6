package pebble

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/flott-dev/flott/statebackend"
)

func sampleRow() *statebackend.Row {
	return &statebackend.Row{Group: 3, Hash: 9, Key: []byte("key"), MapKey: []byte{}, Value: []byte("value")}
}

func sampleMeta() *meta {
	return &meta{
		overlay: "overlay.sst",
		tables: []metaTable{
			{name: "counts", shape: shape{kind: values, key: 8, dated: true, spaces: [3]uint16{1}}, n: 12},
			{name: "seen", shape: shape{kind: maps, namespaced: true, namespace: 16, spaces: [3]uint16{2, 3, 4}}, n: -1, last: 77},
			{name: "old", shape: shape{kind: keptRows, spaces: [3]uint16{5}}},
			{name: "timers", shape: shape{kind: timerRows, key: 8, spaces: [3]uint16{6}}, n: -1},
		},
		files: []metaFile{{local: "000004.sst", name: "0a1b-000004.sst"}, {local: "OPTIONS-000002", body: []byte("x=y")}},
	}
}

// TestMetaIsWhatItWas is a golden test: snapshots hold these bytes.
func TestMetaIsWhatItWas(t *testing.T) {
	const want = "0b6f7665726c61792e7373740406636f756e74730102080001" + "0d00047365656e030100100203" + "04004d036f6c6404000000050100" + "0674696d65727305000800060000" +
		"020a3030303030342e7373740f306131622d3030303030342e737374" + "0e4f5054494f4e532d3030303030320003783d79"
	b := sampleMeta().encode()
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	m, err := decodeMeta(b)
	fatal(t, err)
	if !bytes.Equal(m.encode(), b) || m.tables[1].n != -1 || m.tables[1].last != 77 || m.files[1].local != "OPTIONS-000002" {
		t.Errorf("got %+v", m)
	}
}

func TestDamagedMetaIsRefused(t *testing.T) {
	b := sampleMeta().encode()
	for n := range b {
		if _, err := decodeMeta(b[:n]); err == nil {
			t.Errorf("%d bytes of %d were taken", n, len(b))
		}
	}
	for _, name := range []string{"", ".", "..", "../x", "a/b", "a\\b", ".hidden"} {
		m := &meta{files: []metaFile{{local: name, name: "x"}}}
		if _, err := decodeMeta(m.encode()); err == nil {
			t.Errorf("the file name %q was taken", name)
		}
	}
}

func FuzzMeta(f *testing.F) {
	f.Add(sampleMeta().encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMeta(b)
		if err != nil {
			return
		}
		again, err := decodeMeta(m.encode())
		if err != nil || !bytes.Equal(again.encode(), m.encode()) {
			t.Errorf("%v: %x", err, b)
		}
	})
}

// FuzzRows reads rows of the tree that are anything.
func FuzzRows(f *testing.F) {
	f.Add(uint8(values), true, []byte{0, 1, 0, 2, 3, 'a', 'b', 'c'}, []byte("12345678"))
	f.Add(uint8(lists), false, []byte{0, 1, 0, 2, 0}, []byte{2, 0, 0, 0, 'a', 'b'})
	f.Add(uint8(maps), true, []byte{0, 1, 0, 2, 0}, make([]byte, 40))
	f.Add(uint8(timerRows-1), false, []byte{0, 1, 0, 2, 128, 0, 0, 0, 0, 0, 0, 9, 1, 0x61}, []byte{})
	f.Add(uint8(keptRows), false, []byte{0, 1}, appendRow(nil, sampleRow()))
	f.Fuzz(func(_ *testing.T, k uint8, dated bool, key, value []byte) {
		g := &reading{shape: shape{kind: kind(k%5) + 1, namespaced: dated, dated: dated}, last: 1 << 16}
		var r statebackend.Row
		_, _ = g.row(key, value, &r, func(*statebackend.Row, error) bool { return true })
	})
}
