package main

import (
	"context"
	"fmt"
	"time"

	"deployer/internal/kube"
	"deployer/internal/program"
)

// readTimeout is how long a command that only reads the cluster may take by default.
const readTimeout = 5 * time.Minute

// limitByTimeout gives a command that only reads the cluster the flag --timeout.
func limitByTimeout(c *command) {
	var limit time.Duration
	c.flags = append(c.flags, &flag{name: "timeout", usage: "time limit for reading from the cluster; 0 sets none", is: usual | safe, value: duration(&limit, readTimeout)})
	read := c.action
	c.action = func(ctx context.Context, path string, args []string) error {
		ctx, done := limitReading(ctx, limit)
		return done(read(ctx, path, args))
	}
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
