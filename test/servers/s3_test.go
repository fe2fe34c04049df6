//go:build servers && unix

package servers_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/flott-dev/flott/storage/blob"
	"github.com/flott-dev/flott/storage/s3"
)

// s3Server starts a server that speaks S3 and keeps objects in a folder, with one bucket. The job's program gets the credentials
// from the surroundings, as it would elsewhere.
func s3Server(t *testing.T) (endpoint string) {
	t.Helper()
	host, port := address(t)
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/bucket", 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "somebody")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "something secret")
	t.Setenv("AWS_REGION", "us-east-1")
	serve(t, host+":"+port, exec.Command(built(t, "github.com/versity/versitygw/cmd/versitygw"),
		"--access", "somebody", "--secret", "something secret", "--port", host+":"+port, "--quiet", "posix", dir))
	return "http://" + host + ":" + port
}

func TestS3(t *testing.T) {
	endpoint := s3Server(t)
	where := "s3://bucket/flott?use_path_style=true&endpoint=" + endpoint
	storageAt(t, s3.Opener{}, where)
	t.Run("fields", func(t *testing.T) {
		o := s3.Opener{Endpoint: endpoint, PathStyle: true, Region: "us-east-1", Options: blob.Options{PartBytes: 5 << 20, Parts: 1}}
		exclusiveAndLarge(t, o, "s3a://bucket/large")
		wrongPlaces(t, o, "s3://bucket/x", "s3://nothing/x")
	})
	t.Run("wrong secret", func(t *testing.T) {
		t.Setenv("AWS_SECRET_ACCESS_KEY", "something else")
		refused(t, s3.Opener{}, where)
	})
}
