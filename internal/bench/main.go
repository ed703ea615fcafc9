// Command bench measures deployer beside Helm 3 in one run, on the cluster of
// KUBECONFIG: seconds, processor time of the program and of the API server, memory and
// requests.
//
// Seconds depend on the machine and on what else it does; the ratios between the
// programs are what counts. `make bench` runs it on a cluster of its own. It ends with 1 when a
// target is missed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// options are the command line.
type options struct {
	sizes []int
	only  []string // names of sections; empty means all
}

func main() {
	o := options{sizes: []int{100, 1000, 5000}}
	flag.Func("n", "objects in the releases of the section sizes; several with commas (default 100,1000,5000)", func(text string) error {
		o.sizes = nil
		for word := range strings.SplitSeq(text, ",") {
			n, err := strconv.Atoi(word)
			if err != nil || n < len(kinds) {
				return fmt.Errorf("%q is not a number of objects (%d or more)", word, len(kinds))
			}
			o.sizes = append(o.sizes, n)
		}
		return nil
	})
	flag.Func("only", "names of sections of sections.go, with commas (default all)", func(text string) error {
		o.only = strings.Split(text, ",")
		return nil
	})
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := bench(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench measures the sections that were asked for, and fails when a target is missed.
func bench(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	sections, err := o.sections(dir)
	if err != nil {
		return err
	}
	w, err := newWorld(ctx, dir)
	if err != nil {
		return err
	}
	missed := 0
	for _, s := range sections {
		r, err := w.measure(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.title, err)
		}
		n, err := report(os.Stdout, s, r)
		if err != nil {
			return err
		}
		missed += n
	}
	if missed > 0 {
		return fmt.Errorf("%d targets missed", missed)
	}
	return nil
}
