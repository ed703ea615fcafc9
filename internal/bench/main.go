// Command bench measures deployer beside Helm 3 in one run, on the cluster of
// KUBECONFIG: seconds, processor time, memory and requests to the API server.
//
// Seconds depend on the machine and on what else it does; the ratios between the
// two programs are what counts. `make bench` runs it on a cluster of its own.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// options are the command line.
type options struct {
	objects  int
	repeat   int
	deployer string
	helm     string
	auditLog string
}

func main() {
	var o options
	flag.IntVar(&o.objects, "n", 1000, "objects in the release: a quarter each ConfigMap, ServiceAccount, Service, Role")
	flag.IntVar(&o.repeat, "repeat", 1, "how often each upgrade is measured; the fastest counts")
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

// A phase is one thing that both programs do.
type phase struct {
	name    string
	changed int // objects whose value is new
	first   bool
	plan    bool // by deployer only: compared with Helm's upgrade without a change
}

// phases of a run with n objects. Each but the first is measured from a release
// in which nothing is changed.
func phases(n int) []phase {
	return []phase{
		{name: "install", first: true},
		{name: "no-op upgrade"},
		{name: "one changed", changed: 1},
		{name: fmt.Sprintf("%d changed", n/4), changed: n / 4},
		{name: "plan of a no-op", plan: true},
	}
}

func bench(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	chart, err := writeChart(dir, o.objects)
	if err != nil {
		return err
	}
	programs, err := programs(o, dir)
	if err != nil {
		return err
	}
	for _, p := range programs {
		if err := p.prepare(ctx); err != nil {
			return err
		}
	}
	var rows []row
	for _, phase := range phases(o.objects) {
		r := row{phase: phase.name}
		for i, p := range programs {
			if phase.plan && p.name == "helm" {
				r.measured[i] = rows[1].measured[i]
				continue
			}
			if r.measured[i], err = p.measure(ctx, phase, chart, o.repeat); err != nil {
				return err
			}
		}
		rows = append(rows, r)
	}
	return report(os.Stdout, o.objects, rows)
}
