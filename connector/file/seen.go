package file

// seenFile is what a watching source remembers of a file.
type seenFile struct {
	size     int64
	modified int64
	absent   int64 // scans in a row that did not find it
}

// seenFiles are the files that a watching source has taken, by path. A file is the same as long as path, size and time
// of change are; the order of times means nothing, as files are moved in with any.
type seenFiles map[string]seenFile

// news remembers the files of a scan and returns those that are new or changed. What was absent for more than horizon
// scans is forgotten.
func (s seenFiles) news(files []located, horizon int64) []located {
	for p, f := range s {
		f.absent++
		s[p] = f
	}
	var news []located
	for _, f := range files {
		old, ok := s[f.path]
		if !ok || old.size != f.size || old.modified != f.modified {
			news = append(news, f)
		}
		s[f.path] = seenFile{size: f.size, modified: f.modified}
	}
	for p, f := range s {
		if f.absent > horizon {
			delete(s, p)
		}
	}
	return news
}

// horizonScans is the horizon in scans, which need no clock.
func (s *settings) horizonScans() int64 { return int64(s.horizon / max(1, s.watch)) }
