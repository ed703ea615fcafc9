// Command bench measures deployer beside Helm 3 in one run, on the cluster of
// KUBECONFIG: seconds, processor time, memory and requests to the API server; and
// beside the floor, which is the same objects sent without thought.
//
// Seconds depend on the machine and on what else it does; the ratios between the
// programs are what counts. `make bench` runs it on a cluster of its own.
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
	sizes    []int
	repeat   int
	deployer string
	helm     string
	auditLog string
}

func main() {
	o := options{sizes: []int{100, 1000, 5000}}
	flag.Func("n", "objects in the release, a quarter each ConfigMap, ServiceAccount, Service, Role; several sizes with commas (default 100,1000,5000)", o.setSizes)
	flag.IntVar(&o.repeat, "repeat", 0, "how often each phase is measured, of which the median counts; 0 means three times, once from 5000 objects on")
	flag.StringVar(&o.deployer, "deployer", "bin/deployer", "the deployer binary")
	flag.StringVar(&o.helm, "helm", "bin/helm3/helm", "the Helm 3 binary")
	flag.StringVar(&o.auditLog, "audit-log", os.Getenv("DEPLOYER_TEST_AUDIT_LOG"), "audit log of the API server; without it requests aren't counted")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := bench(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (o *options) setSizes(text string) error {
	o.sizes = nil
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 4 {
			return fmt.Errorf("%q is not a number of objects (4 or more)", word)
		}
		o.sizes = append(o.sizes, n)
	}
	return nil
}

// times is how often each phase is measured with n objects.
func (o *options) times(n int) int {
	switch {
	case o.repeat > 0:
		return o.repeat
	case n >= 5000:
		return 1
	}
	return 3
}

func bench(ctx context.Context, o options) error {
	var runs []run
	for _, n := range o.sizes {
		r, err := measureSize(ctx, o, n)
		if err != nil {
			return err
		}
		if err := r.report(os.Stdout); err != nil {
			return err
		}
		runs = append(runs, r)
	}
	return reportGrowth(os.Stdout, runs)
}

// measureSize measures all phases with n objects. The programs take turns, so
// that what else the machine does meets all of them.
func measureSize(ctx context.Context, o options, n int) (run, error) {
	r := run{objects: n, times: o.times(n)}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	chart, err := writeChart(dir, n)
	if err != nil {
		return r, err
	}
	programs, err := programs(o, dir, n)
	if err != nil {
		return r, err
	}
	for _, p := range programs {
		if err := p.prepare(ctx); err != nil {
			return r, err
		}
		defer removeNamespace(ctx, p.namespace)
	}
	if r.floor, err = measureFloor(ctx, n, r.times); err != nil {
		return r, err
	}
	for _, ph := range phases(n) {
		row := row{phase: ph}
		for i := range r.times {
			for _, p := range programs {
				if ph.plan && p.helm {
					continue
				}
				m, err := p.measure(ctx, ph, chart, i)
				if err != nil {
					return r, err
				}
				row.add(p.helm, m)
			}
		}
		if ph.plan {
			row.helm = r.rows[1].helm // the upgrade without a change
		}
		r.rows = append(r.rows, row)
	}
	return r, nil
}
