// Package s3 keeps snapshots in Amazon S3, and in stores that speak its protocol: MinIO, Ceph, Cloudflare R2 and others. It
// owns how a URL becomes a bucket and nothing else; package storage/blob says how files are made of objects. Programs link it
// by giving an Opener to the environment.
package s3

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"gocloud.dev/blob/s3blob"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/storage/blob"
)

// Opener opens "s3://BUCKET/FOLDER". Its zero value is ready. s3a and s3n, as Hadoop calls it, mean the same.
//
// Region and credentials are found as by Amazon's own tools: AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the files
// in ~/.aws, the role of the machine, container or service account. They need to be allowed to list the bucket and to get, put
// and delete objects in it.
//
// URLs may have options in their query, which win over the fields: region, profile, endpoint, use_path_style, anonymous,
// disable_https, fips, dualstack, accelerate, ssetype (AES256, aws:kms) and kmskeyid for encryption by the store,
// request_checksum_calculation=when_required for stores that don't know newer checksums, response_checksum_validation
// (when_required, as snapshots have checksums of their own), and rate_limiter_capacity.
type Opener struct {
	// Region is the region of the bucket; empty: that of the surroundings.
	Region string
	// Endpoint is the URL of a store that is not Amazon's; empty: Amazon's of the region.
	Endpoint string
	// PathStyle has the bucket's name in the path of requests and not in their host, as many other stores want it.
	PathStyle bool
	// Anonymous sends requests without credentials, for public buckets.
	Anonymous bool
	// Options are those of the file system.
	Options blob.Options
}

// Schemes implements checkpoint.Opener.
func (Opener) Schemes() []string { return []string{s3blob.Scheme, "s3a", "s3n"} }

// Open implements checkpoint.Opener. No request is sent: whether the bucket exists shows when it is used.
func (o Opener) Open(ctx context.Context, u *url.URL) (f checkpoint.FS, dir string, err error) {
	bucket, err := new(s3blob.URLOpener).OpenBucketURL(ctx, o.address(u))
	if err != nil {
		return nil, "", fmt.Errorf("open %s: %w", u.Redacted(), err)
	}
	options := o.Options
	if options.Classify == nil {
		options.Classify = classify
	}
	return blob.New(bucket, options), blob.Folder(u), nil
}

// address is the URL with the opener's fields as options.
func (o Opener) address(u *url.URL) *url.URL {
	q := u.Query()
	for name, value := range map[string]string{
		// Chunks have checksums of their own; the client would warn of each file whose checksum it can't tell from its parts.
		"response_checksum_validation": "when_required",

		"region": o.Region, "endpoint": o.Endpoint, "use_path_style": flag(o.PathStyle), "anonymous": flag(o.Anonymous),
	} {
		if value != "" && !q.Has(name) {
			q.Set(name, value)
		}
	}
	return &url.URL{Scheme: s3blob.Scheme, Host: u.Host, RawQuery: q.Encode()}
}

func flag(on bool) string {
	if on {
		return "true"
	}
	return ""
}

// classify knows what the driver does not: that two conditional writes of one object have met, and all the ways of not being
// allowed to.
func classify(err error) error {
	if answer, ok := errors.AsType[smithy.APIError](err); ok && answer.ErrorCode() == "ConditionalRequestConflict" {
		return fs.ErrExist
	}
	answer, ok := errors.AsType[*smithyhttp.ResponseError](err)
	if ok && (answer.HTTPStatusCode() == http.StatusForbidden || answer.HTTPStatusCode() == http.StatusUnauthorized) {
		return fs.ErrPermission
	}
	return nil
}
