package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"time"
)

const block = 1 << 20

// rawWrite is the time that writing so many bytes to one file takes, with the sync at its end: the median of three.
func rawWrite(folder string, bytes int64) (time.Duration, error) {
	var all []time.Duration
	for range 3 {
		d, err := writeOnce(filepath.Join(folder, "raw"), bytes)
		if err != nil {
			return 0, fmt.Errorf("measure the disk: %w", err)
		}
		all = append(all, d)
	}
	slices.Sort(all)
	return all[1], nil
}

func writeOnce(path string, bytes int64) (took time.Duration, err error) {
	buf := make([]byte, block)
	for i := range buf {
		buf[i] = byte(scramble(uint64(i)))
	}
	start := time.Now()
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	for left := bytes; left > 0 && err == nil; left -= block {
		_, err = f.Write(buf[:min(left, block)])
	}
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	took = time.Since(start)
	if e := os.Remove(path); err == nil {
		err = e
	}
	return took, err
}

// rawRead is the time that reading all files of a folder takes, and their size.
func rawRead(folder string) (took time.Duration, bytes int64, err error) {
	buf := make([]byte, block)
	start := time.Now()
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, buf)
		bytes += n
		if e := f.Close(); err == nil {
			err = e
		}
		return err
	})
	return time.Since(start), bytes, err
}

// forgetFiles asks the system to drop a folder's files from memory, where it can be asked, so that the disk is read.
func forgetFiles(folder string) error {
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		forget(f)
		return f.Close()
	})
}

// jitter is the longest time between two turns of a loop that does nothing else: what the machine itself holds up.
func jitter(d time.Duration) (longest time.Duration) {
	start := time.Now()
	for last := start; last.Sub(start) < d; {
		now := time.Now()
		longest = max(longest, now.Sub(last))
		last = now
	}
	return longest
}

// mapped is the memory that the process holds from the system.
func mapped() float64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return float64(s[0].Value.Uint64() - s[1].Value.Uint64())
}
