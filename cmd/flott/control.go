package main

import (
	"cmp"
	"flag"
	"fmt"
	"strings"

	"github.com/flott-dev/flott/checkpoint"
)

// The kinds of files that savepoints have. Ours have one, which every backend reads.
const (
	canonical = "CANONICAL"
	native    = "NATIVE"
)

// formatFlag declares the flag that names the format of a savepoint.
func formatFlag(f *flag.FlagSet) *string {
	format := strings.ToLower(canonical)
	usage := "`FORMAT` of the savepoint: canonical or native, which are the same here"
	f.StringVar(&format, "type", format, usage)
	return &format
}

func checkFormat(command, format string) (string, error) {
	if format = strings.ToUpper(format); format != canonical && format != native {
		return "", &usageError{command, fmt.Sprintf("-type %q is unknown: choose canonical or native", format)}
	}
	return format, nil
}

func cancelCommand() command {
	return command{
		name: "cancel", args: "JOBID [-s [DIR]] [-m HOST:PORT] [-D KEY=VALUE]...", summary: "cancel a running job", flink: true, optional: 1, bare: []string{"s", "withSavepoint"},
		details: `With -s a savepoint is taken first; better than that is flott stop, which lets
sinks commit all that the savepoint covers.`,
		example: "flott cancel 1a2b3c4d5e6f708192a3b4c5d6e7f809",
		prepare: func(a *app, f *flag.FlagSet) action {
			at, format := endpointFlags(f, true), formatFlag(f)
			var dir string
			textFlag(f, &dir, "s", "withSavepoint", "take a savepoint into `DIR` first; without DIR into the configured one")
			return func(args []string) error {
				with := isSet(f, "s", "withSavepoint")
				id, dir, err := target("cancel", args, dir)
				if err != nil {
					return err
				}
				return a.cancel(at, id, with, dir, *format)
			}
		},
	}
}

// isSet says whether one of these flags was given.
func isSet(f *flag.FlagSet, names ...string) bool {
	set := false
	f.Visit(func(given *flag.Flag) {
		for _, name := range names {
			set = set || given.Name == name
		}
	})
	return set
}

// target is the job that a call names and the folder of its savepoint: if nothing stands beside the flags, the flag's value is
// the job.
func target(command string, args []string, dir string) (id, folder string, err error) {
	switch {
	case len(args) > 0:
		id = args[0]
	case dir != "":
		id, dir = dir, ""
	default:
		return "", "", &usageError{command, "JOBID is missing: flott list shows it"}
	}
	return strings.ToLower(id), dir, checkID(command, id)
}

func (a *app) cancel(at *endpoint, id string, with bool, dir, format string) error {
	c, err := a.client(at)
	if err != nil {
		return err
	}
	if !with {
		fmt.Fprintf(a.out, "Cancelling job %s.\n", id)
		if err := c.do("PATCH", "/jobs/"+id+"?mode=cancel", nil, nil); err != nil {
			return fmt.Errorf("cancel job %s: %w", id, err)
		}
		fmt.Fprintf(a.out, "Cancelled job %s.\n", id)
		return nil
	}
	if format, err = checkFormat("cancel", format); err != nil {
		return err
	}
	dir = cmp.Or(dir, c.savepoints)
	if err := c.keeps(id, dir); err != nil {
		return fmt.Errorf("cancel job %s with a savepoint: %w", id, err)
	}
	to := dir
	if to == "" {
		to = "default savepoint directory"
	}
	fmt.Fprintln(a.out, "DEPRECATION WARNING: Cancelling a job with savepoint is deprecated. Use \"stop\" instead.")
	fmt.Fprintf(a.out, "Cancelling job %s with %s savepoint to %s.\n", id, format, to)
	done, err := a.take(c, id, "/savepoints", map[string]any{"target-directory": orNull(dir), "cancel-job": true, "formatType": format})
	if err != nil {
		return fmt.Errorf("cancel job %s with a savepoint: %w", id, err)
	}
	fmt.Fprintf(a.out, "Cancelled job %s. Savepoint stored in %s.\n", id, done.Location)
	return nil
}

// keeps refuses to end a job with a savepoint that would be lost with it, unless the user names the place. An endpoint that does
// not tell is asked for the savepoint all the same.
func (c *client) keeps(id, dir string) error {
	if dir != "" {
		return nil
	}
	var settings []struct{ Key, Value string }
	if err := c.do("GET", "/jobs/"+id+"/jobmanager/config", nil, &settings); err != nil {
		return nil // the request that follows finds out what is wrong
	}
	for _, s := range settings {
		if s.Key == savepointKey && lostWithJob(s.Value) {
			return fmt.Errorf("its savepoints lie in the memory of its process (%s), so that this one would be lost with the job: name a folder by -p DIR, or -s DIR of flott cancel", s.Value)
		}
	}
	return nil
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// take triggers a savepoint and waits for it.
func (a *app) take(c *client, id, path string, body any) (*operation, error) {
	trigger, err := c.trigger("/jobs/"+id+path, body)
	if err != nil {
		return nil, err
	}
	if err := a.out.Flush(); err != nil {
		return nil, err
	}
	return c.await("/jobs/" + id + "/savepoints/" + trigger)
}

func stopCommand() command {
	return command{
		name: "stop", args: "JOBID [-p [DIR]] [-d] [-m HOST:PORT] [-D KEY=VALUE]...", summary: "end a job with a savepoint", flink: true, optional: 1, bare: []string{"p", "savepointPath"},
		details: `Sources emit nothing after the savepoint and sinks commit what is before it. With
-d the last watermark goes first, so that all windows and timers fire: for jobs
that will not go on. DIR is a URL, or a path as the job's process has it.`,
		example: "flott stop -p savepoints 1a2b3c4d5e6f708192a3b4c5d6e7f809",
		prepare: func(a *app, f *flag.FlagSet) action {
			at, format := endpointFlags(f, true), formatFlag(f)
			var dir string
			var drain, detached bool
			textFlag(f, &dir, "p", "savepointPath", "`DIR` of the savepoint; without it the configured one")
			boolFlag(f, &drain, "d", "drain", "send the last watermark first")
			f.BoolVar(&detached, "detached", false, "return without waiting for the savepoint")
			return func(args []string) error {
				id, dir, err := target("stop", args, dir)
				if err != nil {
					return err
				}
				return a.stop(at, id, dir, *format, drain, detached)
			}
		},
	}
}

func (a *app) stop(at *endpoint, id, dir, format string, drain, detached bool) error {
	c, err := a.client(at)
	if err == nil {
		format, err = checkFormat("stop", format)
	}
	if err != nil {
		return err
	}
	dir = cmp.Or(dir, c.savepoints)
	if err := c.keeps(id, dir); err != nil {
		return fmt.Errorf("stop job %s: %w", id, err)
	}
	verb := "Suspending"
	if drain {
		verb = "Draining"
	}
	fmt.Fprintf(a.out, "%s job %q with a %s savepoint.\n", verb, id, format)
	body := map[string]any{"targetDirectory": orNull(dir), "drain": drain, "formatType": format}
	if detached {
		fmt.Fprintf(a.out, "Triggering stop-with-savepoint in detached mode for job %s.\n", id)
		trigger, err := c.trigger("/jobs/"+id+"/stop", body)
		if err != nil {
			return fmt.Errorf("stop job %s: %w", id, err)
		}
		fmt.Fprintf(a.out, "Stopping with a savepoint was triggered, triggerId: %s\n", trigger)
		return nil
	}
	fmt.Fprintf(a.out, "Triggering stop-with-savepoint for job %s.\nWaiting for response...\n", id)
	done, err := a.take(c, id, "/stop", body)
	if err != nil {
		return fmt.Errorf("stop job %s: %w", id, err)
	}
	fmt.Fprintf(a.out, "Savepoint completed. Path: %s\n", done.Location)
	return nil
}

func savepointCommand() command {
	return command{
		name: "savepoint", args: "[JOBID [DIR]] [-d PATH] [-m HOST:PORT] [-D KEY=VALUE]...", summary: "take a savepoint of a running job, or dispose of one (-d)", flink: true, optional: 2,
		details: `The savepoint lies in a new folder under DIR, or under the configured one, and is
yours: no job removes it. DIR is a URL, or a path as the job's process has it:
one that is not absolute begins where the job was started. With -d the savepoint
at PATH is removed, as by flott savepoint dispose.`,
		example: "flott savepoint 1a2b3c4d5e6f708192a3b4c5d6e7f809 savepoints\nflott savepoint -d savepoints/savepoint-1a2b3c-0123456789ab",
		prepare: func(a *app, f *flag.FlagSet) action {
			at, format := endpointFlags(f, true), formatFlag(f)
			var dispose string
			var detached bool
			textFlag(f, &dispose, "d", "dispose", "remove the savepoint at `PATH`")
			f.BoolVar(&detached, "detached", false, "return without waiting for the savepoint")
			return func(args []string) error {
				if isSet(f, "d", "dispose") {
					if len(args) > 0 {
						return &usageError{"savepoint", fmt.Sprintf("%q is too much beside -d PATH", args[0])}
					}
					return a.dispose(dispose, at)
				}
				if len(args) == 0 {
					return &usageError{"savepoint", "JOBID is missing: flott list shows it; or " + validWords("savepoint")}
				}
				id, dir := strings.ToLower(args[0]), ""
				if err := checkID("savepoint", id); err != nil {
					return &usageError{"savepoint", err.Error() + "; or " + validWords("savepoint")}
				}
				if len(args) == 2 {
					dir = args[1]
				}
				return a.savepoint(at, id, dir, *format, detached)
			}
		},
	}
}

func (a *app) savepoint(at *endpoint, id, dir, format string, detached bool) error {
	c, err := a.client(at)
	if err == nil {
		format, err = checkFormat("savepoint", format)
	}
	if err != nil {
		return err
	}
	body := map[string]any{"target-directory": orNull(cmp.Or(dir, c.savepoints)), "cancel-job": false, "formatType": format}
	if detached {
		fmt.Fprintf(a.out, "Triggering savepoint in detached mode for job %s.\nWaiting for response...\n", id)
		trigger, err := c.trigger("/jobs/"+id+"/savepoints", body)
		if err != nil {
			return fmt.Errorf("take a savepoint of job %s: %w", id, err)
		}
		fmt.Fprintf(a.out, "The savepoint was triggered, triggerId: %s\n", trigger)
		return nil
	}
	fmt.Fprintf(a.out, "Triggering savepoint for job %s.\nWaiting for response...\n", id)
	done, err := a.take(c, id, "/savepoints", body)
	if err != nil {
		return fmt.Errorf("take a savepoint of job %s: %w", id, err)
	}
	fmt.Fprintf(a.out, "Savepoint completed. Path: %s\n", done.Location)
	if lostWithJob(done.Location) {
		fmt.Fprintln(a.out, "It lies in the memory of the job's process, and is lost when that ends.")
	} else {
		fmt.Fprintln(a.out, "You can resume the program from it by flott run -s.")
	}
	return nil
}

func disposeCommand() command {
	return command{
		name: "savepoint dispose", args: "PATH [-m HOST:PORT] [-D KEY=VALUE]...", operands: 1,
		summary: "remove a savepoint",
		details: `PATH is the folder of a savepoint, or the file _metadata in it. Of what is no
savepoint nothing is removed: checkpoints are their job's. With -m the job at the
endpoint removes it, for savepoints that only its machine reaches.`,
		example: "flott savepoint dispose savepoints/savepoint-1a2b3c-0123456789ab",
		prepare: func(a *app, f *flag.FlagSet) action {
			at := endpointFlags(f, false)
			return func(args []string) error { return a.dispose(args[0], at) }
		},
	}
}

// dispose removes a savepoint itself, or has the job at an endpoint that is named remove it.
func (a *app) dispose(path string, at *endpoint) error {
	if path == "" {
		return &usageError{"savepoint", "-d needs the PATH of a savepoint"}
	}
	keys, err := at.configuration()
	if err != nil {
		return err
	}
	begun := func() { fmt.Fprintf(a.out, "Disposing savepoint '%s'.\nWaiting for response...\n", path) }
	if at.named(keys) {
		begun()
		if err := a.disposeThere(path, at); err != nil {
			return err
		}
	} else { // nothing is said of what can't be done
		a.warn(keys.Warnings())
		there, err := a.locate(path)
		if err != nil {
			return fmt.Errorf("dispose of the savepoint: %w", err)
		}
		if err := checkpoint.Dispose(there.fs, there.path); err != nil {
			return there.explain(err)
		}
		begun()
	}
	fmt.Fprintf(a.out, "Savepoint '%s' disposed.\n", path)
	return nil
}

func (a *app) disposeThere(path string, at *endpoint) error {
	c, err := a.client(at)
	if err != nil {
		return err
	}
	trigger, err := c.trigger("/savepoint-disposal", map[string]string{"savepoint-path": path})
	if err == nil {
		_, err = c.await("/savepoint-disposal/" + trigger)
	}
	if err != nil {
		return fmt.Errorf("have the job at %s dispose of savepoint %s: %w", c.address, path, err)
	}
	return nil
}

func checkpointCommand() command {
	return command{
		name: "checkpoint", args: "JOBID [-full] [-m HOST:PORT] [-D KEY=VALUE]...", summary: "take a checkpoint of a running job now", flink: true, operands: 1,
		details: `The checkpoint is the job's own, like those that it takes by itself. With -full it
holds the whole state, also where checkpoints are incremental.`,
		example: "flott checkpoint 1a2b3c4d5e6f708192a3b4c5d6e7f809",
		prepare: func(a *app, f *flag.FlagSet) action {
			at := endpointFlags(f, false)
			full := f.Bool("full", false, "build on no earlier checkpoint")
			return func(args []string) error { return a.checkpoint(at, args[0], *full) }
		},
	}
}

func (a *app) checkpoint(at *endpoint, id string, full bool) error {
	if err := checkID("checkpoint", id); err != nil {
		return err
	}
	id = strings.ToLower(id)
	c, err := a.client(at)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "Triggering checkpoint for job %s.\nWaiting for response...\n", id)
	kind, mark := "CONFIGURED", ""
	if full {
		kind, mark = "FULL", "(FULL)"
	}
	trigger, err := c.trigger("/jobs/"+id+"/checkpoints", map[string]string{"checkpointType": kind})
	var done *operation
	if err == nil {
		done, err = c.await("/jobs/" + id + "/checkpoints/" + trigger)
	}
	if err != nil {
		return fmt.Errorf("take a checkpoint of job %s: %w", id, err)
	}
	fmt.Fprintf(a.out, "Checkpoint%s %d for job %s completed.\nThe job goes on from it after a failure.\n", mark, done.CheckpointID, id)
	return nil
}
