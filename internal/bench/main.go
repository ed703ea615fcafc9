// Command bench measures deployer beside Helm 3 in one run, on the cluster of
// KUBECONFIG: seconds, processor time, memory and requests to the API server; and
// beside the floor, which is the same objects sent without thought.
//
// Seconds depend on the machine and on what else it does; the ratios between the
// programs are what counts. `make bench` runs it on a cluster of its own. It ends with 1 when a
// target is missed.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// options are the command line.
type options struct {
	sizes    []int
	sections []string
	charts   []string // directories with charts
	repeat   int
	deployer string
	helm     string
	auditLog string
}

// The sections of a report.
const (
	sectionSizes     = "sizes"
	sectionStart     = "start"
	sectionCharts    = "charts"
	sectionGenerated = "generated"
	sectionFar       = "far"
)

var sections = []string{sectionStart, sectionSizes, sectionCharts, sectionGenerated, sectionFar}

func main() {
	o := options{sizes: []int{100, 1000, 5000}, sections: sections, charts: filepath.SplitList(cmp.Or(os.Getenv("DEPLOYER_TEST_CHARTS"), "../shared/charts"))}
	flag.Func("n", "objects in the release, a quarter each ConfigMap, ServiceAccount, Service, Role; several sizes with commas (default 100,1000,5000)", o.setSizes)
	flag.Func("only", "sections of the report, with commas: "+strings.Join(sections, ", ")+" (default all)", o.setSections)
	flag.BoolFunc("far", "only what an API server 80 ms away makes of a run, as -only far", func(string) error { return o.setSections(sectionFar) })
	flag.Func("charts", "directories with charts that have large CRDs, such as velero or traefik, separated as in PATH (default ../shared/charts, or $DEPLOYER_TEST_CHARTS)", o.setCharts)
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

func (o *options) setSections(text string) error {
	o.sections = strings.Split(text, ",")
	for _, section := range o.sections {
		if !slices.Contains(sections, section) {
			return fmt.Errorf("%q is not a section: %s", section, strings.Join(sections, ", "))
		}
	}
	return nil
}

func (o *options) setCharts(text string) error {
	o.charts = filepath.SplitList(text)
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

// bench measures the sections that were asked for, and fails when a target is missed.
func bench(ctx context.Context, o options) error {
	measure := map[string]func(context.Context, options) ([]run, error){
		sectionStart: measureStart, sectionSizes: measureSizes, sectionCharts: measureCharts,
		sectionGenerated: measureGenerated, sectionFar: measureFar,
	}
	missed := 0
	for _, section := range sections {
		if !slices.Contains(o.sections, section) {
			continue
		}
		runs, err := measure[section](ctx, o)
		if err != nil {
			return err
		}
		for _, r := range runs {
			missed += r.missed()
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d targets missed", missed)
	}
	return nil
}

// measureSizes measures releases of many small objects.
func measureSizes(ctx context.Context, o options) ([]run, error) {
	var runs []run
	for _, n := range o.sizes {
		r, err := measureSize(ctx, o, n)
		if err != nil {
			return nil, err
		}
		if err := r.report(os.Stdout); err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, reportGrowth(os.Stdout, runs)
}

// measureSize measures all phases with n objects. The programs and the floor take
// turns, so that what else the machine does, and a database that grows, meets all of
// them.
func measureSize(ctx context.Context, o options, n int) (run, error) {
	r := run{title: fmt.Sprintf("%d objects; a plan is compared with Helm's upgrade without a change", n), objects: n, times: o.times(n), targets: sizeTargets}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	chart, err := writeChart(dir, n)
	if err != nil {
		return r, err
	}
	programs, err := programs(o, dir, strconv.Itoa(n))
	if err != nil {
		return r, err
	}
	for _, p := range programs {
		if err := p.prepare(ctx); err != nil {
			return r, err
		}
		defer removeNamespace(ctx, p.namespace)
	}
	var floors []measurement
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
			if ph.first {
				floor, err := measureFloor(ctx, n, i)
				if err != nil {
					return r, err
				}
				floors = append(floors, measurement{wall: floor})
			}
		}
		if ph.plan {
			row.helm = r.rows[1].helm // the upgrade without a change
		}
		r.rows = append(r.rows, row)
	}
	r.floor = median(floors).wall
	return r, nil
}
