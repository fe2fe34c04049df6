package csv

import (
	"errors"
	"fmt"
	"time"

	"github.com/flott-dev/flott/connector/file"
)

// Option changes how rows are read.
type Option func(*options)

// ReadsCSV makes an Option a stream.CSVOption.
func (Option) ReadsCSV() {}

// Quoting says what quotes in a field mean.
type Quoting uint8

const (
	// Doubled is RFC 4180: a doubled quote in a quoted field is one quote, and line breaks in it belong to the field.
	// Files are read as one split each, as a part of a file can't be read without what is before. It is the default.
	Doubled Quoting = iota
	// DoubledInLine is Doubled for files without line breaks in fields: the end of a line ends the row. Files are cut
	// into splits. A quoted field that is not closed on its line is an error.
	DoubledInLine
	// Backslash is what Flink reads: a quoted field ends at the first quote that no backslash precedes; the backslash
	// stays in the value. The end of a line ends the row, and files are cut into splits.
	Backslash
)

// header says what the first line is.
type header uint8

const (
	noHeader   header = iota
	nameHeader        // names of columns
	skipHeader        // ignored
)

// DefaultMaxRow is the number of bytes that a row may have unless MaxRow says otherwise. It bounds what a forgotten quote
// makes the reader look at.
const DefaultMaxRow = 16 << 20

type options struct {
	comma     string
	delimiter string
	comment   string
	quote     byte
	quoting   Quoting
	header    header
	names     []string
	positions []int
	placed    bool // positions were given
	layouts   []string
	location  *time.Location
	zero      bool
	nilBad    bool
	nilEmpty  bool
	quoteAll  bool
	maxRow    int
	errs      []error
}

func newOptions(opts []Option) *options {
	o := &options{
		comma: ",", delimiter: "\n", quote: '"', maxRow: DefaultMaxRow, location: time.UTC,
		layouts: []string{time.RFC3339Nano, "2006-1-2 15:4:5", "2006-1-2", "15:4:5"},
	}
	for _, opt := range opts {
		opt(o)
	}
	return o
}

// Comma sets the field delimiter, one or more bytes; the default is ",".
func Comma(delimiter string) Option { return func(o *options) { o.comma = delimiter } }

// RowDelimiter sets what ends a row, one or more bytes; the default is "\n", with which a CR before it is not part of the
// row.
func RowDelimiter(delimiter string) Option { return func(o *options) { o.delimiter = delimiter } }

// Quote sets the quote character, an ASCII character; the default is '"'. 0 makes quotes ordinary characters, and files
// are cut into splits.
func Quote(quote byte) Option { return func(o *options) { o.quote = quote } }

// Quotes sets what quotes mean; the default is Doubled.
func Quotes(q Quoting) Option { return func(o *options) { o.quoting = q } }

// Comment skips rows that begin with a prefix; the default is to skip none.
func Comment(prefix string) Option { return func(o *options) { o.comment = prefix } }

// Header takes the names of the columns from the first row of each file that is no comment. Columns that the struct does
// not have are skipped; a column of the struct that the file does not have is an error. When reading it is not used
// together with Columns, Include or Positions. A sink writes the names as the first row of each file.
func Header() Option { return func(o *options) { o.header = nameHeader } }

// SkipFirst skips the first line of each file.
func SkipFirst() Option { return func(o *options) { o.header = skipHeader } }

// Columns gives the columns of the struct by name, in the order of the file; without it they come in the order of the
// struct. Columns that are left out keep the zero value, or are not written. "" is a column of the file that is skipped.
func Columns(names ...string) Option {
	return func(o *options) { o.names = append([]string{}, names...) }
}

// Positions tells where the columns come from: the k-th column of the struct, or of Columns, is the column of the file
// with the k-th number, counted from 0.
func Positions(columns ...int) Option {
	return func(o *options) { o.positions, o.placed = append([]int{}, columns...), true }
}

// Include is Positions as a mask: true for each column of the file that is read. See ParseMask for other forms.
func Include(mask ...bool) Option {
	return func(o *options) {
		o.positions, o.placed = nil, true
		for i, wanted := range mask {
			if wanted {
				o.positions = append(o.positions, i)
			}
		}
		if len(o.positions) == 0 {
			o.errs = append(o.errs, errNoColumn)
		}
	}
}

// TimeLayouts sets the layouts in which fields of type time.Time are tried, in this order; see package time. The default
// is RFC 3339, then date and time separated by a space, a date, a time of day. Fractions of seconds of up to nine digits
// may follow seconds in all.
func TimeLayouts(layouts ...string) Option {
	return func(o *options) { o.layouts = append([]string{}, layouts...) }
}

// Location sets the location of times that don't name theirs; the default is UTC.
func Location(loc *time.Location) Option { return func(o *options) { o.location = loc } }

// EmptyZero reads empty fields of types other than strings as zero values; the default is an error, but for pointers.
func EmptyZero() Option { return func(o *options) { o.zero = true } }

// NilBad reads fields of pointer types that can't be converted as nil; the default is an error. Flink's reader of rows
// does so where bad rows are skipped.
func NilBad() Option { return func(o *options) { o.nilBad = true } }

// NilEmpty makes a sink write nil pointers as empty fields, and empty strings behind pointers as quoted ones; the default
// is an error. It changes nothing of how rows are read.
func NilEmpty() Option { return func(o *options) { o.nilEmpty = true } }

// QuoteAll makes a sink quote all fields but nil ones; the default is to quote those that must be. It changes nothing of
// how rows are read.
func QuoteAll() Option { return func(o *options) { o.quoteAll = true } }

// MaxRow sets the number of bytes from which a row is an error; the default is DefaultMaxRow.
func MaxRow(bytes int) Option { return func(o *options) { o.maxRow = bytes } }

// check reports options that can't be.
func (o *options) check() error {
	errs := o.errs
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	refuse(o.comma == "", "empty field delimiter")
	refuse(o.comma == o.delimiter, "fields and rows have the same delimiter %q", o.comma)
	refuse(o.quote >= 0x80, "quote %q is no ASCII character", o.quote)
	refuse(o.quote != 0 && len(o.comma) > 0 && o.comma[0] == o.quote, "quote %q begins the field delimiter", o.quote)
	refuse(o.quote != 0 && o.delimiter != "" && o.delimiter[0] == o.quote, "quote %q begins the row delimiter", o.quote)
	refuse(o.quoting > Backslash, "unknown quoting %d", o.quoting)
	refuse(o.maxRow < 1, "rows of at most %d bytes", o.maxRow)
	refuse(len(o.layouts) == 0, "no time layout")
	refuse(o.location == nil, "no location")
	refuse(o.quoteAll && o.quote == 0, "QuoteAll without a quote")
	for i, p := range o.positions {
		refuse(p < 0, "position %d is negative", p)
		for _, q := range o.positions[:i] {
			refuse(p == q, "position %d comes twice", p)
		}
	}
	refuse(o.delimiter == "", "empty row delimiter")
	if err := file.CheckDelimiter(o.delimiter); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// multiLine tells whether rows may go over line ends.
func (o *options) multiLine() bool { return o.quote != 0 && o.quoting == Doubled }
