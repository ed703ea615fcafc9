package main

import (
	"fmt"
	"os"
	"strconv"

	"deployer/track"
)

// trackingFlags are those about when an object is ready and when it has failed.
func trackingFlags(o *track.Options) []*flag {
	const group = "Tracking"
	return []*flag{
		{name: "readiness-rules", group: group, usage: "`FILE` with readiness rules for kinds; they take precedence over the built-in ones", is: rare | safe, value: readinessRules(o)},
		{name: "failures-allowed", group: group, usage: "crashes of a new container before it counts as failed (default 2)", is: rare | safe, value: crashes(&o.FailuresAllowed)},
		{name: "no-progress-timeout", group: group, usage: "how long an object may make no progress (default 10m, or a Deployment's progressDeadlineSeconds)", is: rare | safe, value: duration(&o.NoProgressTimeout)},
		{name: "tolerate-failures", group: group, usage: "wait until --timeout for failures that can still recover", is: rare | safe, value: toggle(&o.TolerateFailures)},
	}
}

// readinessRules is --readiness-rules.
func readinessRules(o *track.Options) value {
	return taken(func(path string) error {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if o.Rules, err = track.ParseRules(data); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
}

// crashes is a number that may be absent.
func crashes(to **int) value {
	v := taken(func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is not a number of crashes", s)
		}
		*to = &n
		return nil
	})
	v.kind = "N"
	return v
}
