package blob

import (
	"os"
	"testing"

	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/storage/storagetest"
)

func TestBucketInMemoryIsAStorage(t *testing.T) {
	bucket := memblob.OpenBucket(nil)
	storagetest.Run(t, func(t *testing.T) (checkpoint.FS, string) {
		return New(bucket, Options{}), "/" + t.Name()
	}, func(*testing.T) checkpoint.FS { return New(bucket, Options{}) })
}

func TestBucketInAFolderIsAStorage(t *testing.T) {
	root := t.TempDir()
	open := func(t *testing.T) *FS {
		bucket, err := fileblob.OpenBucket(root, &fileblob.Options{NoTempDir: true})
		if err != nil {
			t.Fatal(err)
		}
		return New(bucket, Options{})
	}
	storagetest.Run(t, func(t *testing.T) (checkpoint.FS, string) { return open(t), t.Name() },
		func(t *testing.T) checkpoint.FS { return open(t) })
	if _, err := os.Stat(root); err != nil {
		t.Error(err)
	}
}
