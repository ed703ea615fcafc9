package main

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"deployer/internal/kube"
	"deployer/internal/program"
)

// readTimeout is how long a command that only reads the cluster may take by default.
const readTimeout = 5 * time.Minute

// withReadTimeout gives a command that only reads the cluster, and its subcommands, the
// flag --timeout.
func withReadTimeout(c *cli.Command) *cli.Command {
	for _, sub := range c.Subcommands {
		withReadTimeout(sub)
	}
	if c.Action == nil {
		return c
	}
	var limit time.Duration
	c.Flags = append(c.Flags, &cli.DurationFlag{Name: "timeout", Usage: "time limit for reading from the cluster; 0 sets none", Value: readTimeout, Destination: &limit})
	read := c.Action
	c.Action = func(c *cli.Context) error {
		ctx, done := limitReading(c.Context, limit)
		c.Context = ctx
		return done(read(c))
	}
	return c
}

// limitReading limits the time of a command that reads from the cluster; 0 sets no limit.
// Call the returned function with the command's error.
func limitReading(ctx context.Context, limit time.Duration) (context.Context, func(error) error) {
	return limitTime(ctx, limit, "reading from the cluster", "the API server answers slowly, or doesn't finish its answer")
}

// limitTime is kube.WithLimit for a command with --timeout: the error of the limit says what took too long, and the
// hint why that may be.
func limitTime(ctx context.Context, limit time.Duration, what, why string) (context.Context, func(error) error) {
	return kube.WithLimit(ctx, limit, func(err error) error {
		return program.WithHint(fmt.Errorf("%s took more than %s: %w", what, limit, err), why+"; give it more time with a longer --timeout")
	})
}
