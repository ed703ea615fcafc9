package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/urfave/cli/v2"
)

// run has the library run the command of a command line: this is the only place that knows it. The library gets the
// flags that are given, in their order. All values that can't be read are reported together.
func (l commandLine) run(ctx context.Context, e *env) error {
	e.readingFlags = true
	problems := e.readEnvironment(l.leaf.flags)
	e.warnOfMisspelt(os.Environ())
	app := &cli.App{Name: e.call.name, HideHelp: true, HideVersion: true, Writer: io.Discard, ErrWriter: io.Discard, ExitErrHandler: func(*cli.Context, error) {}}
	app.Action = func(c *cli.Context) error {
		problems = append(problems, checkFlags(l.leaf.flags)...)
		e.readingFlags = false
		e.releaseWarnings(e.warn)
		err := errors.Join(problems...)
		if err == nil {
			err = l.leaf.action(c.Context, c.Args().Slice())
		}
		if errors.As(err, new(*usageError)) {
			return l.withUsageHint(err)
		}
		return err
	}
	args := []string{e.call.name}
	registered := map[string]bool{}
	for _, given := range l.flags {
		args = append(args, given.String())
		if !registered[given.flag.name] {
			registered[given.flag.name] = true
			app.Flags = append(app.Flags, &cli.GenericFlag{Name: given.flag.name, Value: &adaptedValue{e, given.flag, &problems}})
		}
	}
	return app.RunContext(ctx, append(append(args, "--"), l.arguments...))
}

// An adaptedValue is the value of a flag as the library wants it. It accepts everything and notes what is wrong, because
// the library stops at the first error, and tells it in its own words.
type adaptedValue struct {
	e        *env
	flag     *flag
	problems *[]error
}

func (a *adaptedValue) Set(text string) error {
	if err := a.e.setFlag(a.flag, text); err != nil {
		*a.problems = append(*a.problems, usagef("--%s: %w", a.flag.name, err))
	}
	return nil
}

func (a *adaptedValue) String() string { return "" }
