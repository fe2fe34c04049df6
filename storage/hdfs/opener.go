// Package hdfs keeps snapshots in the Hadoop file system. It owns the connection to a cluster and what its files guarantee; it
// never knows what they hold. Programs link it by giving an Opener to the environment.
package hdfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/user"
	"path"
	"time"

	"github.com/colinmarc/hdfs/v2"
	"github.com/colinmarc/hdfs/v2/hadoopconf"

	"github.com/flott-dev/flott/checkpoint"
)

const (
	// DefaultTimeout is how long a data node may be silent, and how long a file may take to be closed.
	DefaultTimeout = 2 * time.Minute

	namenodePort = "8020"
	dialTimeout  = 30 * time.Second
)

// Opener opens "hdfs://NAMENODE:PORT/FOLDER" (port 8020 if there is none), "hdfs://NAMESERVICE/FOLDER" and "hdfs:///FOLDER",
// whose name nodes stand in core-site.xml and hdfs-site.xml in the folder that HADOOP_CONF_DIR names, or HADOOP_HOME/conf. Its
// zero value is ready.
//
// The user is that of the URL ("hdfs://USER@..."), the field, HADOOP_USER_NAME or the system, in this order. Kerberos is not
// supported: a configuration that demands it is an error.
type Opener struct {
	// User is the user of the cluster; empty: that of the surroundings.
	User string
	// Timeout is how long a data node may be silent, and how long a file may take to be closed; 0: DefaultTimeout.
	Timeout time.Duration
}

// Schemes implements checkpoint.Opener.
func (Opener) Schemes() []string { return []string{"hdfs"} }

// Open implements checkpoint.Opener. It connects to the name node.
func (o Opener) Open(_ context.Context, u *url.URL) (f checkpoint.FS, dir string, err error) {
	options, err := o.options(u)
	if err != nil {
		return nil, "", fmt.Errorf("open %s: %w", u.Redacted(), err)
	}
	client, err := hdfs.NewClient(*options)
	if err != nil {
		return nil, "", fmt.Errorf("open %s: %w", u.Redacted(), err)
	}
	return newFS(client, cmp.Or(o.Timeout, DefaultTimeout)), path.Clean("/" + u.Path + u.Opaque), nil
}

// options are those of a client for the URL.
func (o Opener) options(u *url.URL) (*hdfs.ClientOptions, error) {
	if u.RawQuery != "" {
		return nil, errors.New("there are no options for the query of the URL")
	}
	conf, err := hadoopconf.LoadFromEnvironment()
	if err != nil {
		return nil, fmt.Errorf("read Hadoop's configuration: %w", err)
	}
	options := hdfs.ClientOptionsFromConf(conf)
	if options.KerberosClient != nil {
		return nil, errors.New("the configuration of Hadoop demands Kerberos, which is not supported")
	}
	switch {
	case u.Host == "" || conf["dfs.ha.namenodes."+u.Host] != "":
	case u.Port() == "":
		options.Addresses = []string{net.JoinHostPort(u.Hostname(), namenodePort)}
	default:
		options.Addresses = []string{u.Host}
	}
	if len(options.Addresses) == 0 {
		return nil, errors.New("it names no name node, and no configuration of Hadoop does")
	}
	options.User = cmp.Or(u.User.Username(), o.User, os.Getenv("HADOOP_USER_NAME"))
	if options.User == "" {
		me, err := user.Current()
		if err != nil {
			return nil, fmt.Errorf("find the user: %w", err)
		}
		options.User = me.Username
	}
	dial := (&net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout}).DialContext
	options.NamenodeDialFunc, options.DatanodeDialFunc = dial, dial
	return &options, nil
}
