package apply

import (
	"context"
	"errors"
)

// forEach calls f for 0 to n-1, at most as many at once as requests may be made. It returns when all
// calls have returned, with their errors joined in order. When ctx ends, no call is begun any more, and
// its cause is one of the errors.
func (r *requester) forEach(ctx context.Context, n int, f func(i int) error) error {
	errs := make([]error, n+1) // all are wanted, and not only the first
	done := make(chan struct{})
	running := 0
	for i := range n {
		for ; running >= r.cluster.RequestsAtOnce(); running-- {
			<-done
		}
		if ctx.Err() != nil {
			errs[n] = context.Cause(ctx)
			break
		}
		running++
		go func() {
			errs[i] = f(i)
			done <- struct{}{}
		}()
	}
	for range running {
		<-done
	}
	return errors.Join(errs...)
}
