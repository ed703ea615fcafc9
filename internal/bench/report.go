package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// A row is one phase: Helm's measurement and deployer's.
type row struct {
	phase    string
	measured [2]measurement
}

// report writes the table. A ratio is deployer's part of what Helm took.
func report(w io.Writer, n int, rows []row) error {
	if _, err := fmt.Fprintf(w, "%d objects; ratio = deployer / helm 3; a plan is compared with Helm's upgrade without a change\n\n", n); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "\t\t\tseconds\t\t\tCPU seconds\t\t\tpeak MiB\t\t\trequests\t\n")
	fmt.Fprint(t, "\thelm\tdeployer\tratio\thelm\tdeployer\tratio\thelm\tdeployer\tratio\thelm\tdeployer\tratio\t\n")
	for _, r := range rows {
		a, b := r.measured[0], r.measured[1]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t\n", r.phase,
			seconds(a.wall), seconds(b.wall), ratio(float64(a.wall), float64(b.wall)),
			seconds(a.cpu), seconds(b.cpu), ratio(float64(a.cpu), float64(b.cpu)),
			a.peak>>20, b.peak>>20, ratio(float64(a.peak), float64(b.peak)),
			count(a.requests), count(b.requests), ratio(float64(a.requests), float64(b.requests)))
	}
	return t.Flush()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()) }

func ratio(helm, deployer float64) string {
	if helm <= 0 || deployer < 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", deployer/helm)
}

func count(n int) string {
	if n < 0 {
		return "-"
	}
	return fmt.Sprint(n)
}
