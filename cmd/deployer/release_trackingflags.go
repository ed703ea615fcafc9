package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/urfave/cli/v2"

	"deployer/track"
)

// trackingFlags are those about when an object is ready and when it has failed.
func trackingFlags(o *track.Options) []cli.Flag {
	const group = "Tracking"
	return []cli.Flag{
		&cli.GenericFlag{Name: "readiness-rules", Category: group, Usage: "`FILE` with readiness rules for kinds; they take precedence over the built-in ones", Value: readinessRules(o)},
		&cli.GenericFlag{Name: "failures-allowed", Category: group, Usage: "crashes of a new container before it counts as failed (default 2)", Value: &optionalNumber{&o.FailuresAllowed}},
		&cli.DurationFlag{Name: "no-progress-timeout", Category: group, Usage: "how long an object may make no progress (default 10m, or a Deployment's progressDeadlineSeconds)", Destination: &o.NoProgressTimeout},
		&cli.BoolFlag{Name: "tolerate-failures", Category: group, Usage: "wait until --timeout for failures that can still recover", Destination: &o.TolerateFailures},
	}
}

// readinessRules is --readiness-rules.
func readinessRules(o *track.Options) funcValue {
	return func(path string) error {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if o.Rules, err = track.ParseRules(data); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	}
}

// optionalNumber is a number that may be absent.
type optionalNumber struct{ value **int }

func (a *optionalNumber) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return fmt.Errorf("%q is not a number of crashes", s)
	}
	*a.value = &n
	return nil
}

func (a *optionalNumber) String() string { return "" }
