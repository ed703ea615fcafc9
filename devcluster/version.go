package main

import (
	"fmt"
	"os"
	"path/filepath"

	componentversion "k8s.io/component-base/version"

	"deployer/devcluster/controlplane"
)

// versionVariable names the version of the control plane, such as v1.31.4, when it is to be
// another one than devcluster's own. kubernetes.sh has built it.
const versionVariable = "DEVCLUSTER_KUBERNETES"

// version is the version of the control plane.
func version() string {
	if other := os.Getenv(versionVariable); other != "" {
		return other
	}
	return componentversion.Get().GitVersion
}

// programOf finds the program that is a part of the cluster: this one, or for a control plane of
// another version the one beside it.
func programOf(role string) (string, error) {
	own, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program: %w", err)
	}
	if _, has := controlplane.Roles()[role]; !has || version() == componentversion.Get().GitVersion {
		return own, nil
	}
	other := filepath.Join(filepath.Dir(own), "kubernetes-"+version())
	if _, err := os.Stat(other); err != nil {
		return "", fmt.Errorf("%s=%s: %w; build it with: KUBERNETES=%s make devcluster", versionVariable, version(), err, version())
	}
	return other, nil
}
