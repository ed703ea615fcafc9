package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
)

// A section is a release that both programs live through several times: a namespace each,
// the steps, and the end of the namespace. They take turns in being first, because each
// life leaves the API server with more to collect.
type section struct {
	name    string
	title   string
	lives   int
	busy    int  // loops that keep processors busy beside it
	offline bool // nothing is asked of the cluster
	steps   []step
	targets []target
}

// A step is one command of each program. A step without a name is not measured.
type step struct {
	name     string
	deployer []string
	helm     []string
	far      bool // through a proxy that makes the API server look far away
	byHelm   bool // Helm carries it out for both
}

// both is a step in which both programs get the same arguments.
func both(name string, args ...string) step { return step{name: name, deployer: args, helm: args} }

// results are the measurements of a section by the names of its steps.
type results struct{ deployer, helm map[string][]measurement }

// The programs of a section, as their namespaces are called.
const (
	deployerProgram = "deployer"
	helmProgram     = "helm"
)

// measure lets both programs live through a section.
func (w *world) measure(ctx context.Context, s section) (results, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for range s.busy {
		if err := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done").Start(); err != nil {
			return results{}, err
		}
	}
	r := results{map[string][]measurement{}, map[string][]measurement{}}
	programs := []string{helmProgram, deployerProgram}
	for range s.lives {
		for _, program := range programs {
			into := r.deployer
			if program == helmProgram {
				into = r.helm
			}
			if err := w.live(ctx, s, program, into); err != nil {
				return results{}, err
			}
		}
		slices.Reverse(programs)
	}
	return r, nil
}

// live lets one program live through a section once. What it leaves is removed, definitions too:
// they belong to the cluster, so one program has it to itself at a time.
func (w *world) live(ctx context.Context, s section, program string, into map[string][]measurement) (err error) {
	namespace, err := w.createNamespace(ctx, program)
	if err != nil {
		return err
	}
	defer func() {
		if cleanupErr := w.cleanUp(ctx, namespace); err == nil {
			err = cleanupErr
		}
	}()
	for _, st := range s.steps {
		path, args := w.deployer, st.deployer
		if program == helmProgram || st.byHelm {
			path, args = w.helm, st.helm
		}
		if args == nil {
			continue
		}
		m, err := w.run(ctx, path, namespace, st, s.busy == 0 && !s.offline, args)
		if err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
		if st.name != "" {
			into[st.name] = append(into[st.name], m)
		}
	}
	return nil
}
