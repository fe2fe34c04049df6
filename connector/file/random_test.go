package file_test

import (
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/internal/vfs"
)

// tail is a format with its index at the end, as Parquet has one: blocks of bytes, each byte a record, then their
// lengths, a byte each, and the number of blocks, a byte.
type tail struct{ closed *int }

func (tail) Check() error     { return nil }
func (tail) Splittable() bool { return true }

func (f tail) Decoder(in *file.Input) (file.Decoder[string], error) {
	r, size, err := in.ReaderAt()
	if err != nil {
		return nil, err
	}
	d := &tailDecoder{r: r, closed: f.closed}
	last := make([]byte, 1)
	if _, err := r.ReadAt(last, size-1); err != nil {
		return nil, err
	}
	lengths := make([]byte, last[0])
	if _, err := r.ReadAt(lengths, size-1-int64(len(lengths))); err != nil {
		return nil, err
	}
	at := int64(0)
	for _, n := range lengths {
		fresh := at > in.Start() || in.Start() == 0
		if fresh && at <= in.Stop() && at >= in.Offset() {
			d.blocks = append(d.blocks, [2]int64{at, int64(n)})
		}
		at += int64(n)
	}
	d.skip, d.at = in.Skip(), max(in.Offset(), in.Start())
	return d, nil
}

type tailDecoder struct {
	r      io.ReaderAt
	blocks [][2]int64
	at     int64
	skip   int64
	closed *int
}

func (d *tailDecoder) Decode(out *connector.Output[string]) error {
	for n := out.Room(); n > 0; n-- {
		for len(d.blocks) > 0 && d.skip == d.blocks[0][1] {
			if len(d.blocks) == 1 {
				return io.EOF // and the position stays behind the last record
			}
			d.blocks, d.skip = d.blocks[1:], 0
		}
		if len(d.blocks) == 0 {
			return io.EOF
		}
		d.at = d.blocks[0][0]
		c := make([]byte, 1)
		if _, err := d.r.ReadAt(c, d.at+d.skip); err != nil {
			return err
		}
		out.Emit(string(c))
		d.skip++
	}
	return nil
}

func (d *tailDecoder) Position() int64 { return d.at }
func (d *tailDecoder) Skip() int64     { return d.skip }

func (d *tailDecoder) Close() error {
	*d.closed++
	return nil
}

func tailFile(blocks ...string) string {
	text, lengths := "", ""
	for _, b := range blocks {
		text, lengths = text+b, lengths+string([]byte{byte(len(b))})
	}
	return text + lengths + string([]byte{byte(len(blocks))})
}

func TestFormatsWithAnIndexAtTheEndAreReadAtAnySplitAndGoOnAnywhere(t *testing.T) {
	m := disk(t, map[string]string{"f": tailFile("abc", "defgh", "i", "jklmn")})
	want := strings.Split("abcdefghijklmn", "")
	for split := int64(1); split < 22; split++ {
		for stop := 0; stop < 16; stop++ {
			closed := 0
			src := file.New(tail{&closed}, "f").On(m).SplitSize(split)
			got, rest := filetest.Resumed(t, src, stop, [2]int{1, 2})
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Fatalf("split size %d, stopped after %d: %q", split, stop, got)
			}
			if rest.Counts["numBytesIn"] == 0 && stop == 0 || closed == 0 {
				t.Errorf("%d bytes, %d decoders closed", rest.Counts["numBytesIn"], closed)
			}
		}
	}
}

func TestWhatIsNoPlainFileCanNotBeReadFromAnywhere(t *testing.T) {
	closed := 0
	var packed strings.Builder
	z := gzip.NewWriter(&packed)
	if _, err := io.WriteString(z, tailFile("abc")); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	m := disk(t, map[string]string{"f": tailFile("abc"), "f.gz": packed.String()})
	for _, src := range []*file.Source[string]{
		file.New(tail{&closed}, "f.gz").On(m),
		file.New(tail{&closed}, "f").On(m).Charset(file.Latin1),
	} {
		_, err := filetest.Collect(src, 1, 4)
		if !errors.Is(err, file.ErrSequential) || !strings.Contains(err.Error(), "read f") {
			t.Errorf("got %v", err)
		}
	}
	if _, _, err := file.NewInput("stream", io.MultiReader()).ReaderAt(); !errors.Is(err, file.ErrSequential) {
		t.Errorf("a stream: %v", err)
	}
	r, size, err := file.NewInput("text", strings.NewReader("abc")).ReaderAt()
	if err != nil || size != 3 || r == nil {
		t.Errorf("a text in memory: %v, %d, %v", r, size, err)
	}
}

func TestErrorsOfReadingAnywhereNameThePlace(t *testing.T) {
	faulty := vfs.NewFaulty(disk(t, map[string]string{"f": tailFile("abc")}))
	faulty.FailFrom(vfs.OpRead, 2, fmt.Errorf("broken disk"))
	closed := 0
	_, err := filetest.Collect(file.New(tail{&closed}, "f").On(faulty), 1, 4)
	if e, ok := errors.AsType[*file.Error](err); !ok || e.Path != "f" || e.Offset != 3 {
		t.Errorf("got %v", err)
	}
}

// TestFillToReadsWhatALongRecordWants counts the reads of a record that is known to reach far behind its split.
func TestFillToReadsWhatALongRecordWants(t *testing.T) {
	text := string(binary.BigEndian.AppendUint32(nil, 1<<20)) + strings.Repeat("x", 1<<20)
	in := file.NewInput("f", strings.NewReader(text))
	if err := in.FillTo(len(text)); err != nil || len(in.Window()) < len(text) {
		t.Errorf("%d bytes, %v", len(in.Window()), err)
	}
	if err := in.FillTo(len(text) + 1); err != io.EOF || len(in.Window()) != len(text) {
		t.Errorf("%d bytes, %v", len(in.Window()), err)
	}
}
