package hdfs

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestURLsNameNodesAndUsers(t *testing.T) {
	conf := t.TempDir()
	const site = `<configuration>
<property><name>fs.defaultFS</name><value>hdfs://cluster</value></property>
<property><name>dfs.nameservices</name><value>cluster</value></property>
<property><name>dfs.ha.namenodes.cluster</name><value>a,b</value></property>
<property><name>dfs.namenode.rpc-address.cluster.a</name><value>one:8020</value></property>
<property><name>dfs.namenode.rpc-address.cluster.b</name><value>two:8020</value></property>
</configuration>`
	if err := os.WriteFile(filepath.Join(conf, "hdfs-site.xml"), []byte(site), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HADOOP_CONF_DIR", conf)
	t.Setenv("HADOOP_USER_NAME", "surroundings")
	for _, c := range []struct {
		url       string
		o         Opener
		addresses []string
		user      string
	}{
		{"hdfs://node:9000/a", Opener{}, []string{"node:9000"}, "surroundings"},
		{"hdfs://node/a", Opener{User: "field"}, []string{"node:8020"}, "field"},
		{"hdfs://ada@node/a", Opener{User: "field"}, []string{"node:8020"}, "ada"},
		{"hdfs://cluster/a", Opener{}, []string{"one:8020", "two:8020"}, "surroundings"},
		{"hdfs:///a", Opener{}, []string{"one:8020", "two:8020"}, "surroundings"},
	} {
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.o.options(u)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(got.Addresses)
		if !slices.Equal(got.Addresses, c.addresses) || got.User != c.user {
			t.Errorf("%s: name nodes %v, user %q", c.url, got.Addresses, got.User)
		}
	}
}

func TestWhatCannotBeOpenedIsSaid(t *testing.T) {
	empty, kerberos := t.TempDir(), t.TempDir()
	const site = `<configuration><property><name>hadoop.security.authentication</name><value>kerberos</value></property></configuration>`
	if err := os.WriteFile(filepath.Join(kerberos, "core-site.xml"), []byte(site), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ conf, url, want string }{
		{empty, "hdfs:///a", "no name node"},
		{empty, "hdfs://node/a?x=y", "no options"},
		{kerberos, "hdfs://node/a", "Kerberos"},
		{empty, "hdfs://127.0.0.1:1/a", "connect"},
	} {
		t.Setenv("HADOOP_CONF_DIR", c.conf)
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := (Opener{}).Open(t.Context(), u); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.url) {
			t.Errorf("%s: %v", c.url, err)
		}
	}
}
