package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/deploy"
	"deployer/internal/view/textfmt"
	"deployer/release"
)

func uninstallCommand(e *env) *command {
	o := &operationFlags{}
	removal := &uninstallOptions{}
	flags, unread := o.flags(e), (&operationFlags{}).flags(e)
	for i, f := range flags {
		if f.is.has(applying) {
			f = unread[i] // what it sets, nobody reads
			f.why, f.welcome, f.env = "an uninstall only deletes", []string{"false"}, ""
			flags[i] = f
		}
		if f.name == "wait" {
			f.usage = "wait until the objects are gone; --wait=false waits for hooks only"
		}
	}
	return &command{
		name: "uninstall", is: changes | reports, also: "del delete un", usage: "uninstall releases and delete their objects", args: "NAME...", takes: "a release name",
		steps: `1. Runs the pre-delete hooks.
2. Deletes every object that a revision of the release created, except objects
   that are annotated helm.sh/resource-policy: keep or now belong to another
   release.
3. Waits until they are gone, and runs the post-delete hooks.
4. Deletes the release records, or with --keep-history marks the latest one as
   uninstalled.`,
		examples: `deployer uninstall web -n prod
deployer uninstall web api --keep-history`,
		codes: "0 done; 1 failed; 3 rejected, nothing changed; 5 another run holds the release; 130, 143 stopped by a signal",
		flags: slices.Concat(flags, removal.flags(""), []*flag{
			storedHooksFlag(&o.settings),
			{name: "ignore-not-found", usage: "succeed if the release doesn't exist", is: usual | safe, value: toggle(&o.options.IgnoreMissing)},
			descriptionFlag(&removal.request.Description),
		}),
		action: func(ctx context.Context, names []string) error {
			if len(names) > 1 && (e.resultFile != "" || e.junitFile != "") {
				return usagef("--result-file and --report-junit need exactly one release, not %d", len(names))
			}
			var errs []error
			for i, name := range names {
				if stopped := context.Cause(ctx); stopped != nil {
					err := fmt.Errorf("%w; not uninstalled: %s", stopped, strings.Join(names[i:], ", "))
					e.printError(err)
					errs = append(errs, alreadyShown{err})
					break
				}
				err := o.uninstall(ctx, e, name, removal)
				if o.isPlanning() && o.options.IgnoreMissing && errors.As(err, new(*release.NotFoundError)) {
					e.warn(deploy.NothingToUninstall(name))
					continue
				}
				if err != nil {
					e.printError(err)
					errs = append(errs, alreadyShown{err})
				}
			}
			return errors.Join(errs...)
		},
	}
}

// uninstall uninstalls a release, or shows how it would.
func (o *operationFlags) uninstall(ctx context.Context, e *env, name string, r *uninstallOptions) error {
	o.settings.Propagation = metav1.DeletionPropagation(textfmt.Capitalized(r.cascade)) // Kubernetes' word
	r.request.Name = name
	return o.operate(ctx, e, name, func(ctx context.Context, d *deploy.Deployer) (*deploy.Operation, error) {
		return d.Uninstall(ctx, r.request)
	})
}

// An uninstallOptions is how uninstall removes, and plan --uninstall shows it.
type uninstallOptions struct {
	request deploy.UninstallRequest
	cascade string
}

func (r *uninstallOptions) flags(when string) []*flag {
	r.cascade = "background"
	level := usual
	if when != "" {
		level = rare
	}
	return []*flag{
		{name: "keep-history", usage: when + "keep the release records, so that you can roll back", is: level | safe, value: toggle(&r.request.KeepHistory)},
		{name: "cascade", usage: when + "how to delete dependents: background, foreground or orphan", is: level | safe, value: choice(&r.cascade, "background", "foreground", "orphan")},
	}
}
