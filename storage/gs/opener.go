// Package gs keeps snapshots in Google Cloud Storage. It owns how a URL becomes a bucket and nothing else; package storage/blob
// says how files are made of objects. Programs link it by giving an Opener to the environment.
package gs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"syscall"

	"cloud.google.com/go/storage"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/gcp"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/storage/blob"
)

// Opener opens "gs://BUCKET/FOLDER". Its zero value is ready.
//
// Credentials are Google's application default ones: the file that GOOGLE_APPLICATION_CREDENTIALS names, those of gcloud, the
// service account of the machine or pod. They need to be allowed to list the bucket and to get, create and delete objects
// (the role Storage Object User).
//
// URLs may have options in their query, which win over the fields: anonymous and endpoint, and universe_domain.
type Opener struct {
	// Endpoint is the URL of the JSON API of a store that is not Google's: "http://localhost:4443/storage/v1/" for example.
	Endpoint string
	// Anonymous sends requests without credentials, for public buckets and stores for tests.
	Anonymous bool
	// Options are those of the file system.
	Options blob.Options
}

// Schemes implements checkpoint.Opener.
func (Opener) Schemes() []string { return []string{gcsblob.Scheme} }

// Open implements checkpoint.Opener. It looks for credentials; whether the bucket exists shows when it is used.
func (o Opener) Open(ctx context.Context, u *url.URL) (f checkpoint.FS, dir string, err error) {
	// What is opened outlives the call, and goes on to ask for tokens.
	if f, err = o.open(context.WithoutCancel(ctx), u, attempts); err != nil {
		return nil, "", fmt.Errorf("open %s: %w", u.Redacted(), err)
	}
	return f, blob.Folder(u), nil
}

func (o Opener) open(ctx context.Context, u *url.URL, attempts int) (checkpoint.FS, error) {
	q := u.Query()
	anonymous, endpoint := o.Anonymous, o.Endpoint
	if q.Has("anonymous") {
		var err error
		if anonymous, err = strconv.ParseBool(q.Get("anonymous")); err != nil {
			return nil, fmt.Errorf("option anonymous: %w", err)
		}
	}
	if q.Has("endpoint") {
		endpoint = q.Get("endpoint")
	}
	q.Del("anonymous")
	q.Del("endpoint")
	opener := &gcsblob.URLOpener{Client: gcp.NewAnonymousHTTPClient(gcp.DefaultTransport())}
	if endpoint != "" {
		opener.Options.ClientOptions = []option.ClientOption{option.WithEndpoint(endpoint), storage.WithJSONReads()}
	}
	if !anonymous {
		credentials, err := gcp.DefaultCredentials(ctx)
		if err != nil {
			return nil, err
		}
		opener.TokenSource = gcp.CredentialsTokenSource(credentials)
		if opener.Client, err = gcp.NewHTTPClient(gcp.DefaultTransport(), opener.TokenSource); err != nil {
			return nil, err
		}
	}
	bucket, err := opener.OpenBucketURL(ctx, &url.URL{Scheme: gcsblob.Scheme, Host: u.Host, RawQuery: q.Encode()})
	if err != nil {
		return nil, err
	}
	if client := (*storage.Client)(nil); bucket.As(&client) {
		client.SetRetry(retries(attempts)...)
	}
	options := o.Options
	if options.Classify == nil {
		options.Classify = classify
	}
	return blob.New(bucket, options), nil
}

// attempts is how often a request is sent that the store can't answer. The pauses between them grow, so that it is given up after
// a quarter of a minute; the client by itself goes on until the file system's patience is over.
const attempts = 5

// retries say what the client sends again. It counts no attempts of uploads: where nobody listens, they are not repeated.
func retries(attempts int) []storage.RetryOption {
	return []storage.RetryOption{
		storage.WithMaxAttempts(attempts),
		storage.WithErrorFuncWithContext(func(err error, counted *storage.RetryContext) bool {
			return storage.ShouldRetry(err) && (counted != nil || !errors.Is(err, syscall.ECONNREFUSED))
		}),
	}
}

// classify tells what may not be seen from what is not there, which the driver takes for the same.
func classify(err error) error {
	if answer, ok := errors.AsType[*googleapi.Error](err); ok &&
		(answer.Code == http.StatusForbidden || answer.Code == http.StatusUnauthorized) {
		return fs.ErrPermission
	}
	return nil
}
