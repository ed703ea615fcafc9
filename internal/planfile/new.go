package planfile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"filippo.io/age"

	"deployer/internal/deploy"
	"deployer/internal/program"
)

// Options say how a plan is saved.
type Options struct {
	Tool  string // deployer and its version
	Reuse string // how values of the base are used again
	// EncryptTo are the recipients who can carry out the plan from the file alone.
	// Without any, values and Secrets are left out of the file.
	EncryptTo []age.Recipient
	Shown     map[string]string // the plan as it is printed, by format: nothing confidential is in it
}

// Save writes the plan of an operation to a file that only its owner can read. It replaces an
// older file at once, but nothing else. It reads the UIDs that identify the cluster. It fails if
// confidential content has to be left out and there is no source for the key of its digests.
func Save(ctx context.Context, d *deploy.Deployer, op *deploy.Operation, path string, o Options) (*File, error) {
	uids, err := readClusterUIDs(ctx, d.Cluster, d.Namespace, op.Basis.Latest)
	if err != nil {
		return nil, err
	}
	f, err := newFile(op, o, origin{server: d.Cluster.Host(), uids: uids, policies: d.Settings.Policies, now: time.Now()})
	if err != nil {
		return nil, err
	}
	if err := f.write(path); err != nil {
		return nil, fmt.Errorf("writing the plan: %w", err)
	}
	return f, nil
}

// An origin is where, when and by which policies a plan is made.
type origin struct {
	server   string // address of the API server
	uids     clusterUIDs
	policies deploy.Policies
	now      time.Time
}

// newFile makes a File of an operation.
func newFile(op *deploy.Operation, o Options, from origin) (*File, error) {
	f := &File{
		Tool: o.Tool, Created: from.now.UTC().Truncate(time.Second), Verb: op.Verb, Release: op.Release, Namespace: op.Namespace,
		CreateNamespace: op.NewNamespace, Target: op.Target, KeepHistory: op.Removal.KeepHistory, Reuse: o.Reuse,
		Base: baseOf(op), Policies: from.policies, Shown: o.Shown,
	}
	// The file has the rendered output, so the plan renders nothing again.
	f.Policies.PartialDiscovery = f.Policies.PartialDiscovery || op.Rendered.ClusterIndependent
	if op.Next == nil {
		return nil, fmt.Errorf("there is nothing to save: release %s needs nothing", op.Release)
	}
	f.Revision, f.Labels = op.Next.Version, shownLabels(op)
	f.Description = op.Removal.Description
	if op.Verb != deploy.Uninstall && op.Next.Info != nil {
		f.Description = op.Next.Info.Description
	}
	k, err := f.setContent(op, o.EncryptTo, from)
	if err != nil {
		return nil, err
	}
	f.Objects, f.Parts = objectsOf(k, op), partsOf(k, op)
	return f, f.sign(k)
}

// shownLabels are the labels of the next record without confidential texts.
func shownLabels(op *deploy.Operation) map[string]string {
	labels := maps.Clone(op.Next.Labels)
	if op.Hidden != nil {
		for name, value := range labels {
			labels[name] = op.Hidden.Hide(value)
		}
	}
	return labels
}

// setContent sets the content, or leaves it out, and returns the key.
func (f *File) setContent(op *deploy.Operation, encryptTo []age.Recipient, from origin) (key, error) {
	switch {
	case op.Verb == deploy.Rollback || op.Verb == deploy.Uninstall:
		f.Content.Mode = ContentStored
	case len(encryptTo) > 0:
		f.Content.Mode = ContentEncrypted
	case hasConfidential(op):
		f.Content.Mode = ContentRerendered
	default:
		f.Content.Mode = ContentPlain
	}
	c := payload{Record: op.Next, CRDs: op.Rendered.CRDs}
	hidesLabels := !maps.Equal(f.Labels, op.Next.Labels)
	switch {
	case f.Content.Mode == ContentEncrypted:
		if c.Key = randomBytes(); hidesLabels {
			c.Labels = op.Next.Labels
		}
	case f.Content.Mode != ContentStored && hidesLabels:
		return nil, program.WithHint(errors.New("a label of the release record repeats a confidential value, which the plan would show"),
			"leave it out of --labels, or encrypt the plan with --encrypt-to")
	}
	var k key
	var err error
	if f.Cluster, k, err = newCluster(from.server, from.uids, c.Key); err != nil {
		return nil, err
	}
	f.Records = f.Cluster.recordsOf(op)
	if f.Content.Mode == ContentRerendered && !f.Cluster.isBoundToCluster() {
		return nil, program.WithHint(errors.New("the plan has Secrets or values, and this account can't read what protects their digests"),
			"encrypt the plan with --encrypt-to, or allow the account to get the namespace "+f.Namespace)
	}
	if f.Content.Mode != ContentPlain && f.Content.Mode != ContentEncrypted {
		return k, nil
	}
	if f.Content.Data, err = c.pack(); err == nil && f.Content.Mode == ContentEncrypted {
		f.Content.Data, err = encrypt(f.Content.Data, encryptTo)
	}
	return k, err
}
