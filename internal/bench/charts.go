package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
)

// chartsWithDefinitions are public charts with many or large CustomResourceDefinitions. Each is measured
// where a directory has it, with the values that it can't be installed without. A change is a value that
// is part of one Deployment.
var chartsWithDefinitions = []struct {
	name   string
	values []string
	change string
}{
	{name: "kube-prometheus-stack", change: "kube-state-metrics.replicas=2"},
	{name: "traefik", change: "deployment.replicas=2"},
	{name: "chaos-mesh", change: "controllerManager.replicaCount=2"},
	{name: "velero", values: []string{"--set", "backupsEnabled=false,snapshotsEnabled=false"}, change: "configuration.logLevel=debug"},
}

// A measuredChart is where a chart is, its values, and one more that an upgrade changes.
type measuredChart struct {
	path   string
	values []string
	change string
}

// The names of phases that targets of such charts are about.
const (
	templated    = "template"
	firstUpgrade = "first upgrade"
	plan         = "plan"
	valueChanged = "one value changed"
)

// chartTargets are those of charts with CustomResourceDefinitions. A run can't take less than
// rendering.
var chartTargets = []target{
	{install, "seconds / helm 3", 1, 0, wallRatio},
	{firstUpgrade, "seconds / helm 3", 1, 0, wallRatio},
	{noop, "seconds / helm 3", 1, 0, wallRatio},
	{valueChanged, "seconds / helm 3", 1, 0, wallRatio},
	{noop, "seconds over template", 0.3, 0, overTemplate},
	{plan, "seconds over template", 0.2, 0, overTemplate},
}

func overTemplate(r *run, _, d measurement) float64 {
	return max(0, (d.wall - median(r.find(templated).deployer).wall).Seconds())
}

// measureCharts measures charts with CustomResourceDefinitions.
func measureCharts(ctx context.Context, o options) ([]run, error) {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	made, err := writeDefinitionsChart(dir)
	if err != nil {
		return nil, err
	}
	var runs []run
	for _, chart := range append(o.findCharts(os.Stdout), measuredChart{path: made, change: "changed=1"}) {
		name := filepath.Base(chart.path)
		r := run{title: "chart " + name + ", without its hooks; a plan is compared with helm upgrade --dry-run=server", times: max(o.repeat, 3), targets: chartTargets}
		for life := range r.times {
			programs, err := programs(o, dir, name)
			if err != nil {
				return nil, err
			}
			// Each life leaves the API server with more to collect, so which program comes first changes.
			if life%2 == 1 {
				slices.Reverse(programs)
			}
			// Definitions belong to the cluster, so one program has it to itself at a time.
			for _, p := range programs {
				if err := r.liveOnce(ctx, p, chart); err != nil {
					return nil, err
				}
			}
		}
		if err := r.report(os.Stdout); err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// findCharts returns where the charts are, and says which aren't there.
func (o *options) findCharts(w io.Writer) []measuredChart {
	var found []measuredChart
	var missing []string
	for _, chart := range chartsWithDefinitions {
		i := slices.IndexFunc(o.charts, func(dir string) bool {
			_, err := os.Stat(filepath.Join(dir, chart.name, "Chart.yaml"))
			return err == nil
		})
		if i < 0 {
			missing = append(missing, chart.name)
			continue
		}
		found = append(found, measuredChart{filepath.Join(o.charts[i], chart.name), chart.values, chart.change})
	}
	if len(missing) > 0 {
		// Standard output is the report; what it lacks is part of it.
		fmt.Fprintf(w, "skipped, because -charts %s doesn't have them: %s\n\n", strings.Join(o.charts, string(filepath.ListSeparator)), strings.Join(missing, ", "))
	}
	return found
}

// liveOnce installs a chart, upgrades it without a change, plans that, changes one value, and removes all of it. The
// first upgrade changes some charts: they have checksums of random values, which differ from what the install made.
// Hooks are left out: what they take is what their pods take.
func (r *run) liveOnce(ctx context.Context, p *program, chart measuredChart) error {
	if err := p.prepare(ctx); err != nil {
		return err
	}
	defer removeNamespace(ctx, p.namespace)
	before, err := definitions(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = removeDefinitions(ctx, before) }() // the cluster is the caller's to throw away
	of := func(words ...string) []string {
		return slices.Concat(words[:1], []string{"bench", chart.path, "--no-hooks"}, chart.values, words[1:])
	}
	dryRun := of("plan")
	if p.helm {
		dryRun = of("upgrade", "--dry-run=server")
	}
	steps := []struct {
		name string
		args []string
	}{
		{install, of("install", "--wait=false")},
		{templated, of("template")},
		{firstUpgrade, of("upgrade", "--wait=false")},
		{noop, of("upgrade", "--wait=false")},
		{plan, dryRun},
		{valueChanged, of("upgrade", "--wait=false", "--set", chart.change)},
	}
	for _, s := range steps {
		if r.find(s.name) == nil {
			r.rows = append(r.rows, row{phase: phase{name: s.name}})
		}
		if err := p.awaitIdle(ctx); err != nil {
			return err
		}
		m, err := p.run(ctx, s.args...)
		if err != nil {
			return err
		}
		r.find(s.name).add(p.helm, m)
	}
	_, err = p.run(ctx, "uninstall", "bench", "--no-hooks")
	return err
}

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// definitions are the names of the cluster's CustomResourceDefinitions.
func definitions(ctx context.Context) (map[string]bool, error) {
	config, _, err := connect()
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	list, err := client.Resource(crds).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing CustomResourceDefinitions: %w", err)
	}
	names := map[string]bool{}
	for _, item := range list.Items {
		names[item.Name] = true
	}
	return names, nil
}

// removeDefinitions deletes those that aren't in keep, and waits until they are gone.
func removeDefinitions(ctx context.Context, keep map[string]bool) error {
	config, _, err := connect()
	if err != nil {
		return err
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		now, err := definitions(ctx)
		if err != nil {
			return false, err
		}
		left := 0
		for name := range now {
			if keep[name] {
				continue
			}
			left++
			_ = client.Resource(crds).Delete(ctx, name, metav1.DeleteOptions{}) // looked at again
		}
		return left == 0, nil
	})
}
