//go:build servers && unix

// Package servers_test runs storages against real servers, each in a process of its own that the test starts and stops: the
// suite of package storagetest, and a whole job that is killed. Nothing else calls it.
package servers_test

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a server may take to begin.
const patience = 3 * time.Minute

// address gives a port of this machine that is free, with the host.
func address(t *testing.T) (host, port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	host, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return host, port
}

// output keeps what a process says.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// serve runs a server until the test ends, with all processes that it starts, and waits until somebody listens at the address.
func serve(t *testing.T, listens string, cmd *exec.Cmd) {
	t.Helper()
	said := &output{}
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
		if t.Failed() {
			t.Logf("%s said:\n%s", cmd.Path, said)
		}
	})
	give := time.After(patience)
	for {
		c, err := net.Dial("tcp", listens)
		if err == nil {
			_ = c.Close()
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s ended: %v\n%s", cmd, err, said)
		case <-give:
			t.Fatalf("%s does not listen at %s\n%s", cmd, listens, said)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// built builds a server whose version test/servers/bin/go.mod says, and gives its path.
func built(t *testing.T, pkg string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), filepath.Base(pkg))
	run(t, command("go", "-C", "bin", "build", "-o", file, pkg), "GOWORK=off")
	return file
}

// command is a program that the machine has.
func command(name string, args ...string) *exec.Cmd { return exec.Command(name, args...) }

// run runs a command to its end.
func run(t *testing.T, cmd *exec.Cmd, environment ...string) {
	t.Helper()
	cmd.Env = append(os.Environ(), environment...)
	if out, err := cmd.CombinedOutput(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			t.Fatalf("this test needs %s on the PATH: %v", cmd.Args[0], err)
		}
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
}
