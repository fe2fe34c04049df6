package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// verdict is what the tests said about one flip.
type verdict int

const (
	invalid  verdict = iota // it does not compile
	killed                  // a test turned red, hung or ran out of memory
	survived                // all tests stayed green
	red                     // the package's tests fail without any flip

	verdicts = iota
)

// String implements fmt.Stringer.
func (v verdict) String() string {
	return [verdicts]string{"invalid", "noticed", "SURVIVED", "red"}[v]
}

// runner runs go test over a flipped file.
type runner struct {
	root  string
	opts  options
	tmp   string
	green map[string]baseline // of packages whose tests were run as they are
}

// baseline is how tests end that nothing was done to.
type baseline struct {
	ok   bool
	took time.Duration
}

// A package's tests may take unflippedTimeout as they are, on a machine that is slow or busy. With a flip they have hung when they
// take longer than the timeout of the options, unless that is less than slack times what they took. Those of the wide run may be
// results of earlier runs, which tell nothing; few flips that let a package's own tests pass make others hang.
const (
	unflippedTimeout = 30 * time.Minute
	wideTimeout      = 15 * time.Minute
	slack            = 4
)

func newRunner(root string, o options) (*runner, error) {
	tmp, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return nil, err
	}
	// A flipped loop may allocate without end: the limit ends the test program before the machine suffers. It is put on
	// the go command, too, since go test -exec would switch off the test cache, which keeps the wide runs short. Systems
	// whose shell has no such limit go without.
	script := fmt.Sprintf("#!/bin/sh\nulimit -v %d 2>/dev/null\nexec \"$@\"\n", o.memory*1024)
	if err := os.WriteFile(filepath.Join(tmp, "limit"), []byte(script), 0o755); err != nil {
		return nil, errors.Join(err, os.RemoveAll(tmp))
	}
	return &runner{root: root, opts: o, tmp: tmp, green: map[string]baseline{}}, nil
}

func (r *runner) close() {
	// A folder that stays behind in the system's temporary place does no harm.
	_ = os.RemoveAll(r.tmp)
}

// try flips one condition and asks the tests.
func (r *runner) try(s site) (verdict, error) {
	pkg := "./" + s.pkg
	if _, known := r.green[s.pkg]; !known {
		if out := r.unflipped(s.pkg, "-count=1", pkg); !r.green[s.pkg].ok {
			fmt.Fprintf(os.Stderr, "%s is red without any flip:\n%s\n", s.pkg, out)
		}
	}
	if !r.green[s.pkg].ok {
		return red, nil
	}
	overlay, err := r.overlay(s)
	if err != nil {
		return invalid, err
	}
	out, err := r.test(overlay, max(r.opts.timeout, slack*r.green[s.pkg].took), "-count=1", pkg)
	if err == nil && r.opts.wide != "" {
		if err := r.wideIsGreen(); err != nil {
			return invalid, err
		}
		out, err = r.test(overlay, wideTimeout, strings.Fields(r.opts.wide)...)
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return survived, nil
	case !errors.As(err, &exit):
		return invalid, fmt.Errorf("run go test: %w", err)
	case strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
		return invalid, nil
	}
	return killed, nil
}

// wide is the name of the wide run among the packages.
const wide = "(wide)"

// wideIsGreen makes sure, once, that a red test of the wide run is the flip's doing.
func (r *runner) wideIsGreen() error {
	if r.green[wide].ok {
		return nil
	}
	if out := r.unflipped(wide, strings.Fields(r.opts.wide)...); !r.green[wide].ok {
		return fmt.Errorf("tests of %s are red without any flip (-wide \"\" goes without them):\n%s", r.opts.wide, out)
	}
	return nil
}

// unflipped runs tests as they are and notes how they end.
func (r *runner) unflipped(name string, args ...string) (out string) {
	start := time.Now()
	out, err := r.test("", unflippedTimeout, args...)
	r.green[name] = baseline{err == nil, time.Since(start)}
	return out
}

// overlay writes the flipped file and the file that tells the go command to read it in place of the real one.
func (r *runner) overlay(s site) (string, error) {
	flipped := filepath.Join(r.tmp, "flipped.go")
	if err := os.WriteFile(flipped, s.flipped(), 0o644); err != nil {
		return "", err
	}
	real := filepath.Join(r.root, filepath.FromSlash(s.file))
	text, err := json.Marshal(map[string]map[string]string{"Replace": {real: flipped}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(r.tmp, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o644)
}

func (r *runner) test(overlay string, timeout time.Duration, args ...string) (string, error) {
	line := []string{"go", "test", "-vet=off", "-failfast", "-timeout", timeout.String()}
	if overlay != "" {
		line = append(line, "-overlay", overlay)
	}
	cmd := exec.Command(filepath.Join(r.tmp, "limit"), append(line, args...)...)
	cmd.Dir = r.root
	out, err := cmd.CombinedOutput()
	return string(out), err
}
