package stream

import (
	"encoding/json/v2"
	"fmt"
	"io/fs"
	"math"
	"reflect"
	"time"

	"github.com/flott-dev/flott/connector/csv"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/jsonl"
	"github.com/flott-dev/flott/connector/socket"
	"github.com/flott-dev/flott/process"
)

// ReadOption changes which files are read, and how. All functions that read files take it.
type ReadOption func(*reading)

// ReadsCSV makes a ReadOption a CSVOption.
func (ReadOption) ReadsCSV() {}

// ReadsJSONLines makes a ReadOption a JSONLinesOption.
func (ReadOption) ReadsJSONLines() {}

// CSVOption is what ReadCSV takes: a csv.Option or a ReadOption, nothing else.
type CSVOption interface {
	// ReadsCSV does nothing; it marks the options.
	ReadsCSV()
}

// JSONLinesOption is what ReadJSONLines takes: a jsonl.Option (see jsonl.Options) or a ReadOption, nothing else.
type JSONLinesOption interface {
	// ReadsJSONLines does nothing; it marks the options.
	ReadsJSONLines()
}

// reading is what ReadOptions set.
type reading struct {
	recursive, hidden, skipBad bool
	filter, folders            func(path string, info fs.FileInfo) bool
	watch                      *time.Duration
	charset                    file.Charset
	splitSize                  int64
}

// Recursive reads the folders in folders, too.
func Recursive() ReadOption { return func(r *reading) { r.recursive = true } }

// Hidden reads files and folders whose names begin with "." or "_", too.
func Hidden() ReadOption { return func(r *reading) { r.hidden = true } }

// OnlyFiles reads only files for which keep returns true: by path, size, time of change. With Watch a file that was not
// kept is asked about again at every look, so it may be read later. See file.Source.Filter.
func OnlyFiles(keep func(path string, info fs.FileInfo) bool) ReadOption {
	return func(r *reading) { r.filter = keep }
}

// OnlyFolders reads only what is in folders for which keep returns true, of those that Recursive goes into or a pattern leads
// through. See file.Source.FilterFolders.
func OnlyFolders(keep func(path string, info fs.FileInfo) bool) ReadOption {
	return func(r *reading) { r.folders = keep }
}

// Watch makes the stream unbounded: files are looked for again and again, with a pause of interval (at least 1 ms), and
// new or changed ones are read as a whole (Flink: PROCESS_CONTINUOUSLY). See file.Source.Watch.
func Watch(interval time.Duration) ReadOption { return func(r *reading) { r.watch = &interval } }

// InCharset tells the encoding of the files; the default is UTF-8.
func InCharset(c file.Charset) ReadOption { return func(r *reading) { r.charset = c } }

// SplitSize cuts files into splits of n bytes, which subtasks share; the default is file.DefaultSplitSize.
func SplitSize(n int64) ReadOption { return func(r *reading) { r.splitSize = n } }

// SkipBadRecords skips records that can't be read and counts them in the metric numRecordsInErrors; the default is to
// fail. To see them use BadRecords instead.
func SkipBadRecords() ReadOption { return func(r *reading) { r.skipBad = true } }

// ReadTextFile is a stream of the lines of text files: of one file, the files in a folder, those that match a pattern, or
// standard input ("-"). Compressed files (.gz, .bz2, .zst, .xz ...) are read as what is in them. See file.New for paths.
func (e *Env) ReadTextFile(path string, opts ...ReadOption) *Stream[string] {
	return e.readFile("Text File Source", file.Lines(path), opts)
}

// ReadFile is a stream of the records of files in a format: csv.Format, jsonl.Format, file.Delimited, file.Prefixed,
// file.Text, those of the modules connector/parquet and connector/avro, or one of your own. Paths are as in ReadTextFile.
func (e *Env) ReadFile[T any](format file.Format[T], path string, opts ...ReadOption) *Stream[T] {
	return e.readFile("File Source", file.New(format, path), opts)
}

// ReadCSV is a stream of the rows of CSV files as structs, whose fields say by tags which columns they are: see package
// csv. It takes options of rows (csv.Header()) and of files (Recursive()).
func (e *Env) ReadCSV[T any](path string, opts ...CSVOption) *Stream[T] {
	rows, files := sortOptions[csv.Option](e, opts)
	return e.readFile("CSV Source", file.New(csv.Format[T](rows...), path), files)
}

// ReadJSONLines is a stream of the lines of files, each of which is a JSON value, as encoding/json/v2 reads it. It takes
// options of values (jsonl.Options(json.RejectUnknownMembers(true))) and of files (Recursive()).
func (e *Env) ReadJSONLines[T any](path string, opts ...JSONLinesOption) *Stream[T] {
	lines, files := sortOptions[jsonl.Option](e, opts)
	values := make([]json.Options, len(lines))
	for i, l := range lines {
		values[i] = l.JSON()
	}
	return e.readFile("JSON Lines Source", file.New(jsonl.Format[T](values...), path), files)
}

// sortOptions tells the options of a format, of type O, from those of files.
func sortOptions[O, I any](e *Env, opts []I) (own []O, files []ReadOption) {
	for _, opt := range opts {
		switch opt := any(opt).(type) {
		case O:
			own = append(own, opt)
		case ReadOption:
			files = append(files, opt)
		default:
			e.report(fmt.Errorf("an option of type %T is neither a %s nor a stream.ReadOption", opt, reflect.TypeFor[O]()))
		}
	}
	return own, files
}

func (e *Env) readFile[T any](name string, src *file.Source[T], opts []ReadOption) *Stream[T] {
	var r reading
	for _, o := range opts {
		o(&r)
	}
	if r.recursive {
		src = src.Recursive()
	}
	if r.hidden {
		src = src.Hidden()
	}
	if r.filter != nil {
		src = src.Filter(r.filter)
	}
	if r.folders != nil {
		src = src.FilterFolders(r.folders)
	}
	if r.watch != nil {
		src = src.Watch(*r.watch)
	}
	if r.charset != "" {
		src = src.Charset(r.charset)
	}
	if r.splitSize != 0 {
		src = src.SplitSize(r.splitSize)
	}
	if r.skipBad {
		src = src.SkipBad()
	}
	s := e.FromSource(src, name)
	s.c.untimed()
	return s
}

// BadRecord is a record of a file that can't be read.
type BadRecord struct {
	Path   string // of the file
	Line   int64  // from 1; 0: not known
	Offset int64  // where the record begins, in the decoded text
	Record string // as it stands in the file, without its delimiter
	Cause  string // what is wrong with it
}

// BadRecords is a side output of a stream of files (ReadFile, ReadCSV, ReadJSONLines, or FromSource of a file.Source):
// records that can't be read go there instead of failing the job.
func BadRecords[T any](s *Stream[T]) *Stream[BadRecord] {
	return s.SideOutput(process.NewOutputTag[BadRecord](badRecords))
}

const badRecords = "bad records"

// reportBad makes a reader of files emit its bad records.
func reportBad(reader any, out *process.Context) error {
	r, ok := reader.(interface{ ReportBad(f func(file.Bad)) })
	if !ok {
		return fmt.Errorf("a %T has no side outputs", reader)
	}
	tag := process.NewOutputTag[BadRecord](badRecords)
	r.ReportBad(func(b file.Bad) {
		out.EmitAt(tag, BadRecord{Path: b.Path, Line: b.Line, Offset: b.Offset, Record: b.Record, Cause: b.Err.Error()}, math.MinInt64)
	})
	return nil
}

// SocketOption changes how SocketTextStream reads.
type SocketOption func(*socket.Source) *socket.Source

// SocketDelimiter sets what ends an element; the default is "\n", with which a CR before it is not part of the element.
func SocketDelimiter(delimiter string) SocketOption {
	return func(s *socket.Source) *socket.Source { return s.Delimiter(delimiter) }
}

// SocketRetry sets for how long a subtask tries to connect again, twice a second, when the connection can't be made or is
// closed: a negative time is for ever, 0, the default, not at all.
func SocketRetry(d time.Duration) SocketOption {
	return func(s *socket.Source) *socket.Source { return s.MaxRetry(d) }
}

// SocketTextStream is a stream of the lines that a TCP server sends, from one subtask. It ends when the server closes the
// connection. It has no part in checkpoints: what was on the way when the job failed is lost.
func (e *Env) SocketTextStream(host string, port int, opts ...SocketOption) *Stream[string] {
	src := socket.Text(host, port)
	for _, o := range opts {
		src = o(src)
	}
	s := e.FromSource(src, "Socket Stream").ForceNonParallel()
	s.c.untimed()
	return s
}
