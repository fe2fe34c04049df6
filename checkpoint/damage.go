package checkpoint

import "fmt"

// DamagedError says that a file of a snapshot is not what was written: cut off, changed, lost or another one. Nothing of it
// is used.
type DamagedError struct {
	// File is the path of the file, "the manifest of ..." for what lies in a manifest.
	File string
	// Reason is what is wrong, with the byte at which it was found.
	Reason string
}

// Error names the file and what is wrong with it.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("snapshot file %s is damaged: %s", e.File, e.Reason)
}

// VersionError says that a file was written in a format that this program does not know: by a newer version of it.
type VersionError struct {
	// File is the path of the file, Format what has the version.
	File, Format string
	// Version is the file's, Known the highest that this program reads.
	Version, Known uint32
}

// Error names the file, its version and what to do.
func (e *VersionError) Error() string {
	return fmt.Sprintf("snapshot file %s has version %d of the %s format and this program reads up to version %d: restore it with the version of Flott that wrote it, or a newer one",
		e.File, e.Version, e.Format, e.Known)
}
