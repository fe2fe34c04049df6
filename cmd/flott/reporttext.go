package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// printReport writes a report for people.
func (a *app) printReport(r *report) error {
	title := fmt.Sprintf("%s%s %d of job %s", strings.ToUpper(r.Kind[:1]), r.Kind[1:], r.ID, shown(r.JobName))
	fmt.Fprintf(a.out, "%s\n", a.styled(bold, title))
	fmt.Fprintf(a.out, "  taken %s, job id %s\n", r.Time, orDash(r.JobID))
	fmt.Fprintf(a.out, "  in %s, %s, %s beside the manifest, format version %d\n", shown(r.Folder), size(r.Bytes), count(r.Files, "file"), r.FormatVersion)
	for i := range r.Operators {
		if err := a.printOperator(&r.Operators[i]); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printOperator(o *operatorReport) error {
	fmt.Fprintf(a.out, "\n%s\n", a.styled(bold, "Operator "+shown(o.Name)))
	fmt.Fprintf(a.out, "  UID %s, id %s, parallelism %d, max parallelism %d\n", orDash(o.UID), o.ID, o.Parallelism, o.MaxParallelism)
	if n := len(o.FinishedSubtasks); n > 0 {
		fmt.Fprintf(a.out, "  finished: %d of %d subtasks\n", n, o.Parallelism)
	}
	if o.CoordinatorBytes > 0 {
		fmt.Fprintf(a.out, "  enumerator: %s\n", size(int64(o.CoordinatorBytes)))
	}
	for _, part := range []func(io.Writer, *operatorReport){printStates, printFiles, printLists, printChannels, printPositions} {
		w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
		part(w, o)
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func printStates(w io.Writer, o *operatorReport) {
	if len(o.States) == 0 {
		return
	}
	fmt.Fprint(w, "  STATE\tKIND\tENTRIES\tBYTES\tKEY\tNAMESPACE\tMAP KEY\tVALUE\n")
	for _, s := range o.States {
		value := orDash(s.Value)
		if s.TTL != nil {
			value += fmt.Sprintf(" (expires after %v)", time.Duration(s.TTL.Millis)*time.Millisecond)
		}
		entries := strconv.FormatInt(s.Entries, 10)
		switch {
		case s.InFiles:
			entries = fmt.Sprintf("in files + %d changes", s.Changes)
		case s.Changes > 0:
			entries = fmt.Sprintf("%d + %d changes", s.Entries-s.Changes, s.Changes)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n",
			shown(s.Name), orDash(s.Kind), entries, s.Bytes, orDash(s.Key), orDash(s.Namespace), orDash(s.MapKey), value)
	}
}

func printFiles(w io.Writer, o *operatorReport) {
	if len(o.Files) == 0 {
		return
	}
	fmt.Fprint(w, "  FORMAT\tFILES\tBYTES\n")
	for _, f := range o.Files {
		fmt.Fprintf(w, "  %s\t%d\t%d\n", shown(f.Format), f.Files, f.Bytes)
	}
}

func printLists(w io.Writer, o *operatorReport) {
	if len(o.Lists) == 0 {
		return
	}
	fmt.Fprint(w, "  LIST\tMODE\tITEMS\tBYTES\tITEM\n")
	for _, l := range o.Lists {
		fmt.Fprintf(w, "  %s\t%s\t%d\t%d\t%s\n", shown(l.Name), l.Mode, l.Items, l.Bytes, orDash(l.Item))
	}
}

func printChannels(w io.Writer, o *operatorReport) {
	if len(o.Channels) == 0 {
		return
	}
	fmt.Fprint(w, "  INPUT\tSUBTASK\tFROM\tWATERMARK\n")
	for _, c := range o.Channels {
		state := ""
		if c.Idle {
			state += ", idle"
		}
		if c.Behind {
			state += ", catching up"
		}
		fmt.Fprintf(w, "  %d\t%d of %d\t%d of %d\t%s%s\n", c.Input, c.Subtask, c.Parallelism, c.Peer, c.Peers, c.Watermark, state)
	}
}

func printPositions(w io.Writer, o *operatorReport) {
	if len(o.Splits) > 0 {
		fmt.Fprint(w, "  SPLITS NOT FINISHED\n")
	}
	for _, s := range o.Splits {
		fmt.Fprintf(w, "  %s\n", s)
	}
	if len(o.Positions) > 0 {
		fmt.Fprint(w, "  SUBTASK\tPOSITION\n")
	}
	for _, p := range o.Positions {
		left := "nothing left"
		if len(p.Stretches) > 0 {
			left = strings.Join(stretches(p.Stretches), ", ")
		}
		fmt.Fprintf(w, "  %d of %d\t%s\n", p.Subtask, p.Parallelism, left)
	}
}

// stretches are the two numbers of each stretch.
func stretches(all [][2]int64) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = fmt.Sprintf("[%d %d]", s[0], s[1])
	}
	return out
}
