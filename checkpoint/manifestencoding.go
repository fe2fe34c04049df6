package checkpoint

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/serde"
)

// The format of manifests: a header, the body, a checksum. docs/formats/snapshot.md describes it.
const (
	// ManifestVersion is the version of the manifest format that this program writes, and the highest that it reads.
	ManifestVersion = 2
	// ManifestName is the name of the manifest in its snapshot's folder, Flink's own.
	ManifestName = "_metadata"

	manifestMagic  = "FLTM"
	manifestHeader = 16 // magic, version, bytes of the body
	manifestEnd    = 4  // checksum
)

// Encode gives the bytes of the manifest's file. It fails if the manifest is not one: an operator that is there twice, parts
// that are not those of the operator's subtasks, a savepoint with files outside of its folder.
func (m *Manifest) Encode() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("encode manifest of %v %d: %w", m.Kind, m.ID, err)
	}
	e := newEncoder(make([]byte, manifestHeader, 4<<10))
	m.encode(e)
	b := e.b
	copy(b, manifestMagic)
	binary.LittleEndian.PutUint32(b[4:], ManifestVersion)
	binary.LittleEndian.PutUint64(b[8:], uint64(len(b)-manifestHeader))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))), nil
}

func (m *Manifest) encode(e *encoder) {
	e.uint(serde.EncodingVersion)
	e.uint(serde.KeyHashVersion)
	e.int(m.ID)
	e.byte(byte(m.Kind))
	e.string(m.JobID)
	e.string(m.JobName)
	e.int(m.Time)
	e.fixed64(m.HashSeed)
	e.uint(uint64(len(m.Operators)))
	for i := range m.Operators {
		o := &m.Operators[i]
		id, _ := parseID(o.ID)
		e.raw(id[:])
		e.string(o.UID)
		e.string(o.Name)
		e.uint(uint64(o.Parallelism))
		e.uint(uint64(o.MaxParallelism))
		e.bool(o.Coordinator != nil)
		if o.Coordinator != nil {
			e.bytes(o.Coordinator)
		}
		e.uint(uint64(len(o.Parts)))
		for _, p := range o.Parts {
			p.encode(e)
		}
	}
}

// Decode reads the bytes of a manifest's file. file is named in errors: a *DamagedError, a *VersionError. The manifest
// shares no memory with the bytes, and has no folder.
func Decode(file string, b []byte) (*Manifest, error) {
	damaged := func(format string, args ...any) error {
		return &DamagedError{File: file, Reason: fmt.Sprintf(format, args...)}
	}
	if len(b) < manifestHeader+manifestEnd {
		return nil, damaged("it has %d bytes, fewer than any manifest", len(b))
	}
	if string(b[:4]) != manifestMagic {
		return nil, damaged("it begins with %q, not %q: it is no manifest", b[:4], manifestMagic)
	}
	version := binary.LittleEndian.Uint32(b[4:])
	if version < 1 || version > ManifestVersion {
		return nil, &VersionError{File: file, Format: "manifest", Version: version, Known: ManifestVersion}
	}
	body := uint64(len(b) - manifestHeader - manifestEnd)
	if n := binary.LittleEndian.Uint64(b[8:]); n != body {
		return nil, damaged("its body has %d bytes and should have %d", body, n)
	}
	end := len(b) - manifestEnd
	want, got := binary.LittleEndian.Uint32(b[end:]), crc32.Checksum(b[:end], crc32.MakeTable(crc32.Castagnoli))
	if want != got {
		return nil, damaged("its checksum is %08x and should be %08x", got, want)
	}
	d := newDecoder(b[manifestHeader:end])
	d.version = version
	m, err := decodeManifest(d, file)
	if _, newer := errors.AsType[*VersionError](err); newer {
		return nil, err
	}
	if err != nil {
		return nil, damaged("%v", err)
	}
	return m, nil
}

func decodeManifest(d *decoder, file string) (*Manifest, error) {
	values, hash := d.uint(), d.uint()
	switch {
	case d.err != nil:
		return nil, d.err
	case values != serde.EncodingVersion:
		return nil, &VersionError{File: file, Format: "value", Version: uint32(values), Known: serde.EncodingVersion}
	case hash != serde.KeyHashVersion:
		return nil, &VersionError{File: file, Format: "key hash", Version: uint32(hash), Known: serde.KeyHashVersion}
	}
	m := &Manifest{
		ID: d.int(), Kind: Kind(d.byte()), JobID: d.string(), JobName: d.string(), Time: d.int(), HashSeed: d.fixed64(),
	}
	for range d.items(16 + 6) {
		m.Operators = append(m.Operators, decodeOperator(d))
	}
	if err := d.end(); err != nil {
		return nil, err
	}
	return m, m.check()
}

func decodeOperator(d *decoder) Operator {
	o := Operator{
		ID: hex.EncodeToString(d.take(16)), UID: d.string(), Name: d.string(),
		Parallelism: d.number(keygroup.MaxParallelismLimit), MaxParallelism: d.number(keygroup.MaxParallelismLimit),
	}
	if d.bool() {
		o.Coordinator = d.bytes()
	}
	for range d.items(7) {
		o.Parts = append(o.Parts, decodePart(d))
	}
	return o
}

// Load reads the manifest of a snapshot: location is its folder or the manifest in it. A damaged file is a *DamagedError, one
// of a newer format a *VersionError, a folder without a manifest an error that wraps fs.ErrNotExist: no snapshot was
// completed there. A nil file system is the machine's.
func Load(f vfs.FS, location string) (*Manifest, error) {
	f = diskIfNil(f)
	folder, file := path.Clean(location), path.Clean(location)
	if path.Base(file) == ManifestName {
		folder = path.Dir(file)
	} else {
		file = path.Join(folder, ManifestName)
	}
	b, err := vfs.ReadFile(f, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("load snapshot %s: it has no %s, so that no snapshot was completed there; name the folder of a savepoint or checkpoint itself, as flott savepoint list shows it: %w", folder, ManifestName, err)
	}
	if err != nil {
		return nil, fmt.Errorf("load snapshot %s: %w", folder, err)
	}
	m, err := Decode(file, b)
	if err != nil {
		return nil, fmt.Errorf("load snapshot: %w", err)
	}
	m.Folder, m.Version, m.size = folder, int(binary.LittleEndian.Uint32(b[4:])), int64(len(b))
	return m, nil
}
