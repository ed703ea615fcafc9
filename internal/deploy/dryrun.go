package deploy

import (
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
)

// MarkAsDryRun gives the record of an install or upgrade that is only shown the
// status, times and words that Helm gives it in a dry run.
// (helm.sh/helm/v3/pkg/action/install.go and upgrade.go)
func (o *Operation) MarkAsDryRun(now time.Time) {
	info := o.Next.Info
	info.Description, info.LastDeployed = "Dry run complete", helmtime.Time{Time: now}
	info.Status = helmrelease.StatusPendingUpgrade
	if o.Verb == Install {
		info.Status = helmrelease.StatusPendingInstall
	}
	if info.FirstDeployed.IsZero() {
		info.FirstDeployed = info.LastDeployed
	}
}
