package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// An API server 80 ms away, as on another continent.
const (
	oneWay     = 40 * time.Millisecond
	roundTrip  = 2 * oneWay
	farObjects = 40
)

// nearAs is the name of the same phase without the distance.
func nearAs(phase string) string { return phase + ", near" }

// The names of phases that targets of the distance are about.
const (
	status  = "status"
	history = "history"
)

// farTargets are about round trips: by how many of them a run takes longer than near the server, the
// fastest of each, since all else that the machine does only adds. The test of round trips counts them; here
// the distance is real.
var farTargets = []target{
	{noop, "round trips", 11.5, 0, roundTrips(noop)},
	{plan, "round trips", 6.5, 0, roundTrips(plan)},
	{status, "round trips", 3.5, 0, roundTrips(status)},
	{history, "round trips", 3.5, 0, roundTrips(history)},
	{install, "seconds / helm 3", 0.5, 0, wallRatio},
	{noop, "seconds / helm 3", 0.3, 0, wallRatio},
	{plan, "seconds / helm 3", 1, 0, wallRatio},
}

func roundTrips(phase string) func(*run, measurement, measurement) float64 {
	return func(r *run, _, _ measurement) float64 {
		near, far := fastest(r.find(nearAs(phase)).deployer), fastest(r.find(phase).deployer)
		return max(0, float64(far-near)/float64(roundTrip))
	}
}

func fastest(list []measurement) time.Duration {
	return slices.MinFunc(list, func(a, b measurement) int { return cmp.Compare(a.wall, b.wall) }).wall
}

// measureFar measures a small release through a proxy that delays all that is sent.
func measureFar(ctx context.Context, o options) ([]run, error) {
	r := run{title: fmt.Sprintf("%d objects, on an API server %s away; a plan is compared with helm upgrade --dry-run=server", farObjects, roundTrip), times: max(o.repeat, 3), targets: farTargets}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	chart, err := writeChart(dir, farObjects)
	if err != nil {
		return nil, err
	}
	config, err := farConfig(ctx, dir)
	if err != nil {
		return nil, err
	}
	programs, err := programs(o, dir, "far")
	if err != nil {
		return nil, err
	}
	for _, p := range programs {
		if err := p.prepare(ctx); err != nil {
			return nil, err
		}
		defer removeNamespace(ctx, p.namespace)
		p.config = config
	}
	if err := r.measureInstall(ctx, programs, chart); err != nil {
		return nil, err
	}
	for _, s := range farSteps(chart) {
		for _, p := range programs {
			p.config = ""
		}
		if err := r.measureInTurn(ctx, step{nearAs(s.name), s.args}, programs); err != nil {
			return nil, err
		}
		for _, p := range programs {
			p.config = config
		}
		if err := r.measureInTurn(ctx, s, programs); err != nil {
			return nil, err
		}
	}
	return []run{r}, r.report(os.Stdout)
}

// measureInstall installs the chart once with each program.
func (r *run) measureInstall(ctx context.Context, programs []*program, chart string) error {
	times := r.times
	defer func() { r.times = times }()
	r.times = 1
	return r.measureInTurn(ctx, step{install, func(*program) []string { return []string{"install", "bench", chart, "--wait=false"} }}, programs)
}

func farSteps(chart string) []step {
	same := func(args ...string) func(*program) []string { return func(*program) []string { return args } }
	return []step{
		{noop, same("upgrade", "bench", chart, "--wait=false")},
		{plan, func(p *program) []string {
			if p.helm {
				return []string{"upgrade", "bench", chart, "--dry-run=server"}
			}
			return []string{"plan", "bench", chart}
		}},
		{status, same("status", "bench")},
		{history, same("history", "bench")},
	}
}

// farConfig starts a proxy and writes a KUBECONFIG that leads through it.
func farConfig(ctx context.Context, dir string) (string, error) {
	config, err := clientcmd.LoadFromFile(os.Getenv("KUBECONFIG"))
	if err != nil {
		return "", fmt.Errorf("the cluster of KUBECONFIG: %w", err)
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil || config.Clusters[current.Cluster] == nil {
		return "", fmt.Errorf("KUBECONFIG has no current context")
	}
	cluster := config.Clusters[current.Cluster]
	server, err := url.Parse(cluster.Server)
	if err != nil {
		return "", fmt.Errorf("the server of KUBECONFIG: %w", err)
	}
	proxy, err := startDelayProxy(ctx, server.Host, oneWay)
	if err != nil {
		return "", err
	}
	if cluster.TLSServerName == "" {
		cluster.TLSServerName = server.Hostname()
	}
	server.Host = proxy.address()
	cluster.Server = server.String()
	path := filepath.Join(dir, "far.kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}
