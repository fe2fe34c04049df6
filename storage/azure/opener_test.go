package azure

import (
	"net/url"
	"strings"
	"testing"
)

func TestHadoopsURLsNameAccountAndContainer(t *testing.T) {
	for text, want := range map[string]string{
		"azblob://c/a":                             "azblob://c?storage_account=mine",
		"azblob://c/a?storage_account=x":           "azblob://c?storage_account=x",
		"wasb://c@acc.blob.core.windows.net/a":     "azblob://c?storage_account=acc",
		"wasbs://c@acc.blob.core.windows.net/a":    "azblob://c?storage_account=acc",
		"abfss://c@acc.dfs.core.windows.net/a/b":   "azblob://c?storage_account=acc",
		"abfs://c@acc.dfs.core.chinacloudapi.cn/a": "azblob://c?domain=blob.core.chinacloudapi.cn&storage_account=acc",
		"abfs://acc.dfs.core.windows.net/a":        "",
		"wasb://c@acc/a":                           "",
		"wasbs://@acc.blob.core.windows.net/a":     "",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Opener{Account: "mine"}.address(u)
		if err == nil && got.String() != want || err != nil && want != "" {
			t.Errorf("%s: got %v, %v; want %s", text, got, err, want)
		}
	}
}

func TestTokensAndConnectionsAreForOneAccount(t *testing.T) {
	open := func(text string) error {
		t.Helper()
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = Opener{}.Open(t.Context(), u)
		return err
	}
	clear := func() {
		for _, name := range []string{"ACCOUNT", "KEY", "SAS_TOKEN", "CONNECTION_STRING", "DOMAIN", "PROTOCOL", "IS_CDN", "IS_LOCAL_EMULATOR"} {
			t.Setenv("AZURE_STORAGE_"+name, "")
		}
		t.Setenv("AZURE_STORAGEBLOB_CONNECTIONSTRING", "")
	}
	clear()
	if err := open("azblob://c/a"); err == nil || !strings.Contains(err.Error(), "AccountName is required") {
		t.Errorf("without an account: %v", err)
	}
	t.Setenv("AZURE_STORAGE_ACCOUNT", "acc")
	t.Setenv("AZURE_STORAGE_SAS_TOKEN", "sv=1&sig=secret")
	for text, want := range map[string]bool{
		"azblob://c/a": true, "azblob://c/a?storage_account=acc": true, "wasbs://c@acc.blob.core.windows.net/a": true,
		"azblob://c/a?storage_account=other": false, "azblob://c/a?domain=evil.example": false, "azblob://c/a?protocol=http": false,
		"wasbs://c@acc.blob.evil.example/a": false,
	} {
		if err := open(text); (err == nil) != want || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("with a token, %s: %v", text, err)
		}
	}
	clear()
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=c2VjcmV0;EndpointSuffix=core.windows.net")
	for text, want := range map[string]bool{
		"azblob://c/a": true, "wasbs://c@acc.blob.core.windows.net/a": true, "wasbs://c@other.blob.core.windows.net/a": false,
	} {
		if err := open(text); (err == nil) != want {
			t.Errorf("with a connection string, %s: %v", text, err)
		}
	}
}
