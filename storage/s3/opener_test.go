package s3

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestFieldsAreOptionsThatURLsChange(t *testing.T) {
	o := Opener{Region: "here", Endpoint: "http://store:1", PathStyle: true, Anonymous: true}
	for text, want := range map[string]string{
		"s3://bucket/a/b":               "s3://bucket?anonymous=true&endpoint=http%3A%2F%2Fstore%3A1&region=here&response_checksum_validation=when_required&use_path_style=true",
		"s3a://bucket?region=there":     "s3://bucket?anonymous=true&endpoint=http%3A%2F%2Fstore%3A1&region=there&response_checksum_validation=when_required&use_path_style=true",
		"s3n://b?use_path_style=false":  "s3://b?anonymous=true&endpoint=http%3A%2F%2Fstore%3A1&region=here&response_checksum_validation=when_required&use_path_style=false",
		"s3://b?anonymous=&endpoint=e":  "s3://b?anonymous=&endpoint=e&region=here&response_checksum_validation=when_required&use_path_style=true",
		"s3://b?ssetype=AES256&fips=no": "s3://b?anonymous=true&endpoint=http%3A%2F%2Fstore%3A1&fips=no&region=here&response_checksum_validation=when_required&ssetype=AES256&use_path_style=true",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := o.address(u).String(); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// TestRequestsAreThoseOfTheOptions looks at what is sent to a store that refuses everything.
func TestRequestsAreThoseOfTheOptions(t *testing.T) {
	var got []string
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signed, _, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got = append(got, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+signed))
		w.WriteHeader(http.StatusForbidden)
	}))
	defer store.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "somebody")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "something")
	for _, c := range []struct {
		o    Opener
		want string
	}{
		{Opener{Region: "here", Endpoint: store.URL, PathStyle: true}, "HEAD /bucket/a/b AWS4-HMAC-SHA256"},
		{Opener{Region: "here", Endpoint: store.URL, PathStyle: true, Anonymous: true}, "HEAD /bucket/a/b"},
	} {
		got = nil
		f, dir, err := c.o.Open(t.Context(), &url.URL{Scheme: "s3a", Host: "bucket", Path: "/a"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Stat(dir + "/b"); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("stat: %v", err)
		}
		if len(got) != 1 || got[0] != c.want {
			t.Errorf("sent %q, want %q", got, c.want)
		}
	}
	if _, _, err := (Opener{}).Open(t.Context(), &url.URL{Scheme: "s3", Host: "bucket", RawQuery: "no_such_option=1"}); err == nil {
		t.Error("an unknown option was accepted")
	}
}
