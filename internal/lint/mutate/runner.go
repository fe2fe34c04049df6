package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// runner runs go test over a flipped file.
type runner struct {
	ctx   context.Context
	root  string
	opts  options
	house *house
	tmp   string
	green map[string]baseline // of packages whose tests were run as they are
}

// baseline is how the tests of a package end that nothing was done to.
type baseline struct {
	ok   bool
	took time.Duration // 0: it is not known, as the result was that of an earlier run
}

// A package's tests may take unflippedTimeout as they are, on a machine that is slow or busy. With a flip they have hung when they
// take longer than the timeout of the options, unless that is less than slack times what they took.
const (
	unflippedTimeout = 30 * time.Minute
	slack            = 4
)

func newRunner(ctx context.Context, root string, o options, h *house) (*runner, error) {
	tmp, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return nil, err
	}
	// A flipped loop may allocate without end: the limit ends the test program before the machine suffers. It is put on
	// the go command, too, since go test -exec would switch off the test cache. Systems whose shell has no such limit go without.
	script := fmt.Sprintf("#!/bin/sh\nulimit -v %d 2>/dev/null\nexec \"$@\"\n", o.memory*1024)
	if err := os.WriteFile(filepath.Join(tmp, "limit"), []byte(script), 0o755); err != nil {
		return nil, errors.Join(err, os.RemoveAll(tmp))
	}
	return &runner{ctx: ctx, root: root, opts: o, house: h, tmp: tmp, green: map[string]baseline{}}, nil
}

func (r *runner) close() {
	// A folder that stays behind in the system's temporary place does no harm.
	_ = os.RemoveAll(r.tmp)
}

// try flips one condition and asks the tests, those of the package first.
func (r *runner) try(s site) (result, error) {
	if r.house.tests[s.pkg] == nil {
		return r.others(s, "no tests of its own")
	}
	if b, known := r.green[s.pkg]; known && !b.ok {
		return result{verdict: red}, nil
	}
	overlay, err := r.overlay(s)
	if err != nil {
		return result{}, err
	}
	why, err := r.ask(overlay, s.pkg, r.opts.timeout)
	switch {
	case err != nil:
		return result{}, err
	case why == "":
		return r.others(s, "its own tests")
	case why == doesNotBuild:
		return result{verdict: invalid}, nil
	case !r.green[s.pkg].ok:
		return result{verdict: red}, nil
	}
	return result{noticed, why}, nil
}

// others asks the packages that depend on the one that was flipped, as long as the options say.
func (r *runner) others(s site, asked string) (result, error) {
	if r.opts.wide == 0 {
		return result{survived, asked}, nil
	}
	overlay, err := r.overlay(s)
	if err != nil {
		return result{}, err
	}
	all := r.house.dependents(s.pkg)
	end := time.Now().Add(r.opts.wide)
	n := 0
	for _, pkg := range all {
		left := time.Until(end)
		if left <= 0 {
			break
		}
		if b, known := r.green[pkg]; known && !b.ok {
			continue
		}
		why, err := r.ask(overlay, pkg, r.opts.timeout)
		if err != nil {
			return result{}, err
		}
		n++
		if why != "" && r.green[pkg].ok {
			return result{seen, pkg + " " + why}, nil
		}
	}
	return result{survived, fmt.Sprintf("%s, %d of %d dependents", asked, n, len(all))}, nil
}

// doesNotBuild is what ask says of a flip that is no program.
const doesNotBuild = "does not build"

// ask runs the tests of a package over an overlay and tells why they are red, "" if they are not. Red ones are run without the
// overlay as well, once: whether the flip did it is noted in r.green.
func (r *runner) ask(overlay, pkg string, timeout time.Duration) (why string, err error) {
	if took := r.green[pkg].took; slack*took > timeout {
		timeout = slack * took
	}
	why, err = r.test(overlay, timeout, "./"+pkg)
	if err != nil || why == "" || why == doesNotBuild {
		return why, err
	}
	if _, known := r.green[pkg]; !known {
		if err := r.unflipped(pkg); err != nil {
			return "", err
		}
	}
	if why == hung && r.green[pkg].ok && r.green[pkg].took == 0 {
		// Their usual time may come near the timeout.
		if err := r.unflipped(pkg, "-count=1"); err != nil {
			return "", err
		}
		if took := r.green[pkg].took; slack*took > timeout {
			return r.test(overlay, slack*took, "./"+pkg)
		}
	}
	return why, nil
}

// unflipped runs the tests of a package as they are and notes how they end. Results of earlier runs will do unless args say
// otherwise.
func (r *runner) unflipped(pkg string, args ...string) error {
	start := time.Now()
	why, err := r.test("", unflippedTimeout, append(args, "./"+pkg)...)
	if err != nil {
		return err
	}
	b := baseline{ok: why == ""}
	if len(args) > 0 {
		b.took = time.Since(start)
	}
	r.green[pkg] = b
	if !b.ok {
		fmt.Fprintf(os.Stderr, "%s is red without any flip: %s\n", pkg, why)
	}
	return nil
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

// test runs go test and tells why it is red; the error says that it could not be run.
func (r *runner) test(overlay string, timeout time.Duration, args ...string) (why string, err error) {
	line := []string{"go", "test", "-vet=off", "-failfast", "-timeout", timeout.String()}
	if overlay != "" {
		line = append(line, "-overlay", overlay)
	}
	if r.opts.skip != "" {
		line = append(line, "-skip", r.opts.skip)
	}
	cmd := exec.CommandContext(r.ctx, filepath.Join(r.tmp, "limit"), append(line, args...)...)
	cmd.Dir = r.root
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends its tests
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case r.ctx.Err() != nil:
		return "", r.ctx.Err()
	case !errors.As(err, &exit):
		return "", fmt.Errorf("run go test: %w", err)
	}
	return cause(string(out)), nil
}

// hung is the cause of tests that did not come to an end.
const hung = "hung"

// cause is why tests are red: the first that failed, if one did.
func cause(out string) string {
	switch {
	case strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
		return doesNotBuild
	case strings.Contains(out, "panic: test timed out after"):
		return hung
	case strings.Contains(out, "out of memory") || strings.Contains(out, "cannot allocate memory"):
		return "out of memory"
	}
	if m := regexp.MustCompile(`(?m)^--- FAIL: (\S+)`).FindStringSubmatch(out); m != nil {
		return m[1]
	}
	if m := regexp.MustCompile(`(?m)^(?:panic|fatal error): .*$`).FindString(out); m != "" {
		return m
	}
	return "the test program failed"
}
