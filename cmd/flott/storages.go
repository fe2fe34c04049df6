//go:build !race

package main

import (
	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/storage/azure"
	"github.com/flott-dev/flott/storage/gs"
	"github.com/flott-dev/flott/storage/hdfs"
	"github.com/flott-dev/flott/storage/s3"
)

// storages open the URLs that users may name. Credentials come from the surroundings, as each storage documents.
func storages() []checkpoint.Opener {
	return []checkpoint.Opener{s3.Opener{}, gs.Opener{}, azure.Opener{}, hdfs.Opener{}}
}
