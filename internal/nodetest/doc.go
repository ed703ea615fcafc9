// Package nodetest tests the deployer binary on real pods: a kubelet runs the
// containers, so exit codes, logs, probes and pull errors are what they are in
// production, and not what a simulation believes them to be.
//
// Its tests run beside scripts/realnode.sh, which "make test-node" starts,
// and are skipped elsewhere.
package nodetest
