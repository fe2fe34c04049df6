package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flott-dev/flott/internal/config"
)

func runCommand() command {
	return command{
		name: "run", args: "[-d] [-s PATH] [-n] [-recover DIR] [-p N] [-D KEY=VALUE]... [-c CONF] PROGRAM [ARGUMENTS]", summary: "run a program and serve its jobs", flink: true, operands: -1, before: true,
		details: `PROGRAM is an executable file, or a .go file or folder of Go code, which is built
first. It gets ARGUMENTS and the configuration, and serves its jobs at port 8081
of this machine, or at a free one if that is taken, unless rest.port is set.
With -d it goes on in the background, and what it prints goes to a file.`,
		example: "flott run ./wordcount -input words.txt\nflott run -d -p 4 -s savepoints/savepoint-1a2b3c-0123456789ab ./alarms",
		prepare: func(a *app, f *flag.FlagSet) action {
			l := launchFlags(f)
			var detached bool
			boolFlag(f, &detached, "d", "detached", "return when the job was submitted")
			log := f.String("log", "", "`FILE` for what a detached program prints; default: one in the folder for temporary files")
			return func(args []string) error {
				p, err := a.program("run", l, args)
				if err != nil {
					return err
				}
				defer p.forget()
				if detached {
					return a.runDetached(p, *log)
				}
				return a.runAttached(p)
			}
		},
	}
}

// launch is how a program is to be started.
type launch struct {
	savepoint, claim, conf, recover string
	allow                           bool
	parallelism                     int
	keys                            map[string]string
}

// launchFlags declares the flags that give a program its configuration.
func launchFlags(f *flag.FlagSet) *launch {
	l := &launch{keys: map[string]string{}}
	textFlag(f, &l.savepoint, "s", "fromSavepoint", "start from the savepoint or retained checkpoint at `PATH`")
	boolFlag(f, &l.allow, "n", "allowNonRestoredState", "drop state of the savepoint that the program has no operator for")
	textFlag(f, &l.claim, "cm", "claimMode", "whose the savepoint is afterwards: `MODE` no_claim (the default), claim or legacy")
	textFlag(f, &l.claim, "rm", "restoreMode", "the old name of -cm `MODE`")
	f.StringVar(&l.recover, "recover", "", "keep checkpoints in the folder `DIR`, and go on from the last one if the program was killed")
	parallelism := func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return errors.New("it is a number from 1")
		}
		l.parallelism = n
		return nil
	}
	f.Func("p", "default parallelism `N` of the program", parallelism)
	f.Func("parallelism", "the same as -p `N`", parallelism)
	keysFlag(f, l.keys, "set a key of the configuration: `KEY=VALUE`, several times")
	textFlag(f, &l.conf, "c", "conf", "configuration `FILE`, or the folder of a config.yaml")
	return l
}

// keysFlag declares the flag that sets keys of the configuration.
func keysFlag(f *flag.FlagSet, keys map[string]string, usage string) {
	f.Func("D", usage, func(text string) error {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return errors.New("write KEY=VALUE")
		}
		keys[key] = value
		return nil
	})
}

// layers are what the program gets: the file's keys, on top of them those of -D, and those of other flags.
func (l *launch) layers() (layers []config.Layer, err error) {
	if l.conf != "" {
		layer, err := readConf(l.conf)
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	return append(layers, config.Texts("-D", l.keys), config.Texts("flags", l.flagKeys())), nil
}

// flagKeys are the keys that flags of their own set.
func (l *launch) flagKeys() map[string]string {
	keys := map[string]string{}
	if l.parallelism > 0 {
		keys["parallelism.default"] = strconv.Itoa(l.parallelism)
	}
	if l.savepoint != "" {
		keys["execution.state-recovery.path"] = l.savepoint
	}
	if l.recover != "" {
		keys["execution.recovery.dir"] = l.recover
	}
	if l.allow {
		keys["execution.state-recovery.ignore-unclaimed-state"] = "true"
	}
	if l.claim != "" {
		keys["execution.state-recovery.claim-mode"] = strings.ToUpper(l.claim)
	}
	return keys
}

// readConf reads a configuration file, or the one in a folder.
func readConf(name string) (config.Layer, error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		dir := name
		name = filepath.Join(dir, config.FileName)
		if _, err := os.Stat(name); err != nil {
			name = filepath.Join(dir, config.OldFileName)
		}
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return config.Layer{}, fmt.Errorf("read the configuration: %w", err)
	}
	return config.Parse(name, b)
}

// serving says whether a configuration has the program serve its jobs.
func serving(keys map[string]string) bool {
	for _, key := range []string{"rest.port", "rest.bind-port", "web.port", "jobmanager.web.port"} {
		if _, ok := keys[key]; ok {
			return true
		}
	}
	return false
}

// event is what a program reports of its jobs; package env writes it.
type event struct {
	Event        string
	ID           string `json:"jobid"`
	Name         string
	Address      string
	Status       string
	Runtime      int64
	Accumulators map[string]string
	Warnings     []string
}

// events reads a report as it grows.
type events struct {
	name string
	read int64
}

// next are the whole lines that were added.
func (e *events) next() ([]event, error) {
	f, err := os.Open(e.name)
	if err != nil {
		return nil, fmt.Errorf("read the program's report: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(e.read, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read the program's report: %w", err)
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("read the program's report: %w", err)
	}
	b = b[:bytes.LastIndexByte(b, '\n')+1]
	e.read += int64(len(b))
	var all []event
	for line := range bytes.Lines(b) {
		var one event
		if err := json.Unmarshal(line, &one); err != nil {
			return nil, fmt.Errorf("read the program's report: %w", err)
		}
		all = append(all, one)
	}
	return all, nil
}

// reportPause is the time between two looks at a report.
const reportPause = 20 * time.Millisecond

// runAttached runs a program to its end and tells of its jobs.
func (a *app) runAttached(p *program) error {
	if err := a.out.Flush(); err != nil {
		return err
	}
	out := a.shared()
	if err := p.start(out, a.stderr); err != nil {
		return err
	}
	jobs := 0
	tell := func() error {
		all, err := p.events.next()
		for _, e := range all {
			if e.Event == "submitted" {
				jobs++
				a.warn(e.Warnings)
			}
			_, _ = io.WriteString(out, eventText(e))
		}
		return err
	}
	ended := p.wait()
	for {
		select {
		case err := <-ended:
			err = errors.Join(tell(), err)
			if err == nil && jobs == 0 {
				return errors.New("the program doesn't contain a Flott job: it ended without calling Execute")
			}
			return err
		case <-time.After(reportPause):
			if err := tell(); err != nil {
				return err
			}
		}
	}
}

// eventText is what is printed of an event.
func eventText(e event) string {
	var b strings.Builder
	if e.Event == "submitted" {
		fmt.Fprintf(&b, "Job has been submitted with JobID %s\n", e.ID)
		if e.Address != "" && e.Address != defaultEndpoint {
			fmt.Fprintf(&b, "It is served at %s: call other commands with -m %s\n", e.Address, e.Address)
		}
		return b.String()
	}
	fmt.Fprintf(&b, "Program execution finished\nJob with JobID %s has %s.\nJob Runtime: %d ms\n", e.ID, ending(e.Status), e.Runtime)
	if len(e.Accumulators) > 0 {
		b.WriteString("Accumulator Results:\n")
		for _, name := range slices.Sorted(maps.Keys(e.Accumulators)) {
			fmt.Fprintf(&b, "- %s: %s\n", shown(name), e.Accumulators[name])
		}
	}
	return b.String()
}

func ending(status string) string {
	switch status {
	case "FINISHED":
		return "finished"
	case "CANCELED":
		return "been cancelled"
	}
	return strings.ToLower(status)
}

// runDetached starts a program and returns when its first job was submitted.
func (a *app) runDetached(p *program, log string) error {
	f, err := openLog(log, p.name)
	if err != nil {
		return err
	}
	defer f.Close()
	var before int64 // of runs of before
	if info, err := f.Stat(); err == nil {
		before = info.Size()
	}
	if err := p.startDetached(f); err != nil {
		return err
	}
	ended := p.wait()
	for {
		all, err := p.events.next()
		if err != nil {
			return err
		}
		if len(all) > 0 {
			a.warn(all[0].Warnings)
			fmt.Fprintf(a.out, "%sWhat it prints goes to %s\n", eventText(all[0]), f.Name())
			return nil
		}
		select {
		case err := <-ended:
			if all, err2 := p.events.next(); err2 == nil && len(all) > 0 {
				a.warn(all[0].Warnings)
				fmt.Fprintf(a.out, "%sWhat it printed is in %s\n", eventText(all[0]), f.Name())
				return nil
			}
			if err == nil {
				err = errors.New("the program doesn't contain a Flott job: it ended without calling Execute")
			}
			return fmt.Errorf("%w\n%s", err, lastLines(f.Name(), before))
		case <-time.After(reportPause):
		}
	}
}

func openLog(log, name string) (*os.File, error) {
	var f *os.File
	var err error
	if log != "" {
		f, err = os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	} else {
		f, err = os.CreateTemp("", "flott-"+name+"-*.log")
	}
	if err != nil {
		return nil, fmt.Errorf("open the file for what the program prints: %w", err)
	}
	return f, nil
}

// lastLines are the last lines of what a file has from a place on.
func lastLines(name string, from int64) string {
	const most = 20
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return ""
	}
	var lines []string
	for s := bufio.NewScanner(f); s.Scan(); {
		if lines = append(lines, s.Text()); len(lines) > most {
			lines = lines[1:]
		}
	}
	return strings.Join(lines, "\n")
}
