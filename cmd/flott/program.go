package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/flott-dev/flott/internal/config"
	"github.com/flott-dev/flott/internal/env"
)

// program is a user's program that is to be started.
type program struct {
	name   string // of its file
	path   string
	args   []string
	env    []string
	folder string // of what is needed while it is being started
	events *events
	cmd    *exec.Cmd
}

// program finds, and builds if need be, the program that the arguments begin with.
func (a *app) program(command string, l *launch, args []string) (*program, error) {
	if len(args) == 0 {
		return nil, &usageError{command, "PROGRAM is missing"}
	}
	layers, err := l.layers()
	if err != nil {
		return nil, err
	}
	p := &program{args: args[1:]}
	if p.folder, err = os.MkdirTemp("", "flott-run-*"); err != nil {
		return nil, fmt.Errorf("start the program: %w", err)
	}
	if err := a.prepare(p, layers, args[0]); err != nil {
		p.forget()
		return nil, err
	}
	return p, nil
}

// prepare gives a program its environment and its file. What the program would refuse of the configuration is refused here,
// where the places are known in which it was written.
func (a *app) prepare(p *program, layers []config.Layer, name string) error {
	environ := a.environ
	if environ == nil {
		environ = os.Environ()
	}
	var outer config.Layer
	for _, setting := range environ {
		if text, ok := strings.CutPrefix(setting, env.LaunchVariable+"="); ok {
			var err error
			if outer, err = env.ParseLaunch(text); err != nil {
				return err
			}
		}
	}
	layers = append([]config.Layer{outer}, layers...)
	for i := range layers {
		a.warn(layers[i].Warnings)
	}
	if _, err := config.Resolve(layers...); err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	all := config.Flatten(layers...)
	if !serving(all) {
		all["rest.bind-port"] = "8081,0"
	}
	configuration, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("encode the configuration: %w", err)
	}
	p.events = &events{name: filepath.Join(p.folder, "report")}
	if err := os.WriteFile(p.events.name, nil, 0o600); err != nil {
		return fmt.Errorf("start the program: %w", err)
	}
	p.env = append(slices.Clone(environ), env.LaunchVariable+"="+string(configuration), env.ReportVariable+"="+p.events.name)
	p.name, p.path, err = a.executable(p.folder, name)
	return err
}

// warn tells of what the program tells, and runs in spite of.
func (a *app) warn(warnings []string) {
	for _, w := range warnings {
		a.complain("warning: %s", w)
	}
}

// executable is the file of a program: Go code is built.
func (a *app) executable(folder, name string) (base, path string, err error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return "", "", fmt.Errorf("find the program %s: %w", name, err)
	case !info.IsDir() && !strings.HasSuffix(name, ".go"):
		if path, err = filepath.Abs(name); err != nil {
			return "", "", fmt.Errorf("find the program %s: %w", name, err)
		}
		return filepath.Base(name), path, nil
	}
	abs, err := filepath.Abs(name)
	if err != nil {
		return "", "", fmt.Errorf("find the program %s: %w", name, err)
	}
	dir, target := abs, "."
	if !info.IsDir() {
		dir, target = filepath.Dir(abs), filepath.Base(abs)
	}
	base = strings.TrimSuffix(filepath.Base(abs), ".go")
	path = filepath.Join(folder, base)
	build := exec.Command("go", "build", "-o", path, target)
	build.Dir = dir
	build.Env = a.environ
	if out, err := build.CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("build the program %s: %w\n%s", name, err, strings.TrimRight(string(out), "\n"))
	}
	return base, path, nil
}

// forget removes what was needed to start the program; a program that was built for it goes on without its file.
func (p *program) forget() {
	_ = os.RemoveAll(p.folder) // litter in the folder for temporary files, if it fails
}

func (p *program) command(out, errs io.Writer) {
	p.cmd = exec.Command(p.path, p.args...)
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = p.env, out, errs
}

// start starts the program, with its output where it is to go.
func (p *program) start(out, errs io.Writer) error {
	p.command(out, errs)
	p.cmd.Stdin = os.Stdin
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start the program: %w", err)
	}
	return nil
}

// startDetached starts the program so that it outlives this process and its terminal.
func (p *program) startDetached(log *os.File) error {
	p.command(log, log)
	p.cmd.SysProcAttr = detached()
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start the program: %w", err)
	}
	return nil
}

// wait sends the program's end, as an error unless it ended well. A signal to end goes to the program, which decides.
func (p *program) wait() <-chan error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ended := make(chan error, 1)
	over := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				_ = p.cmd.Process.Signal(s) // it may have ended
			case <-over:
				signal.Stop(signals)
				return
			}
		}
	}()
	go func() {
		err := p.cmd.Wait()
		close(over)
		if exit, failed := errors.AsType[*exec.ExitError](err); failed {
			err = fmt.Errorf("the program %s ended with %v", p.name, exit)
		}
		ended <- err
	}()
	return ended
}

// shared is the standard output for this process and a program at a time.
func (a *app) shared() io.Writer {
	if f, ok := a.stdout.(*os.File); ok {
		return f // each writes to it by itself
	}
	return &lockedWriter{w: a.stdout}
}

// lockedWriter may be used by several goroutines.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
