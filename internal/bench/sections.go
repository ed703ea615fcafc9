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

// The names of steps that targets are about.
const (
	install      = "install"
	firstUpgrade = "first upgrade"
	noop         = "no-op upgrade"
	oneChanged   = "one value changed"
	allChanged   = "all changed"
	plan         = "plan"
	template     = "template"
)

// near is the name of a step without the distance.
func near(step string) string { return step + ", near" }

var sectionNames = []string{"start", "sizes", "takeover", "charts", "busy", "generated", "far"}

// sections returns what is measured, in the order of sectionNames, of which only those that were asked for. Their
// charts are written into dir.
func (o options) sections(dir string) (all []section, err error) {
	chart := func(name string, files map[string]string) string {
		path := filepath.Join(dir, name)
		err = cmp.Or(err, writeChart(path, files))
		return path
	}
	for _, name := range sectionNames {
		if len(o.only) > 0 && !slices.Contains(o.only, name) {
			continue
		}
		switch name {
		case "start":
			all = append(all, section{
				name: name, title: "starting: nothing is asked of the cluster", lives: 15, offline: true,
				steps:   []step{both("version", "version"), both("completion", "completion", "bash")},
				targets: []target{perHelm("version", wall, 0.5), perHelm("completion", wall, 0.5)},
			})
		case "sizes", "takeover":
			for _, n := range o.sizes {
				section := map[string]func(string, int) section{"sizes": sizes, "takeover": takeover}[name]
				all = append(all, section(chart(fmt.Sprintf("objects-%d", n), objectsChart(n)), n))
			}
		case "charts", "busy":
			definitions := publicChart{path: chart("ten-definitions-of-400-kb", definitionsChart()), change: "changed=1"}
			for _, c := range append(o.findCharts(), definitions) {
				all = append(all, c.section(name))
			}
		case "generated":
			all = append(all, generated(
				chart("random", secretsChart(func(int) string { return "{{ randAlphaNum 24 }}" })),
				chart("fixed", secretsChart(func(i int) string { return fmt.Sprintf("0123456789abcdefghij%04d", i) })),
			))
		case "far":
			all = append(all, far(chart("small", objectsChart(farObjects))))
		}
	}
	for i := range all {
		all[i].lives = cmp.Or(o.lives, all[i].lives)
	}
	return all, err
}

// upgrade is an upgrade that waits for nothing, as Helm's does unless told.
func upgrade(name, chart string, values ...string) step {
	return both(name, append([]string{"upgrade", "bench", chart, "--wait=false"}, values...)...)
}

// planOf is a plan, beside Helm's closest command.
func planOf(name, chart string, values ...string) step {
	return step{name: name, deployer: append([]string{"plan", "bench", chart}, values...), helm: append([]string{"upgrade", "bench", chart, "--dry-run=server"}, values...)}
}

// uninstalled ends a life.
func uninstalled(flags ...string) step {
	return both("uninstall", append([]string{"uninstall", "bench", "--wait=false"}, flags...)...)
}

// sizes is a release of n small objects. Targets of time are meant for a thousand: with a hundred, starting a
// program is most of what it does.
func sizes(chart string, n int) section {
	changed := func(name string, count int) []step {
		return []step{upgrade(name, chart, "--set", fmt.Sprintf("changed=%d", count)), upgrade("", chart)}
	}
	s := section{name: "sizes", title: fmt.Sprintf("%d objects; a plan is compared with helm upgrade --dry-run=server", n), lives: 3}
	s.steps = slices.Concat(
		[]step{both(install, "install", "bench", chart, "--wait=false"), upgrade(noop, chart), planOf(plan, chart)},
		changed(oneChanged, 1), changed("a quarter changed", n/4), changed(allChanged, n),
	)
	s.steps = append(s.steps, uninstalled())
	s.targets = []target{
		perHelm(noop, cpu, 0.25), atMost(noop, requests, 41),
		perHelm(install, memory, 1.1), perHelm(noop, memory, 1.1), perHelm(allChanged, memory, 1.1),
	}
	if n >= 1000 {
		// Applying takes the API server longer than creating: docs/performance.md says what an install can't take less than.
		s.targets = append(s.targets, perHelm(install, wall, 0.5), perHelm(install, server, 1.6), perHelm(noop, wall, 0.05), perHelm(oneChanged, wall, 0.1), perHelm(plan, wall, 0.08))
	}
	if n >= 5000 {
		s.lives = 1
	}
	if n <= 5000 {
		s.targets = append(s.targets, atMost(install, memory, 121), atMost(noop, memory, 121), atMost(plan, memory, 121))
	} else {
		s.targets = append(s.targets, atMost(install, memory, 350), atMost(noop, memory, 350), atMost(plan, memory, 350))
	}
	return s
}

// takeover is the first upgrade of a release that Helm has installed, compared with Helm's own.
func takeover(chart string, n int) section {
	installed := both("", "install", "bench", chart, "--wait=false")
	installed.byHelm = true
	s := section{name: "takeover", title: fmt.Sprintf("the first upgrade of %d objects that Helm has installed", n), lives: 3, steps: []step{installed, upgrade(firstUpgrade, chart), uninstalled()}}
	if n >= 1000 {
		s.targets = []target{perHelm(firstUpgrade, wall, 0.6), perHelm(firstUpgrade, server, 0.6)}
	}
	return s
}

// busyLoops keep the processors busy, as on a cluster that is shared.
const busyLoops = 4

// A publicChart is a chart with many or large CustomResourceDefinitions.
type publicChart struct {
	path       string
	values     []string // that it can't be installed without
	change     string   // a value that is part of one Deployment
	serverCost float64  // the target for the API server's processor time of one changed value, to Helm's; 0: none
}

// section is a life of the chart without its hooks: they take what their pods take. The first upgrade changes some
// charts: they have checksums of random values, which differ from what the install made.
func (c publicChart) section(name string) section {
	values := append([]string{"--no-hooks"}, c.values...)
	s := section{name: name, title: "chart " + filepath.Base(c.path) + ", without its hooks", lives: 3}
	installed := both(install, append([]string{"install", "bench", c.path, "--wait=false"}, values...)...)
	if name == "busy" {
		s.busy = busyLoops
		s.title += fmt.Sprintf(", beside %d busy loops", busyLoops)
		s.steps, s.targets = []step{installed, uninstalled("--no-hooks")}, []target{perHelm(install, wall, 1)}
		return s
	}
	s.steps = []step{
		installed, both(template, append([]string{"template", "bench", c.path}, values...)...), upgrade(firstUpgrade, c.path, values...),
		upgrade(noop, c.path, values...), planOf(plan, c.path, values...), upgrade(oneChanged, c.path, append(values, "--set", c.change)...),
		uninstalled("--no-hooks"), // cluster-wide objects would be in the way of the other program
	}
	s.targets = []target{
		perHelm(install, wall, 0.7), perHelm(install, server, 1.5), perHelm(firstUpgrade, wall, 1), perHelm(noop, wall, 1), perHelm(oneChanged, wall, 1),
		overStep(noop, template, 0.4), overStep(plan, template, 0.4), // a run can't take less than rendering
	}
	if c.serverCost > 0 {
		s.targets = append(s.targets, perHelm(oneChanged, server, c.serverCost))
	}
	return s
}

// generated is what keeping generated values costs: an upgrade without a change of a chart with random passwords
// beside the same passwords written out. Helm writes the random ones anew.
func generated(random, fixed string) section {
	const withRandom, writtenOut = "no-op with random values", "no-op with the same written out"
	s := section{name: "generated", title: fmt.Sprintf("%d Secrets with random values, which are kept", secrets), lives: 5}
	s.steps = []step{
		both("", "install", "random", random, "--wait=false"), both("", "install", "fixed", fixed, "--wait=false"),
		both(withRandom, "upgrade", "random", random, "--wait=false"), both(writtenOut, "upgrade", "fixed", fixed, "--wait=false"),
	}
	s.targets = []target{perStep(withRandom, writtenOut, 1.1)}
	return s
}

// farObjects is the size of the release on a far API server.
const farObjects = 40

// far is a small release on an API server far away. The test of round trips counts them; here the distance is real.
func far(chart string) section {
	s := section{name: "far", title: fmt.Sprintf("%d objects, on an API server %s away; a plan is compared with helm upgrade --dry-run=server", farObjects, 2*oneWay), lives: 3}
	for _, st := range []step{
		both(install, "install", "bench", chart, "--wait=false"), upgrade(noop, chart), planOf(plan, chart),
		both("status", "status", "bench"), both("history", "history", "bench"),
	} {
		if st.name != install {
			nearby := st
			nearby.name = near(st.name)
			s.steps = append(s.steps, nearby)
		}
		st.far = true
		s.steps = append(s.steps, st)
	}
	s.targets = []target{
		roundTrips(noop, 11.5), roundTrips(plan, 6.5), roundTrips("status", 3.5), roundTrips("history", 3.5),
		perHelm(install, wall, 0.5), perHelm(noop, wall, 0.3), perHelm(plan, wall, 1),
	}
	return s
}

// publicCharts are measured where a directory has them.
var publicCharts = []publicChart{
	{path: "kube-prometheus-stack", change: "kube-state-metrics.replicas=2", serverCost: 0.15},
	{path: "argo-cd", change: "server.replicas=2"},
	{path: "traefik", change: "deployment.replicas=2"},
	{path: "chaos-mesh", change: "controllerManager.replicaCount=2"},
	{path: "velero", values: []string{"--set", "backupsEnabled=false,snapshotsEnabled=false"}, change: "configuration.logLevel=debug"},
}

// findCharts returns the public charts that are there, and says which aren't.
func (o options) findCharts() (found []publicChart) {
	for _, chart := range publicCharts {
		i := slices.IndexFunc(o.charts, func(dir string) bool {
			_, err := os.Stat(filepath.Join(dir, chart.path, "Chart.yaml"))
			return err == nil
		})
		if i < 0 {
			fmt.Printf("skipped, because %v doesn't have it: chart %s\n", o.charts, chart.path) // a part of the report
			continue
		}
		chart.path = filepath.Join(o.charts[i], chart.path)
		found = append(found, chart)
	}
	return found
}
