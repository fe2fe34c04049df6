package main

import (
	"cmp"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"
)

func jobsCommand() command {
	return command{
		name: "list", args: "[-r] [-s] [-a] [-m HOST:PORT] [-D KEY=VALUE]...", summary: "list running and scheduled jobs", flink: true,
		details: `The jobs of the process at the endpoint are listed with the time of their start,
id, name and state.`,
		example: "flott list\nflott list -a -m 127.0.0.1:8082",
		prepare: func(a *app, f *flag.FlagSet) action {
			at := endpointFlags(f, false)
			var running, scheduled, all bool
			boolFlag(f, &running, "r", "running", "only running jobs")
			boolFlag(f, &scheduled, "s", "scheduled", "only scheduled jobs")
			boolFlag(f, &all, "a", "all", "all jobs, also those that have ended")
			return func([]string) error { return a.jobs(at, running, scheduled, all) }
		},
	}
}

// boolFlag declares a flag by its short and long names.
func boolFlag(f *flag.FlagSet, to *bool, short, long, usage string) {
	f.BoolVar(to, short, false, usage)
	f.BoolVar(to, long, false, "the same as -"+short)
}

// textFlag declares a flag with a value by its short and long names.
func textFlag(f *flag.FlagSet, to *string, short, long, usage string) {
	f.StringVar(to, short, "", usage)
	_, rest, _ := strings.Cut(usage, "`")
	value, _, _ := strings.Cut(rest, "`")
	f.StringVar(to, long, "", "the same as -"+short+" `"+value+"`")
}

// job is a job in the list.
type job struct {
	ID    string `json:"jid"`
	Name  string `json:"name"`
	State string `json:"state"`
	Start int64  `json:"start-time"`
}

// jobs lists jobs.
func (a *app) jobs(at *endpoint, running, scheduled, all bool) error {
	c, err := a.client(at)
	if err != nil {
		return err
	}
	fmt.Fprintln(a.out, "Waiting for response...")
	var answer struct{ Jobs []job }
	if err := c.do("GET", "/jobs/overview", nil, &answer); err != nil {
		return fmt.Errorf("list jobs: %w", err)
	}
	slices.SortStableFunc(answer.Jobs, func(x, y job) int {
		return cmp.Or(strings.Compare(x.State, y.State), cmp.Compare(x.Start, y.Start))
	})
	var sections [3][]job // running, scheduled, ended
	for _, j := range answer.Jobs {
		switch j.State {
		case "CREATED", "INITIALIZING":
			sections[1] = append(sections[1], j)
		case "FINISHED", "CANCELED", "FAILED":
			sections[2] = append(sections[2], j)
		default:
			sections[0] = append(sections[0], j)
		}
	}
	if !running && !scheduled && !all {
		running, scheduled = true, true
	}
	if running || all {
		a.section("Running/Restarting Jobs", "No running jobs.", sections[0])
	}
	if scheduled || all {
		a.section("Scheduled Jobs", "No scheduled jobs.", sections[1])
	}
	if all && len(sections[2]) > 0 {
		a.section("Terminated Jobs", "", sections[2])
	}
	return nil
}

// lineWidth is that of the lines around lists.
const lineWidth = 62

func (a *app) section(title, none string, jobs []job) {
	if len(jobs) == 0 {
		fmt.Fprintln(a.out, none)
		return
	}
	a.headline(title)
	for _, j := range jobs {
		fmt.Fprintf(a.out, "%s : %s : %s (%s)\n", time.UnixMilli(j.Start).Format("02.01.2006 15:04:05"), j.ID, shown(j.Name), j.State)
	}
	fmt.Fprintln(a.out, strings.Repeat("-", lineWidth))
}

// headline is a title between dashes.
func (a *app) headline(title string) {
	dashes := lineWidth - len(title) - 2
	fmt.Fprintln(a.out, strings.Repeat("-", dashes/2)+" "+title+" "+strings.Repeat("-", dashes-dashes/2))
}
