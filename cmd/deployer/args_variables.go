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
