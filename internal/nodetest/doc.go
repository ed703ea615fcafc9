// Package nodetest tests the deployer binary on real pods: a kubelet runs the
// containers, so exit codes, logs, probes and pull errors are what they are in
// production, and not what a simulation believes them to be.
//
// Its tests run under "devcluster run --real-node", which "make test-node" does,
// and are skipped elsewhere.
package nodetest
