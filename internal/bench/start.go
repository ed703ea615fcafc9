package main

import (
	"context"
	"os"
)

// measureStart measures what a program takes that does nothing: both have to start, and shells
// start them for each Tab.
func measureStart(ctx context.Context, o options) ([]run, error) {
	r := run{title: "starting: nothing is asked of the cluster", times: max(o.repeat, 15), targets: startTargets}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	programs, err := programs(o, dir, "start")
	if err != nil {
		return nil, err
	}
	phases := []step{
		{name: version, args: func(*program) []string { return []string{"version"} }},
		{name: completion, args: func(*program) []string { return []string{"completion", "bash"} }},
	}
	for _, phase := range phases {
		if err := r.measureInTurn(ctx, phase, programs); err != nil {
			return nil, err
		}
	}
	return []run{r}, r.report(os.Stdout)
}

// The names of phases that targets of a start are about.
const (
	version    = "version"
	completion = "completion"
)

var startTargets = []target{
	{version, "seconds / helm 3", 0.5, 0, wallRatio},
	{completion, "seconds / helm 3", 0.5, 0, wallRatio},
}

// A step is a phase that is one command of each program and leaves the release as it was.
type step struct {
	name string
	args func(*program) []string
}

// measureInTurn measures a step of all programs, in turn, so that what else the machine does meets
// all of them.
func (r *run) measureInTurn(ctx context.Context, s step, programs []*program) error {
	row := row{phase: phase{name: s.name}}
	for range r.times {
		for _, p := range programs {
			m, err := p.run(ctx, s.args(p)...)
			if err != nil {
				return err
			}
			row.add(p.helm, m)
		}
	}
	r.rows = append(r.rows, row)
	return nil
}
