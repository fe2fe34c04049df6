package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// command is one command of the program.
type command struct {
	// name is all its words, args what follows them.
	name, args string
	// summary is a line for the list of commands, details a paragraph for its help, example calls of it.
	summary, details, example string
	// operands is how many arguments beside flags it takes, optional how many more it may; -1: any number.
	operands, optional int
	// flink is one of Flink's commands: what is wrong with a call, and its failures, are told as Flink's tells them.
	flink bool
	// before says that flags stand before all arguments: the rest are a program's.
	before bool
	// bare are flags whose value may be left out.
	bare []string
	// prepare declares the flags and gives what runs when they are parsed.
	prepare func(a *app, f *flag.FlagSet) action
}

// action does a command's work on its arguments beside flags.
type action func(args []string) error

// commands are all commands, in the order of the help.
func commands() []command {
	return []command{
		runCommand(), infoCommand(), jobsCommand(), stopCommand(), cancelCommand(), checkpointCommand(),
		savepointCommand(), checkCommand(),
		inspectCommand(), dumpCommand(), verifyCommand(), listCommand(), disposeCommand(),
		{
			name:     "version",
			summary:  "print the version of this program",
			example:  "flott version",
			prepare:  func(a *app, _ *flag.FlagSet) action { return func([]string) error { return a.version() } },
			operands: 0,
		},
		{
			name:     "help",
			args:     "[COMMAND]",
			summary:  "explain a command, or list all",
			example:  "flott help savepoint dump",
			prepare:  func(a *app, _ *flag.FlagSet) action { return a.help },
			operands: -1,
		},
	}
}

// find gives the command that the arguments begin with, that with the longest name, and the arguments after its name; nil if
// there is none.
func find(args []string) (found *command, rest []string) {
	longest := 0
	for _, c := range commands() {
		words := strings.Fields(c.name)
		if n := len(words); n > longest && len(args) >= n && slices.Equal(args[:n], words) {
			found, rest, longest = &c, args[n:], n
		}
	}
	return found, rest
}

// isGroup says whether commands begin with the word and go on with another.
func isGroup(word string) bool {
	return slices.ContainsFunc(commands(), func(c command) bool { return strings.HasPrefix(c.name, word+" ") })
}

// validWords names what may follow in a call.
func validWords(group string) string {
	var words []string
	for _, c := range commands() {
		first, second, _ := strings.Cut(c.name, " ")
		if group == "" {
			words = append(words, first)
		} else if first == group && second != "" {
			words = append(words, second)
		}
	}
	words = slices.Compact(words)
	last := len(words) - 1
	return "choose " + strings.Join(words[:last], ", ") + " or " + words[last]
}

// flags is the command's flag set, and what runs with it.
func (c *command) flags(a *app) (*flag.FlagSet, action) {
	f := flag.NewFlagSet(c.name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	return f, c.prepare(a, f)
}

// call parses the arguments and runs the command.
func (c *command) call(a *app, args []string) error {
	f, run := c.flags(a)
	args = c.expand(args)
	parse := parse
	if c.before {
		parse = parseBefore
	}
	operands, err := parse(f, args)
	if errors.Is(err, flag.ErrHelp) {
		return a.help(strings.Fields(c.name))
	}
	if err != nil {
		return &usageError{c.name, err.Error()}
	}
	if n, most := len(operands), c.operands+c.optional; c.operands >= 0 && (n < c.operands || n > most) {
		if n > most {
			return &usageError{c.name, fmt.Sprintf("%q is too much: it takes %s", operands[most], c.takes())}
		}
		return &usageError{c.name, fmt.Sprintf("%s is missing", strings.Fields(c.args)[n])}
	}
	return run(operands)
}

// expand writes flags out that Flink's users write shorter: -Dkey=value, and flags without their value. It drops what does nothing.
func (c *command) expand(args []string) []string {
	var out []string
	f, _ := c.flags(&app{})
	keys := f.Lookup("D") != nil
	for i, arg := range args {
		if arg == "--" || c.before && !strings.HasPrefix(arg, "-") && (i == 0 || !c.takesValue(args[i-1])) {
			return append(out, args[i:]...)
		}
		name := strings.TrimLeft(arg, "-")
		switch {
		case c.flink && strings.HasPrefix(arg, "-") && (name == "v" || name == "verbose"): // does nothing, as in Flink
		case keys && strings.HasPrefix(arg, "-D") && len(arg) > 2 && arg[2] != '=':
			out = append(out, "-D", arg[2:])
		case strings.HasPrefix(arg, "-") && slices.Contains(c.bare, name) && (i == len(args)-1 || strings.HasPrefix(args[i+1], "-")):
			out = append(out, arg+"=")
		default:
			out = append(out, arg)
		}
	}
	return out
}

// takesValue says whether an argument is a flag that the next argument belongs to.
func (c *command) takesValue(arg string) bool {
	if !strings.HasPrefix(arg, "-") || strings.Contains(arg, "=") || strings.HasPrefix(arg, "-D") && len(arg) > 2 {
		return false
	}
	f, _ := c.flags(&app{})
	found := f.Lookup(strings.TrimLeft(arg, "-"))
	if found == nil {
		return false
	}
	b, isBool := found.Value.(interface{ IsBoolFlag() bool })
	return !isBool || !b.IsBoolFlag()
}

// parseBefore parses flags up to the first other argument.
func parseBefore(f *flag.FlagSet, args []string) ([]string, error) {
	err := f.Parse(args)
	return f.Args(), err
}

func (c *command) takes() string {
	if c.operands+c.optional == 0 {
		return "no arguments"
	}
	return strings.Join(strings.Fields(c.args)[:c.operands+c.optional], " ") + " and flags"
}

// parse parses flags that may stand before, between and after the other arguments; all after "--" are arguments.
func parse(f *flag.FlagSet, args []string) (operands []string, err error) {
	for {
		if err := f.Parse(args); err != nil {
			return nil, err
		}
		rest := f.Args()
		if used := len(args) - len(rest); used > 0 && args[used-1] == "--" {
			return append(operands, rest...), nil
		}
		if len(rest) == 0 {
			return operands, nil
		}
		operands, args = append(operands, rest[0]), rest[1:]
	}
}

// help explains the command of these words, or lists those that begin with them.
func (a *app) help(words []string) error {
	if c, rest := find(words); c != nil && len(rest) == 0 {
		c.explain(a)
		if !isGroup(c.name) {
			return nil
		}
		fmt.Fprint(a.out, "\n")
	}
	switch {
	case len(words) == 0:
		fmt.Fprint(a.out, "flott runs, watches and controls Flott's jobs, and looks at their checkpoints and savepoints.\n\n")
	case len(words) > 1 || !isGroup(words[0]):
		return &usageError{"", fmt.Sprintf("there is no command %q: %s", strings.Join(words, " "), validWords(""))}
	}
	fmt.Fprint(a.out, "Commands:\n")
	w := tabwriter.NewWriter(a.out, 0, 0, 3, ' ', 0)
	for _, c := range commands() {
		if len(words) == 0 || strings.HasPrefix(c.name, words[0]+" ") {
			fmt.Fprintf(w, "  flott %s\t%s\n", strings.TrimSpace(c.name+" "+c.args), c.summary)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprint(a.out, "\nflott help COMMAND explains a command, with an example.\n")
	return nil
}

// explain writes the command's help.
func (c *command) explain(a *app) {
	f, _ := c.flags(a)
	fmt.Fprintf(a.out, "flott %s: %s\n\nUsage:\n  flott %s\n", c.name, c.summary, strings.TrimSpace(c.name+" "+c.args))
	if c.details != "" {
		fmt.Fprintf(a.out, "\n%s\n", c.details)
	}
	flags := 0
	f.VisitAll(func(*flag.Flag) { flags++ })
	if flags > 0 {
		fmt.Fprint(a.out, "\nFlags:\n")
		f.SetOutput(a.out)
		f.PrintDefaults()
	}
	fmt.Fprint(a.out, "\nExample:\n")
	for line := range strings.Lines(c.example) {
		fmt.Fprintf(a.out, "  %s\n", strings.TrimRight(line, "\n"))
	}
}
