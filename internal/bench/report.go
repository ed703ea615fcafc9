package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// A run is what was measured with one release.
type run struct {
	title   string
	objects int // 0 when the release is another than that of many small objects
	times   int
	floor   time.Duration // 0 when it wasn't measured
	rows    []row
	targets []target
}

// find returns the row of a phase; nil when it wasn't measured.
func (r *run) find(phase string) *row {
	for i := range r.rows {
		if r.rows[i].phase.name == phase {
			return &r.rows[i]
		}
	}
	return nil
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
// It is all zero when there is none.
func median(list []measurement) measurement {
	if len(list) == 0 {
		return measurement{asked: requestCounts{requests: -1}}
	}
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
		asked: requestCounts{
			requests: int(of(func(m measurement) int64 { return int64(m.asked.requests) })),
			writes:   int(of(func(m measurement) int64 { return int64(m.asked.writes) })),
		},
	}
}

// report writes the table and what became of the targets.
func (r *run) report(w io.Writer) error {
	text := fmt.Sprintf("%s\nmedian of %d; ratio = deployer / helm 3\n", r.title, r.times)
	if r.floor > 0 {
		text += fmt.Sprintf("floor, bare dry runs and applies %d at once: %s seconds\n", atOnce, seconds(r.floor))
	}
	if _, err := fmt.Fprintln(w, text); err != nil {
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
	return r.reportTargets(w)
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
