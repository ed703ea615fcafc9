// Package internal holds what the rooms share, and the test of who imports whom.
package internal
