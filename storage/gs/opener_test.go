package gs

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
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

func TestUnknownOptionsAreRefused(t *testing.T) {
	for _, query := range []string{"no_such_option=1&anonymous=true", "anonymous=maybe"} {
		if _, _, err := (Opener{}).Open(t.Context(), &url.URL{Scheme: "gs", Host: "bucket", RawQuery: query}); err == nil {
			t.Errorf("%s was accepted", query)
		}
	}
}
