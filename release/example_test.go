package release_test

import (
	"context"
	"fmt"
	"log"
	"testing"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/internal/kube"
	"deployer/internal/kubetest"
	"deployer/release"
)

func TestMain(m *testing.M) { kubetest.Main(m, 8) }

// Record a revision of a release, and read its history.
func Example() {
	config, namespace, remove := kubetest.Example()
	defer remove()
	ctx := context.Background()
	store := release.NewStore(kube.New(config, namespace), namespace)

	lock, err := store.Lock(ctx, "shop", release.LockOptions{Operation: "install"})
	if err != nil {
		log.Fatal(err)
	}
	history, err := store.History(ctx, "shop")
	if err != nil {
		log.Fatal(err)
	}
	record := &release.Record{Release: helmrelease.Release{
		Name: "shop", Namespace: namespace, Version: history.Next(),
		Info: &helmrelease.Info{Status: helmrelease.StatusPendingInstall},
	}}
	if err := lock.Begin(ctx, record, history.Identity()); err != nil {
		log.Fatal(err)
	}
	// Here the objects are applied.
	if err := lock.Finish(ctx, record, helmrelease.StatusDeployed, "Install complete"); err != nil {
		log.Fatal(err)
	}
	if err := lock.Unlock(ctx); err != nil {
		log.Fatal(err)
	}

	if history, err = store.History(ctx, "shop"); err != nil {
		log.Fatal(err)
	}
	for _, revision := range history.Revisions {
		fmt.Println(revision.Revision, revision.Status)
	}
	// Output:
	// 1 deployed
}
