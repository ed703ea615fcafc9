// Package e2e tests the deployer binary, as people run it, against a real API
// server and beside the real Helm 3.
package e2e
