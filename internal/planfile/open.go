package planfile

import (
	"context"
	"errors"
	"fmt"

	"filippo.io/age"

	"deployer/apply"
	"deployer/internal/deploy"
	"deployer/internal/program"
	"deployer/release"
)

// A Plan is a File that was verified and is ready to be carried out.
type Plan struct {
	*File
	key     key
	payload payload // zero if the content isn't in the file
}

// Open verifies that a file is as deployer wrote it, for this cluster and the current
// state of the release, and decrypts it. It only reads. If digest isn't empty, the file
// must have it. A file whose key doesn't come from the cluster needs one, because anybody
// could have made it.
//
// The error is a *StaleError if the release or the cluster has changed, a *TamperedError,
// or one with a hint that says what else has to be given.
func (f *File) Open(ctx context.Context, d *deploy.Deployer, digest string, with []age.Identity) (*Plan, error) {
	if digest != "" && digest != f.digest {
		return nil, &TamperedError{Why: fmt.Sprintf("its digest is %s, not the one that was asked for", f.digest)}
	}
	history, err := d.Releases.History(ctx, f.Release)
	if err != nil {
		return nil, err
	}
	known, err := readClusterUIDs(ctx, d.Cluster, f.Namespace, history.Latest())
	if err != nil {
		return nil, err
	}
	if differences := f.Cluster.differences(f, d.Cluster.Host(), known); len(differences) > 0 {
		return nil, &StaleError{Differences: differences}
	}
	if differences := f.recordDifferences(history.Revisions); len(differences) > 0 {
		return nil, &StaleError{Differences: differences}
	}
	p := &Plan{File: f}
	if err := p.authenticate(known, digest, with); err != nil {
		return nil, err
	}
	return p, nil
}

// authenticate decrypts encrypted content, checks that the file is unchanged, and unpacks
// the content.
func (p *Plan) authenticate(known clusterUIDs, digest string, with []age.Identity) error {
	var err error
	if p.Content.Mode == ContentEncrypted {
		data, err := decrypt(p.Content.Data, with)
		if err == nil {
			p.payload, err = unpack(data)
		}
		if err != nil {
			return err
		}
	}
	if p.key, err = p.Cluster.key(known, p.payload.Key); err != nil {
		return err
	}
	if !p.key.verifies(p.line, p.seal) {
		return &TamperedError{Why: "integrity check failed: the file was changed after it was planned"}
	}
	if !p.Cluster.isBoundToCluster() && digest == "" {
		return program.WithHint(errors.New("the plan isn't bound to a cluster, so anybody could have made it"),
			"give the digest that plan printed: "+program.Name+" apply --digest sha256:... FILE")
	}
	if p.Content.Mode == ContentPlain {
		if p.payload, err = unpack(p.Content.Data); err != nil {
			return err
		}
	}
	if p.payload.Record != nil {
		if p.payload.Record.Labels = p.Labels; p.payload.Labels != nil {
			p.payload.Record.Labels = p.payload.Labels
		}
	}
	return nil
}

// DecideFunc returns a function for deploy.Do that decides by the plan, as Plan.Decide does. Its first call opens the file, as
// Open does.
func (f *File) DecideFunc(digest string, identities []age.Identity, rerender deploy.DecideFunc) deploy.DecideFunc {
	var p *Plan
	return func(ctx context.Context, d *deploy.Deployer) (_ *deploy.Operation, err error) {
		if p == nil {
			if p, err = f.Open(ctx, d, digest, identities); err != nil {
				return nil, err
			}
		}
		return p.Decide(ctx, d, rerender)
	}
}

// Decide decides the planned operation again, by the current state of the cluster, and
// compares. It only reads. If the plan's mode is ContentRerendered, or render isn't nil, it calls render to
// make the operation from chart and values.
//
// The error is a *StaleError if anything has changed, or a *ContentMismatchError if the
// inputs aren't those of the plan.
func (p *Plan) Decide(ctx context.Context, d *deploy.Deployer, render deploy.DecideFunc) (*deploy.Operation, error) {
	op, err := p.decideAsPlanned(ctx, d, render)
	if op != nil && op.Next != nil {
		// Also after an error: other inputs may be the reason for it.
		if differences := p.recordDifferences(op.Basis.Revisions); len(differences) > 0 {
			return nil, &StaleError{Differences: differences}
		}
		if parts := differingParts(p.Parts, partsOf(p.key, op)); len(parts) > 0 {
			return nil, &ContentMismatchError{Mode: p.Content.Mode, Parts: parts}
		}
	}
	if err != nil {
		return nil, p.staleError(err)
	}
	if op == nil {
		return nil, &StaleError{Differences: []Difference{{Subject: "release " + p.Release, Now: "there is nothing left to do"}}}
	}
	if differences := p.differences(op); len(differences) > 0 {
		return nil, &StaleError{Differences: differences}
	}
	return op, nil
}

func (p *Plan) decideAsPlanned(ctx context.Context, d *deploy.Deployer, render deploy.DecideFunc) (*deploy.Operation, error) {
	switch {
	case p.Verb == deploy.Rollback:
		return d.Rollback(ctx, deploy.RollbackRequest{Name: p.Release, Revision: p.Target, Description: p.Description})
	case p.Verb == deploy.Uninstall:
		return d.Uninstall(ctx, deploy.UninstallRequest{Name: p.Release, KeepHistory: p.KeepHistory, Description: p.Description})
	case render != nil: // also of content that is in the file: then the chart has to come to that
		op, err := render(ctx, d)
		if op != nil && op.Next != nil {
			op.Next.Labels, op.Next.Info.Description = p.Labels, p.Description
		}
		return op, err
	}
	return d.DeployRendered(ctx, deploy.RenderedRequest{
		Verb: p.Verb, Next: p.payload.Record, CRDs: p.payload.CRDs, CreateNamespace: p.CreateNamespace,
	})
}

// staleError turns what the cluster refuses now, and did not when the plan was
// made, into a plan that no longer fits.
func (p *Plan) staleError(err error) error {
	stale := &StaleError{Err: err}
	rejected, isRejected := errors.AsType[*apply.RejectedError](err)
	gone, isGone := errors.AsType[*release.NotFoundError](err)
	switch {
	case isRejected:
		for _, r := range rejected.Rejections {
			stale.Differences = append(stale.Differences, Difference{Subject: r.ID.String(), Now: "it would be rejected now: " + r.Err.Error()})
		}
	case errors.As(err, new(*deploy.NoNamespaceError)):
		stale.Differences = []Difference{{Subject: "Namespace/" + p.Namespace, Now: "it no longer exists"}}
	case isGone:
		stale.Differences = []Difference{{Subject: "release " + p.Release, Now: gone.Error()}}
	default:
		return err
	}
	return stale
}
