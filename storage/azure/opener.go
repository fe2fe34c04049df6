// Package azure keeps snapshots in Azure Blob Storage. It owns how a URL becomes a container and nothing else; package
// storage/blob says how files are made of blobs. Programs link it by giving an Opener to the environment.
package azure

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob/azureblob"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/storage/blob"
)

// Opener opens "azblob://CONTAINER/FOLDER" in the account of the surroundings, and Hadoop's
// "wasbs://CONTAINER@ACCOUNT.blob.core.windows.net/FOLDER" and "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER" (wasb
// and abfs as well; connections are encrypted in any case). Its zero value is ready.
//
// Account and credentials are taken from the surroundings: AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_KEY or
// AZURE_STORAGE_SAS_TOKEN, AZURE_STORAGE_CONNECTION_STRING, or else Azure's default credentials: AZURE_CLIENT_ID and its
// likes, a managed identity, the az command's. They need to be allowed to list the container and to read, write and delete
// blobs (the role Storage Blob Data Contributor).
//
// The query of an azblob URL may have options, which win over the fields and the surroundings: storage_account, domain,
// protocol (http for emulators) and localemu. With AZURE_STORAGE_SAS_TOKEN no URL may lead elsewhere, as the token would be
// sent there.
type Opener struct {
	// Account is the storage account; empty: that of the URL or the surroundings.
	Account string
	// Options are those of the file system.
	Options blob.Options
}

// Schemes implements checkpoint.Opener.
func (Opener) Schemes() []string {
	return []string{azureblob.Scheme, "wasb", "wasbs", "abfs", "abfss"}
}

// Open implements checkpoint.Opener. No request is sent: whether the container exists shows when it is used.
func (o Opener) Open(ctx context.Context, u *url.URL) (f checkpoint.FS, dir string, err error) {
	address, err := o.address(u)
	if err == nil {
		f, err = o.open(ctx, address)
	}
	if err != nil {
		return nil, "", fmt.Errorf("open %s: %w", u.Redacted(), err)
	}
	return f, blob.Folder(u), nil
}

// address is the URL as one of the scheme azblob.
func (o Opener) address(u *url.URL) (*url.URL, error) {
	q := u.Query()
	a := &url.URL{Scheme: azureblob.Scheme, Host: u.Host}
	if u.Scheme != azureblob.Scheme {
		account, domain, ok := strings.Cut(u.Host, ".")
		if u.User == nil || u.User.Username() == "" || !ok {
			return nil, fmt.Errorf("it has to be %s://CONTAINER@ACCOUNT.DOMAIN/FOLDER", u.Scheme)
		}
		a.Host = u.User.Username()
		q.Set("storage_account", account)
		if domain = "blob." + strings.TrimPrefix(strings.TrimPrefix(domain, "dfs."), "blob."); domain != "blob.core.windows.net" {
			q.Set("domain", domain)
		}
	} else if o.Account != "" && !q.Has("storage_account") {
		q.Set("storage_account", o.Account)
	}
	a.RawQuery = q.Encode()
	return a, nil
}

func (o Opener) open(ctx context.Context, address *url.URL) (checkpoint.FS, error) {
	surroundings := azureblob.NewDefaultServiceURLOptions()
	q := address.Query()
	elsewhere := q.Has("domain") || q.Has("protocol") || q.Has("localemu") || q.Has("cdn") ||
		q.Has("storage_account") && q.Get("storage_account") != surroundings.AccountName
	if surroundings.SASToken != "" && elsewhere {
		return nil, errors.New("the URL leads to another account or server than the one that AZURE_STORAGE_SAS_TOKEN is for")
	}
	opener := &azureblob.URLOpener{ServiceURLOptions: *surroundings}
	opener.MakeClient = func(service azureblob.ServiceURL, name azureblob.ContainerName) (*container.Client, error) {
		client, err := azureblob.NewDefaultClient(service, name)
		if err == nil && elsewhere && !strings.HasPrefix(client.URL(), string(service)+"/") {
			return nil, fmt.Errorf("the URL leads to %s, but AZURE_STORAGE_CONNECTION_STRING to %s", service, client.URL())
		}
		return client, err
	}
	bucket, err := opener.OpenBucketURL(ctx, address)
	if err != nil {
		return nil, err
	}
	options := o.Options
	if options.Classify == nil {
		options.Classify = classify
	}
	return blob.New(bucket, options), nil
}

// classify knows what the driver does not: who may not do it, and that a folder of a hierarchical account is not empty.
func classify(err error) error {
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	switch {
	case !ok:
		return nil
	case answer.StatusCode == http.StatusForbidden || answer.StatusCode == http.StatusUnauthorized:
		return fs.ErrPermission
	}
	return nil
}
