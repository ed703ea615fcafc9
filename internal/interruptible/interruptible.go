// Package interruptible stops waiting for work that takes no context, as reads from a terminal and Helm's
// libraries don't.
package interruptible

import "context"

// Run calls work and returns its error. When ctx ends first, Run returns, and work continues until its own
// timeouts: what it writes may be read only if there is no error.
func Run(ctx context.Context, work func() error) error {
	if err := ctx.Err(); err != nil {
		return err // nothing is started
	}
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
