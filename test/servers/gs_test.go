//go:build servers && unix

package servers_test

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/flott-dev/flott/storage/gs"
)

// gsServer starts a server that speaks Google's JSON API and keeps objects in memory, with one bucket.
func gsServer(t *testing.T) (endpoint string) {
	t.Helper()
	host, port := address(t)
	listens := host + ":" + port
	serve(t, listens, exec.Command(built(t, "github.com/fsouza/fake-gcs-server"), "-scheme", "http", "-host", host, "-port", port,
		"-backend", "memory", "-public-host", listens, "-external-url", "http://"+listens))
	answer, err := http.Post("http://"+listens+"/storage/v1/b?project=test", "application/json", strings.NewReader(`{"name": "bucket"}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("make a bucket: %s", answer.Status)
	}
	return fmt.Sprintf("http://%s/storage/v1/", listens)
}

func TestGS(t *testing.T) {
	endpoint := gsServer(t)
	storageAt(t, gs.Opener{}, "gs://bucket/flott?anonymous=true&endpoint="+endpoint)
	t.Run("fields", func(t *testing.T) {
		o := gs.Opener{Endpoint: endpoint, Anonymous: true}
		exclusiveAndLarge(t, o, "gs://bucket/large")
		wrongPlaces(t, o, "gs://bucket/x", "gs://nothing/x")
	})
}
