package main

import (
	"context"

	"deployer/internal/deploy"
	"deployer/internal/view/inspection"
	"deployer/internal/view/output"
	"deployer/internal/view/page"
)

func explainCommand(e *env) *command {
	var settings deploy.Settings
	return &command{
		name: "explain", is: reads | beyondHelm, usage: "show who owns each field of an object, and where its value comes from", args: "NAME KIND/NAME [FIELD]",
		steps: `For each live field of an object it shows the field manager that owns it and
since when, the revision and template that set its value, and what the next
upgrade with the same chart and values would do to it. It writes nothing.

Write the kind as for kubectl, and KIND/NAMESPACE/NAME for an object in another
namespace. FIELD is the path of a field, or of all fields below it; name the
items of a list by their keys or by their index.`,
		examples: `deployer explain web deployment/web -n prod
deployer explain web deploy/web .spec.replicas
deployer explain web Deployment/web '.spec.template.spec.containers[name=app].image'
deployer explain web configmap/conf 'metadata.labels["app.kubernetes.io/name"]' -o json`,
		codes: "0 done; 1 failed, or there is no such release, object or field",
		flags: []*flag{conflictsFlag(&settings, ""), revertFlag(&settings, ""), outputFlag(e)},
		action: withFormat(e, 2, 3, "a release name and KIND/NAME", func(ctx context.Context, args []string, format output.Format) error {
			d, err := e.newDeployer(settings)
			if err != nil {
				return err
			}
			field := ""
			if len(args) == 3 {
				field = args[2]
			}
			found, err := d.Explain(ctx, args[0], args[1], field)
			if err != nil {
				return err
			}
			return inspection.ShowExplanation(e.streams, found, page.Options{Format: format, Colour: e.colour})
		}),
	}
}
