package env

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/flott-dev/flott/connector"
)

// Place finds what a connector's path or URL means. Connectors that name the same storage share its file system; what lies in
// memory lies with the environment's snapshots, without their limit.
func (e *Env) Place(location string) (connector.Place, error) {
	if e.data == nil {
		e.data = &places{disk: e.Settings.Checkpoints.disk(), openers: append(slices.Clone(e.Settings.Storage), e.memoryStorage)}
	}
	p := e.data
	scheme, _, ok := p.split(location)
	if !ok {
		return connector.Place{FS: p.disk, Path: location}, nil
	}
	if scheme == "file" {
		name, err := p.name(context.Background(), location)
		return connector.Place{FS: p.disk, Path: name}, err
	}
	u, err := url.Parse(location)
	if err != nil {
		return connector.Place{}, fmt.Errorf("open %s: %w", location, err)
	}
	name := nameOf(scheme, u)
	root := rootOf(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.open(context.Background(), root); err != nil {
		return connector.Place{}, err
	}
	m := p.mounts[root]
	return connector.Place{FS: m.fs, Path: path.Join(m.dir, strings.TrimPrefix(name, root)), Remote: true}, nil
}

// rootOf is the name of the storage in which a folder lies that a URL names.
func rootOf(name string) string {
	scheme, rest, _ := strings.Cut(name, ":/")
	host, _, _ := strings.Cut(rest, "/")
	return path.Join(scheme+":", host)
}
