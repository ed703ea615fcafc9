package main

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"k8s.io/klog/v2"
)

// A noOpFlag is a Helm flag that has no effect here. deployer accepts it for existing
// scripts and warns why it has no effect.
type noOpFlag struct {
	e       *env
	name    string
	why     string
	words   []string // the values it may have; nil is any, and one is needed
	welcome []string // values that ask for what happens anyway
	warned  bool
}

func newNoOpBool(e *env, name, why string) *noOpFlag {
	return &noOpFlag{e: e, name: name, why: why, words: []string{"true", "false"}, welcome: []string{"false"}}
}

// IsBoolFlag lets the flag stand without a value.
func (f *noOpFlag) IsBoolFlag() bool { return f.words != nil }

// Set warns of the flag, once.
func (f *noOpFlag) Set(value string) error {
	if f.words != nil {
		value = canonicalBool(value)
	}
	if f.words != nil && !slices.Contains(f.words, value) {
		return notOneOf(value, f.words)
	}
	if !f.warned && !slices.Contains(f.welcome, value) {
		f.warned = true
		f.e.warn(fmt.Sprintf("--%s has no effect: %s", f.name, f.why))
	}
	return nil
}

func (f *noOpFlag) String() string { return "" }

// noOpFlags are hidden flags without a value, each with the reason why it does
// nothing here.
func noOpFlags(e *env, names ...string) []cli.Flag {
	var out []cli.Flag
	for _, name := range names {
		f := newNoOpBool(e, name, noOpReasons[name])
		if name == "server-side" {
			f.words, f.welcome = append(f.words, "auto"), []string{"true", "auto"}
		}
		out = append(out, &cli.GenericFlag{Name: name, Hidden: true, Value: f})
	}
	return out
}

// noOpReasons say why a flag does nothing with any command that has it.
var noOpReasons = map[string]string{
	"recreate-pods":              "pods are replaced when their template changes; use kubectl rollout restart to force it",
	"cleanup-on-fail":            "the next release deletes what a failed release created",
	"disable-openapi-validation": "objects are validated by the API server; see --field-validation",
	"server-side":                "every object is applied by server-side apply",
	"force-conflicts":            "the chart wins by default; see --conflicts",
	"no-update":                  "only the index of a new or replaced repository is downloaded",
}

// templateNoOpFlags are the flags that template shares with install in Helm, where
// they do nothing either.
func templateNoOpFlags(e *env) []cli.Flag {
	const why = "template only renders"
	var out []cli.Flag
	for _, name := range []string{"atomic", "create-namespace", "disable-openapi-validation", "force", "hide-notes", "replace", "take-ownership", "wait", "wait-for-jobs"} {
		f := newNoOpBool(e, name, why)
		if name == "wait" {
			f.words = append(f.words, slices.Sorted(maps.Keys(waitSynonyms))...)
		}
		out = append(out, &cli.GenericFlag{Name: name, Hidden: true, Value: f})
	}
	return append(out,
		&cli.GenericFlag{Name: "description", Hidden: true, Value: &noOpFlag{e: e, name: "description", why: why}},
		&cli.GenericFlag{Name: "labels", Aliases: []string{"l"}, Hidden: true, Value: &noOpFlag{e: e, name: "labels", why: why}},
	)
}

// klogFlags are those of Kubernetes' logging, which every command of Helm has.
// (helm.sh/helm/v3/cmd/helm/flags.go, addKlogFlags)
func klogFlags(e *env) []cli.Flag {
	const why = "requests aren't logged, for they have the values of Secrets in them; see --debug"
	defined := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(defined)
	var out []cli.Flag
	defined.VisitAll(func(k *flag.Flag) {
		f := &noOpFlag{e: e, name: strings.ReplaceAll(k.Name, "_", "-"), why: why}
		if b, ok := k.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
			f.words = []string{"true", "false"}
		}
		out = append(out, &cli.GenericFlag{Name: f.name, Category: globalCategory, Hidden: true, Value: f})
	})
	return out
}
