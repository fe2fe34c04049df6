package gs

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/storage/blob"
)

// TestForbiddenIsNotMissing asks a store that refuses everything, which the driver takes for one that has nothing.
func TestForbiddenIsNotMissing(t *testing.T) {
	status := http.StatusForbidden
	var got []string
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.URL.Path+r.Header.Get("Authorization"))
		w.WriteHeader(status)
	}))
	defer store.Close()
	o := Opener{Endpoint: store.URL + "/storage/v1/", Anonymous: true}
	f, dir, err := o.Open(t.Context(), &url.URL{Scheme: "gs", Host: "bucket", Path: "/a"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Stat(dir + "/b"); !errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat: %v", err)
	}
	if len(got) != 1 || got[0] != "GET /storage/v1/b/bucket/o/a/b" {
		t.Errorf("sent %q", got)
	}
	status = http.StatusNotFound
	if _, err := f.Open(dir + "/b"); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		t.Errorf("open: %v", err)
	}
}

// TestStoreThatCannotAnswerIsGivenUp asks a store that is out of order, and an address at which nobody listens, with so much
// patience that the test would not end if each went on asking.
func TestStoreThatCannotAnswerIsGivenUp(t *testing.T) {
	asked := 0
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer store.Close()
	o := Opener{Endpoint: store.URL + "/storage/v1/", Anonymous: true, Options: blob.Options{Timeout: 24 * time.Hour}}
	u := &url.URL{Scheme: "gs", Host: "bucket"}
	f, err := o.open(t.Context(), u, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Stat("/a"); err == nil || asked != 2 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	store.Close()
	if _, err := f.Stat("/a"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("stat: %v", err)
	}
	if err := vfs.WriteFile(f, "/a", []byte("text")); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("write: %v", err)
	}
	w, err := f.Create("/large", vfs.Truncate) // in several parts
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(make([]byte, 3*blob.DefaultPartBytes))
	if err := errors.Join(err, w.Close()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("write in parts: %v", err)
	}
}

func TestUnknownOptionsAreRefused(t *testing.T) {
	for _, query := range []string{"no_such_option=1&anonymous=true", "anonymous=maybe"} {
		if _, _, err := (Opener{}).Open(t.Context(), &url.URL{Scheme: "gs", Host: "bucket", RawQuery: query}); err == nil {
			t.Errorf("%s was accepted", query)
		}
	}
}
