package kube

import (
	"errors"

	"golang.org/x/sync/errgroup"
)

// ParallelRequests is the limit for ForEach where each call makes a request.
const ParallelRequests = 8

// ForEach calls do for 0 to n-1, at most limit at once, and returns all errors joined.
func ForEach(n, limit int, do func(int) error) error {
	errs := make([]error, n)
	var group errgroup.Group
	group.SetLimit(limit)
	for i := range n {
		group.Go(func() error {
			errs[i] = do(i)
			return nil
		})
	}
	return errors.Join(append(errs, group.Wait())...)
}
