package loops

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// GoFiles are the paths of all *.go files below a folder. What can't be listed is left out.
func GoFiles(folder string) []string {
	var files []string
	_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".go") {
			files = append(files, path)
		}
		return nil
	})
	return files
}

// MaxWord is the length at which a word ends; the letter behind it belongs to no word.
const MaxWord = 256

// Words are the final counts of all words.
type Words struct{ counts map[string]*int64 }

// WordCount counts the words of the files: runs of ASCII letters, in lower case. It returns how many there were, and the
// sum of length times count as the checksum.
func WordCount(files []string) (words *Words, n int, checksum uint64) {
	counts := map[string]*int64{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		n += countWords(counts, text)
	}
	for w, c := range counts {
		checksum += WordChecksum(w, *c)
	}
	return &Words{counts}, n, checksum
}

func countWords(counts map[string]*int64, text []byte) (n int) {
	var word [MaxWord]byte
	length := 0
	for _, c := range text {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c >= 'a' && c <= 'z' && length < len(word) {
			word[length] = c
			length++
			continue
		}
		if length > 0 {
			n++
			if p, ok := counts[string(word[:length])]; ok {
				*p++
			} else {
				one := int64(1)
				counts[string(word[:length])] = &one
			}
			length = 0
		}
	}
	if length > 0 {
		n++
		if p, ok := counts[string(word[:length])]; ok {
			*p++
		} else {
			one := int64(1)
			counts[string(word[:length])] = &one
		}
	}
	return n
}

// WordChecksum is what a word and its final count add to the checksum.
func WordChecksum(word string, count int64) uint64 { return uint64(len(word)) * uint64(count) }

// Rolling adds up f of every count that each word has gone through, 1 ... the final one.
func (w *Words) Rolling(f func(word string, count uint64) uint64) (sum uint64) {
	for word, c := range w.counts {
		for n := range uint64(*c) {
			sum += f(word, n+1)
		}
	}
	return sum
}
