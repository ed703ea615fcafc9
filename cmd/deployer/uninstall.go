package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/deploy"
	"deployer/release"
)

func uninstallCommand(e *env) *cli.Command {
	o := &operation{}
	var keep, ignoreMissing bool
	var description string
	cascade := "background"
	return &cli.Command{
		Name: "uninstall", Aliases: []string{"del", "delete", "un"}, Usage: "delete releases", ArgsUsage: "NAME...",
		Description: `1. runs pre-delete hooks
2. deletes every object that a revision of the release has made, unless it is
   annotated helm.sh/resource-policy: keep or belongs to somebody else by now
3. waits until they are gone, runs post-delete hooks
4. removes the records, or with --keep-history marks the latest uninstalled

Examples:
  deployer uninstall web -n prod
  deployer uninstall web api --keep-history

Exit codes: 0 done; 1 failed; 5 another run holds the release`,
		Flags: append(o.flags(e),
			&cli.BoolFlag{Name: "keep-history", Usage: "keep the records, so that the release can be rolled back", Destination: &keep},
			&cli.BoolFlag{Name: "ignore-not-found", Usage: "a release that isn't there is no failure", Destination: &ignoreMissing},
			&cli.StringFlag{Name: "description", Usage: "words for the history", Destination: &description},
			&cli.GenericFlag{Name: "cascade", Usage: "how dependents go: background, foreground or orphan", Value: newChoice(&cascade, "background", "foreground", "orphan")},
		),
		Action: action(func(ctx context.Context, c *cli.Context) error {
			names, err := arguments(c, 1, -1, "a release name")
			if err != nil {
				return err
			}
			o.settings.Apply.Propagation = propagations[cascade]
			var errs []error
			for _, name := range names {
				request := deploy.UninstallRequest{Name: name, KeepHistory: keep, Description: description}
				err := o.operate(ctx, e, func(ctx context.Context, d *deploy.Deployer) (*deploy.Operation, error) {
					return d.Uninstall(ctx, request)
				})
				var missing *release.NotFoundError
				if ignoreMissing && errors.As(err, &missing) {
					e.warn(fmt.Sprintf("release %s isn't there: nothing to uninstall", name))
					continue
				}
				if err != nil {
					e.tell(err)
					errs = append(errs, told{err})
				}
			}
			return errors.Join(errs...)
		}),
	}
}

// propagations are the words of --cascade.
// https://kubernetes.io/docs/concepts/architecture/garbage-collection/#cascading-deletion
var propagations = map[string]metav1.DeletionPropagation{
	"background": metav1.DeletePropagationBackground,
	"foreground": metav1.DeletePropagationForeground,
	"orphan":     metav1.DeletePropagationOrphan,
}
