package file

import (
	"fmt"
	"unsafe"

	"github.com/flott-dev/flott/connector"
)

// Text is the format of lines of text. Bytes are taken as they are: text that is no valid UTF-8 stays so. A byte order
// mark at the begin of a file is skipped, a last line needs no delimiter, and a delimiter at the end makes no empty line.
// Lines are not copied: they point into the blocks of up to 256 KiB that were read, so one that is kept for long keeps
// its block (strings.Clone makes a copy of its own; state does so by itself).
type Text struct {
	// Delimiter ends a line; 1 to Lookback bytes. "" is "\n", with which a CR before it is not part of the line. Files are
	// not cut if the delimiter overlaps itself, as "aa" does.
	Delimiter string
	// MaxLine is the length in bytes from which a line is an error; 0: DefaultMaxRecord.
	MaxLine int
}

// Check implements Format.
func (f Text) Check() error { return CheckDelimiter(f.Delimiter) }

// CheckDelimiter reports a delimiter that Records does not take.
func CheckDelimiter(delimiter string) error {
	if len(delimiter) > Lookback {
		return fmt.Errorf("delimiter %q has more than %d bytes", delimiter, Lookback)
	}
	return nil
}

// Splittable implements Format.
func (f Text) Splittable() bool { return SplittableAt(f.Delimiter) }

// Decoder implements Format.
func (f Text) Decoder(in *Input) (Decoder[string], error) {
	return &textDecoder{records: NewRecords(in, f.Delimiter, f.MaxLine)}, nil
}

type textDecoder struct{ records *Records }

// Decode implements Decoder.
func (d *textDecoder) Decode(out *connector.Output[string]) error {
	for n := out.Room(); n > 0; n-- {
		line, err := d.records.Next()
		if err != nil {
			return err
		}
		out.Emit(unsafe.String(unsafe.SliceData(line), len(line)))
	}
	return nil
}

// Position implements Decoder.
func (d *textDecoder) Position() int64 { return d.records.Position() }
