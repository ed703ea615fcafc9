//go:build !unix

package kubetest

import "errors"

// holdShared can't work here; use DEPLOYER_TEST_KUBECONFIG.
func holdShared(string) error { return errors.ErrUnsupported }
