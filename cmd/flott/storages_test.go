//go:build !race

package main

import (
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
)

func TestURLsOfAllStoragesAreOpened(t *testing.T) {
	t.Setenv("HADOOP_CONF_DIR", t.TempDir())
	t.Setenv("AZURE_STORAGE_ACCOUNT", "account")
	t.Setenv("AZURE_STORAGE_KEY", "a2V5")
	checkLocations(t, &app{fs: vfs.OS{}, storages: storages()}, []locationCase{
		{"s3://bucket/c/d?region=x&anonymous=true", "s3://bucket/c/d?region=x&anonymous=true", ""},
		{"S3A://bucket/c", "s3a://bucket/c", ""},
		{"gs://bucket/c/?anonymous=true", "gs://bucket/c?anonymous=true", ""},
		{"azblob://container/c", "azblob://container/c", ""},
		{"abfss://container@account.dfs.core.windows.net/c", "abfss://container@account.dfs.core.windows.net/c", ""},
		{"hdfs:///c", "", "it names no name node"},
		{"ftp://b/c", "", "file, s3, s3a, s3n, gs, azblob,"},
	})
}
