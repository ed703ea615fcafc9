//go:build race

package kubetest

// Race says that the tests are built with the race detector, which makes them
// several times slower: what computes for long is tested without it.
const Race = true
