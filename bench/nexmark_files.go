package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/flott-dev/flott/bench/nexmark"
	"github.com/flott-dev/flott/connector"
)

// query10 writes bids into a folder for each minute, with a file from each subtask. The checksum is that of the files,
// which are read, and removed, outside the clock.
func query10(j *auctionJob) {
	dir, err := os.MkdirTemp("", "nexmark")
	j.after = func() (uint64, error) {
		if err != nil {
			return 0, err
		}
		sum, err := sumFiles(dir)
		if e := os.RemoveAll(dir); err == nil {
			err = e
		}
		return sum, err
	}
	bids(j.events()).SinkTo(partitionSink{dir})
}

// sumFiles is the checksum of all lines with the names of their partitions.
func sumFiles(dir string) (sum uint64, err error) {
	err = fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, path))
		partition := filepath.ToSlash(filepath.Dir(path))
		for line := range bytes.Lines(text) {
			sum += nexmark.Hash(10).Text(partition).Text(string(line)).Sum()
		}
		return err
	})
	return sum, err
}

// partitionSink writes bids to files by day and minute.
type partitionSink struct{ dir string }

// Writer implements connector.Sink.
func (s partitionSink) Writer(ctx connector.WriterContext) (connector.Writer[*nexmark.Bid], error) {
	return &partitionWriter{dir: s.dir, name: strconv.Itoa(ctx.Subtask()), files: map[int64]*bufio.Writer{}}, nil
}

type partitionWriter struct {
	dir, name string
	files     map[int64]*bufio.Writer // by minute
	open      []*os.File
	minute    int64 // of the file at hand
	file      *bufio.Writer
	line      []byte
}

// WriteRun implements connector.RunWriter.
func (w *partitionWriter) WriteRun(bs []*nexmark.Bid, _ []int64) error {
	for _, b := range bs {
		if m := b.DateTime / 60_000; m != w.minute || w.file == nil {
			if err := w.turn(m); err != nil {
				return err
			}
		}
		w.line = nexmark.AppendLine(w.line[:0], b)
		if _, err := w.file.Write(w.line); err != nil {
			return fmt.Errorf("write a bid: %w", err)
		}
	}
	return nil
}

// turn goes on with the file of a minute.
func (w *partitionWriter) turn(minute int64) error {
	w.minute, w.file = minute, w.files[minute]
	if w.file != nil {
		return nil
	}
	at := minute * 60_000
	dir := filepath.Join(w.dir, nexmark.Day(at), nexmark.Minute(at))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make a partition: %w", err)
	}
	f, err := os.Create(filepath.Join(dir, w.name))
	if err != nil {
		return fmt.Errorf("begin a partition: %w", err)
	}
	w.open = append(w.open, f)
	w.file = bufio.NewWriterSize(f, 1<<16)
	w.files[minute] = w.file
	return nil
}

func (w *partitionWriter) Write(b *nexmark.Bid, _ connector.ElementContext) error {
	return w.WriteRun([]*nexmark.Bid{b}, nil)
}

func (w *partitionWriter) Flush(bool) error {
	for _, f := range w.files {
		if err := f.Flush(); err != nil {
			return fmt.Errorf("write bids: %w", err)
		}
	}
	return nil
}

func (w *partitionWriter) Close() (err error) {
	for _, f := range w.open {
		if e := f.Close(); err == nil {
			err = e
		}
	}
	return err
}
