//go:build servers && unix

package servers_test

import (
	"context"
	"os/exec"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"

	"github.com/flott-dev/flott/storage/azure"
)

// The account that every Azurite has, with the key that its manual prints.
const (
	azuriteVersion = "3.37.0"
	azuriteAccount = "devstoreaccount1"
	azuriteKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// azureServer starts Azurite, with one container.
func azureServer(t *testing.T) (domain string) {
	t.Helper()
	host, port := address(t)
	domain = host + ":" + port
	serve(t, domain, exec.Command("npx", "--yes", "--package", "azurite@"+azuriteVersion, "azurite-blob",
		"--blobHost", host, "--blobPort", port, "--location", t.TempDir(), "--silent", "--skipApiVersionCheck", "--disableTelemetry"))
	t.Setenv("AZURE_STORAGE_ACCOUNT", azuriteAccount)
	t.Setenv("AZURE_STORAGE_KEY", azuriteKey)
	credential, err := azblob.NewSharedKeyCredential(azuriteAccount, azuriteKey)
	if err != nil {
		t.Fatal(err)
	}
	client, err := azblob.NewClientWithSharedKeyCredential("http://"+domain+"/"+azuriteAccount, credential, nil)
	if err == nil {
		_, err = client.CreateContainer(context.Background(), "bucket", nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return domain
}

func TestAzure(t *testing.T) {
	domain := azureServer(t)
	query := "?protocol=http&domain=" + domain
	storageAt(t, azure.Opener{}, "azblob://bucket/flott"+query)
	t.Run("fields", func(t *testing.T) {
		o := azure.Opener{Account: azuriteAccount}
		exclusiveAndLarge(t, o, "azblob://bucket/large"+query)
		wrongPlaces(t, o, "azblob://bucket/x"+query, "azblob://nothing/x"+query)
	})
	t.Run("wrong key", func(t *testing.T) {
		t.Setenv("AZURE_STORAGE_KEY", "c29tZXRoaW5nIGVsc2U=")
		refused(t, azure.Opener{}, "azblob://bucket/flott"+query)
	})
}
