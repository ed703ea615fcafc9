package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// A run is what was measured with one number of objects.
type run struct {
	objects int
	times   int
	floor   time.Duration
	rows    []row
}

// A row is one phase: the measurements of Helm and of deployer.
type row struct {
	phase    phase
	helm     []measurement
	deployer []measurement
}

func (r *row) add(helm bool, m measurement) {
	if helm {
		r.helm = append(r.helm, m)
	} else {
		r.deployer = append(r.deployer, m)
	}
}

// median is, for each thing measured on its own, the one in the middle.
func median(list []measurement) measurement {
	of := func(value func(measurement) int64) int64 {
		values := make([]int64, len(list))
		for i, m := range list {
			values[i] = value(m)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return measurement{
		wall: time.Duration(of(func(m measurement) int64 { return int64(m.wall) })),
		cpu:  time.Duration(of(func(m measurement) int64 { return int64(m.cpu) })),
		peak: of(func(m measurement) int64 { return m.peak }),
		asked: tally{
			requests: int(of(func(m measurement) int64 { return int64(m.asked.requests) })),
			writes:   int(of(func(m measurement) int64 { return int64(m.asked.writes) })),
		},
	}
}

// report writes the table and what became of the targets.
func (r *run) report(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%d objects, median of %d; ratio = deployer / helm 3; a plan is compared with Helm's upgrade without a change\n"+
		"floor, bare dry runs and applies %d at once: %s seconds\n\n", r.objects, r.times, atOnce, seconds(r.floor))
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "\t\t\tseconds\t\t\tCPU seconds\t\t\tpeak MiB\t\t\trequests\t\n")
	fmt.Fprint(t, "\thelm\tdeployer\tratio\thelm\tdeployer\tratio\thelm\tdeployer\tratio\thelm\tdeployer\tratio\t\n")
	for _, row := range r.rows {
		a, b := median(row.helm), median(row.deployer)
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t\n", row.phase.name,
			seconds(a.wall), seconds(b.wall), shown(ratio(float64(a.wall), float64(b.wall))),
			seconds(a.cpu), seconds(b.cpu), shown(ratio(float64(a.cpu), float64(b.cpu))),
			a.peak>>20, b.peak>>20, shown(ratio(float64(a.peak), float64(b.peak))),
			count(a.asked.requests), count(b.asked.requests), shown(ratio(float64(a.asked.requests), float64(b.asked.requests))))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return r.judge(w)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()) }

// ratio is negative when it isn't known.
func ratio(of, to float64) float64 {
	if of <= 0 || to < 0 {
		return -1
	}
	return to / of
}

func shown(ratio float64) string {
	if ratio < 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", ratio)
}

func count(n int) string {
	if n < 0 {
		return "-"
	}
	return fmt.Sprint(n)
}
