package apply

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// each calls f for 0 to n-1, at most Options.Parallel at once. After ctx ends
// none is begun. It returns when all calls have, with their errors joined in
// order, or the context's if that kept some from being begun.
func (a *Applier) each(ctx context.Context, n int, f func(i int) error) error {
	errs := make([]error, n+1)
	slots := make(chan struct{}, a.opts.Parallel)
	var wg sync.WaitGroup
	for i := range n {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			errs[n] = context.Cause(ctx)
			break
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer func() { <-slots }()
			errs[i] = f(i)
		}()
	}
	wg.Wait()
	return errors.Join(errs...)
}

func listError(at place, err error) error {
	where := "the cluster"
	if at.mapping.Namespaced {
		where = "namespace " + at.namespace
	}
	return fmt.Errorf("listing %s in %s: %w", at.mapping.Resource.Resource, where, err)
}
