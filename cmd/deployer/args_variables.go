package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
)

// dropUnreadableVariables removes Helm's variables with invalid values from a flag and warns
// once. Helm silently uses the default, for example for HELM_DEBUG=yes, and old jobs rely on
// that.
func (e *env) dropUnreadableVariables(f cli.Flag) {
	var check func(string) error
	switch f := f.(type) {
	case *cli.BoolFlag:
		check = func(s string) error { _, err := strconv.ParseBool(s); return err }
	case *cli.IntFlag:
		check = func(s string) error { _, err := strconv.Atoi(s); return err }
	case *cli.GenericFlag:
		if _, ok := f.Value.(*float32Value); !ok {
			return
		}
		check = new(float32Value).Set
	default:
		return
	}
	_, variables := nameAndVariables(f)
	*variables = slices.DeleteFunc(*variables, func(name string) bool {
		value := os.Getenv(name)
		if !strings.HasPrefix(name, "HELM_") || value == "" || check(value) == nil {
			return false
		}
		if !e.warnedVariables[name] {
			e.warnedVariables[name] = true
			e.warn(fmt.Sprintf("%s=%s is not a valid value and has no effect", name, value))
		}
		return true
	})
}

// groups is --kube-as-group. Only its variables separate groups by commas, as in Helm: the name of a group, such as that
// of a directory, may have commas in it. (helm.sh/helm/v3/pkg/cli/environment.go, envCSV)
func (e *env) groups() funcValue {
	return func(s string) error {
		groups := []string{s}
		if !e.call.hasFlag("kube-as-group") {
			groups = splitList(strings.Trim(s, ", "))
		}
		e.kube.AsGroups = append(e.kube.AsGroups, groups...)
		return nil
	}
}
