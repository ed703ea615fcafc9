// Package program has the hints that errors give, and knows how they name the program, which runs
// under two names.
package program

import (
	"strings"
	"sync/atomic"
)

// What stands in hints, and in other texts with a command line to type, for programs that people call. The letters around
// each are from Unicode's private use area: nothing else that is shown has this text in it, so that names and words of
// others are never taken for it. A text with OnCluster or Kubectl is a hint, or a command of a suggestion.
const (
	Name      = "\uf6d0deployer\uf6d1"         // the name that the program was called by
	OnCluster = "\uf6d0deployer cluster\uf6d1" // that, and the flags that choose the cluster
	Kubectl   = "\uf6d0kubectl\uf6d1"          // kubectl, and its flags for the same cluster
)

// A Call is how the program was called. Its commands are called alike. It is safe for concurrent use; nil has no name.
type Call struct {
	name    string
	cluster atomic.Pointer[clusterFlags]
}

type clusterFlags struct{ own, kubectl string }

// CalledAs returns a call by a name that has chosen no cluster.
func CalledAs(name string) *Call {
	c := &Call{name: name}
	c.ChooseCluster("", "")
	return c
}

// ChooseCluster sets the flags that choose the cluster: ours, and those of kubectl. Each begins with a blank, or is empty.
func (c *Call) ChooseCluster(own, kubectl string) { c.cluster.Store(&clusterFlags{own, kubectl}) }

// Insert puts the programs that people call into a text.
func (c *Call) Insert(text string) string {
	if !strings.Contains(text, Name[:3]) {
		return text
	}
	name, flags := "", &clusterFlags{}
	if c != nil {
		name, flags = c.name, c.cluster.Load()
	}
	return strings.NewReplacer(Name, name, OnCluster, name+flags.own, Kubectl, "kubectl"+flags.kubectl).Replace(text)
}

// WithHint adds to an error the next step for the user, which is shown below it: its method Hint
// returns it. err must not be nil.
func WithHint(err error, hint string) error { return &hintedError{err, hint} }

type hintedError struct {
	error
	hint string
}

func (h *hintedError) Hint() string  { return h.hint }
func (h *hintedError) Unwrap() error { return h.error }
