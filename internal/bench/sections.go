package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// oneWay is what a far API server's answers take: 80 ms there and back, as on another continent.
const oneWay = 40 * time.Millisecond

// busyLoops keep the processors busy, as on a cluster that is shared.
const busyLoops = 4

// A section is a release that both programs live through several times.
type section struct {
	name    string // several may have one
	title   string
	lives   int
	busy    int  // loops that keep processors busy beside it
	offline bool // nothing is asked of the cluster
	waits   int  // of deployer alone, in one life; the rest of its steps isn't measured
	steps   []step
}

// A step is one command of each program, and what it may take. A step without a name is not measured.
type step struct {
	name     string
	deployer []string
	helm     []string
	far      bool     // through a proxy that makes the API server look far away
	byHelm   bool     // Helm carries it out for both
	from     *outcome // what its seconds are counted from; nil: its start
	targets  []target
}

// both is a step in which both programs get the same arguments.
func both(name string, args ...string) step { return step{name: name, deployer: args, helm: args} }

// install and upgrade wait for nothing, as Helm's do unless told.
func install(name, chart string, values ...string) step {
	return both(name, append([]string{"install", "bench", chart, "--wait=false"}, values...)...)
}

func upgrade(name, chart string, values ...string) step {
	return both(name, append([]string{"upgrade", "bench", chart, "--wait=false"}, values...)...)
}

// planOf is a plan, beside Helm's closest command.
func planOf(name, chart string, values ...string) step {
	return step{name: name, deployer: append([]string{"plan", "bench", chart}, values...), helm: append([]string{"upgrade", "bench", chart, "--dry-run=server"}, values...)}
}

// uninstall ends a life: what belongs to the cluster would be in the way of the other program.
var uninstall = both("uninstall", "uninstall", "bench", "--wait=false", "--no-hooks")

func (s step) within(targets ...target) step {
	s.targets = append(s.targets, targets...)
	return s
}

func (s step) fromFar() step {
	s.far = true
	return s
}

// sections returns what is measured, or of that what was asked for. Their charts are written into dir.
func (o options) sections(dir string) (all []section, err error) {
	chart := func(name string, files map[string]string) string {
		path := filepath.Join(dir, name)
		err = cmp.Or(err, writeChart(path, files))
		return path
	}
	all = append(all, section{name: "start", title: "starting: nothing is asked of the cluster", lives: 15, offline: true, steps: []step{
		both("version", "version").within(perHelm(wall, 0.5)),
		both("completion", "completion", "bash").within(perHelm(wall, 0.5)),
	}})
	for _, n := range o.sizes {
		objects := chart(fmt.Sprintf("objects-%d", n), objectsChart(n))
		all = append(all, sizes(objects, n), takeover(objects, n))
	}
	for _, c := range append(findCharts(), publicChart{path: chart("ten-definitions-of-400-kb", definitionsChart()), change: "changed=1"}) {
		all = append(all, c.life(), c.busy())
	}
	one := chart("one-workload", waitChart(1))
	all = append(all,
		generated(chart("random", secretsChart(func(int) string { return "{{ randAlphaNum 24 }}" })),
			chart("fixed", secretsChart(func(i int) string { return fmt.Sprintf("0123456789abcdefghij%04d", i) }))),
		far(chart("small", objectsChart(farObjects))),
		waiting(one, 1, "ready", ready, 0.3), waiting(chart("workloads", waitChart(200)), 200, "ready", ready, 0.3),
		waiting(one, 1, "deadline passed", failed, 1, "--set", "deadline=1,ready=false"),
		waiting(one, 1, "pods refused", failed, 16, "--set", "account=nobody")) // until a missing service account is certain, 15 s pass
	for _, name := range o.only {
		if !slices.ContainsFunc(all, func(s section) bool { return s.name == name }) {
			return nil, fmt.Errorf("%q is not a section", name)
		}
	}
	if len(o.only) > 0 {
		all = slices.DeleteFunc(all, func(s section) bool { return !slices.Contains(o.only, s.name) })
	}
	return all, err
}

// sizes is a release of n small objects. Targets of time are meant for a thousand: with a hundred, starting a
// program is most of what it does.
func sizes(chart string, n int) section {
	mostMemory := 121.0
	if n > 5000 {
		mostMemory = 350
	}
	installed := install("install", chart).within(perHelm(memory, 1.1), atMost(memory, mostMemory))
	unchanged := upgrade("no-op upgrade", chart).within(perHelm(cpu, 0.25), atMost(requests, 41), perHelm(memory, 1.1), atMost(memory, mostMemory))
	planned := planOf("plan", chart).within(atMost(memory, mostMemory))
	one := upgrade("one value changed", chart, "--set", "changed=1")
	if n >= 1000 {
		// Applying takes the API server longer than creating: docs/performance.md has the lower bound for an install.
		installed = installed.within(perHelm(wall, 0.5), perHelm(server, 1.6))
		unchanged, planned, one = unchanged.within(perHelm(wall, 0.05)), planned.within(perHelm(wall, 0.08)), one.within(perHelm(wall, 0.1))
	}
	s := section{name: "sizes", title: fmt.Sprintf("%d objects; a plan is compared with helm upgrade --dry-run=server", n), lives: 3, steps: []step{
		installed, unchanged, planned, one, upgrade("", chart),
		upgrade("a quarter changed", chart, "--set", fmt.Sprintf("changed=%d", n/4)), upgrade("", chart),
		upgrade("all changed", chart, "--set", fmt.Sprintf("changed=%d", n)).within(perHelm(memory, 1.1)), upgrade("", chart),
		uninstall,
	}}
	if n >= 5000 {
		s.lives = 1
	}
	return s
}

// takeover is the first upgrade of a release that Helm has installed, compared with Helm's own.
func takeover(chart string, n int) section {
	byHelm, first := install("", chart), upgrade("first upgrade", chart)
	byHelm.byHelm = true
	if n >= 1000 {
		first = first.within(perHelm(wall, 0.6), perHelm(server, 0.6))
	}
	return section{name: "takeover", title: fmt.Sprintf("the first upgrade of %d objects that Helm has installed", n), lives: 3, steps: []step{byHelm, first, uninstall}}
}

// A publicChart is a chart with many or large CustomResourceDefinitions. Its hooks are left out: they take what their pods
// take.
type publicChart struct {
	path       string
	values     []string // that it can't be installed without
	change     string   // a value that is part of one Deployment
	serverCost float64  // the target for the API server's processor time of one changed value, to Helm's; 0: none
}

func (c publicChart) title() string { return "chart " + filepath.Base(c.path) + ", without its hooks" }

// args are what all its steps have in common.
func (c publicChart) args() []string { return append([]string{"--no-hooks"}, c.values...) }

func (c publicChart) install() step { return install("install", c.path, c.args()...) }

// life is a life of the chart. The first upgrade changes some charts: they have checksums of random values, which differ
// from what the install made.
func (c publicChart) life() section {
	changed := upgrade("one value changed", c.path, append(c.args(), "--set", c.change)...).within(perHelm(wall, 1))
	if c.serverCost > 0 {
		changed = changed.within(perHelm(server, c.serverCost))
	}
	const template = "template" // a run can't take less than rendering
	return section{name: "charts", title: c.title(), lives: 3, steps: []step{
		c.install().within(perHelm(wall, 0.7), perHelm(server, 1.5)),
		both(template, append([]string{"template", "bench", c.path}, c.args()...)...),
		upgrade("first upgrade", c.path, c.args()...).within(perHelm(wall, 1)),
		upgrade("no-op upgrade", c.path, c.args()...).within(perHelm(wall, 1), overStep(template, 0.4)),
		planOf("plan", c.path, c.args()...).within(overStep(template, 0.4)),
		changed, uninstall,
	}}
}

// busy is an install on a cluster that has others to serve.
func (c publicChart) busy() section {
	title := fmt.Sprintf("%s, beside %d busy loops", c.title(), busyLoops)
	return section{name: "busy", title: title, lives: 3, busy: busyLoops, steps: []step{c.install().within(perHelm(wall, 1)), uninstall}}
}

// generated is a release whose random values deployer keeps, while Helm writes them anew, beside one without.
func generated(random, fixed string) section {
	const writtenOut = "no-op with the same written out"
	return section{name: "generated", title: fmt.Sprintf("%d Secrets with random values, which are kept", secrets), lives: 5, steps: []step{
		both("", "install", "random", random, "--wait=false"), both("", "install", "fixed", fixed, "--wait=false"),
		both("no-op with random values", "upgrade", "random", random, "--wait=false").within(perStep(writtenOut, 1.1)),
		both(writtenOut, "upgrade", "fixed", fixed, "--wait=false"),
	}}
}

// farObjects is the size of the release on a far API server.
const farObjects = 40

// far is a small release on an API server far away, each command after the same near it. The test of round trips counts
// them; here the distance is real.
func far(chart string) section {
	s := section{name: "far", title: fmt.Sprintf("%d objects, on an API server %s away; a plan is compared with helm upgrade --dry-run=server", farObjects, 2*oneWay), lives: 3}
	s.steps = []step{install("install", chart).fromFar().within(perHelm(wall, 0.5))}
	for _, st := range []step{
		upgrade("no-op upgrade", chart).within(roundTrips(11.5), perHelm(wall, 0.3)),
		planOf("plan", chart).within(roundTrips(6.5), perHelm(wall, 1)),
		both("status", "status", "bench").within(roundTrips(3.5)),
		both("history", "history", "bench").within(roundTrips(3.5)),
	} {
		nearby := st
		nearby.name, nearby.targets = near(st.name), nil
		s.steps = append(s.steps, nearby, st.fromFar())
	}
	return s
}

// near is the name of a step without the distance.
func near(step string) string { return step + ", near" }

// publicCharts are measured where a directory has them.
var publicCharts = []publicChart{
	{path: "kube-prometheus-stack", change: "kube-state-metrics.replicas=2", serverCost: 0.15},
	{path: "argo-cd", change: "server.replicas=2"},
	{path: "traefik", change: "deployment.replicas=2"},
	{path: "chaos-mesh", change: "controllerManager.replicaCount=2"},
	{path: "velero", values: []string{"--set", "backupsEnabled=false,snapshotsEnabled=false"}, change: "configuration.logLevel=debug"},
}

// findCharts returns the public charts that are there, and says which aren't.
func findCharts() (found []publicChart) {
	dirs := filepath.SplitList(cmp.Or(os.Getenv("DEPLOYER_TEST_CHARTS"), "../shared/charts"))
	for _, chart := range publicCharts {
		i := slices.IndexFunc(dirs, func(dir string) bool {
			_, err := os.Stat(filepath.Join(dir, chart.path, "Chart.yaml"))
			return err == nil
		})
		if i < 0 {
			fmt.Printf("skipped, because %v doesn't have it: chart %s\n", dirs, chart.path) // a part of the report
			continue
		}
		chart.path = filepath.Join(dirs[i], chart.path)
		found = append(found, chart)
	}
	return found
}
