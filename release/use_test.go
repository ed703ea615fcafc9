package release_test

import (
	"testing"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/internal/kube"
	"deployer/internal/kubetest"
	"deployer/release"
)

func TestMain(m *testing.M) { kubetest.Main(m, 8) }

// TestRevisionIsRecorded records a revision of a release as other packages do, and reads its history.
func TestRevisionIsRecorded(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	namespace := c.Namespace(t)
	ctx := t.Context()
	store := release.NewStore(kube.New(c.Config(), namespace), namespace)

	lock, err := store.Lock(ctx, "shop", release.LockOptions{Operation: "install"})
	if err != nil {
		t.Fatal(err)
	}
	history, err := store.History(ctx, "shop")
	if err != nil {
		t.Fatal(err)
	}
	record := &release.Record{Release: helmrelease.Release{
		Name: "shop", Namespace: namespace, Version: history.Next(),
		Info: &helmrelease.Info{Status: helmrelease.StatusPendingInstall},
	}}
	if err := lock.Begin(ctx, record, history.Identity()); err != nil {
		t.Fatal(err)
	}
	// Here the objects are applied.
	if err := lock.Finish(ctx, record, helmrelease.StatusDeployed, "Install complete"); err != nil {
		t.Fatal(err)
	}
	if err := lock.Unlock(ctx); err != nil {
		t.Fatal(err)
	}

	if history, err = store.History(ctx, "shop"); err != nil {
		t.Fatal(err)
	}
	if latest := history.Latest(); len(history.Revisions) != 1 || latest.Revision != 1 || latest.Status != helmrelease.StatusDeployed {
		t.Errorf("revisions = %+v, want revision 1, deployed", history.Revisions)
	}
}
