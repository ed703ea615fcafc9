package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// A target is what a number must not exceed. Those of time are meant for a
// thousand objects: with a hundred, starting a program is most of what it does.
type target struct {
	phase string // empty means all phases, of which the worst counts; one that wasn't measured has no target
	what  string
	most  float64
	from  int // objects
	value func(r *run, helm, deployer measurement) float64
}

// sizeTargets are those of releases of many small objects.
var sizeTargets = []target{
	{install, "seconds / helm 3", 1.1, 1000, wallRatio},
	{install, "seconds / floor", 1.4, 1000, floorRatio},
	{install, "seconds / floor", 1.25, 5000, floorRatio},
	{noop, "seconds / helm 3", 0.08, 1000, wallRatio},
	{noop, "CPU / helm 3", 0.25, 0, func(_ *run, h, d measurement) float64 { return ratio(float64(h.cpu), float64(d.cpu)) }},
	{noop, "requests", 40, 0, func(_ *run, _, d measurement) float64 { return float64(d.asked.requests) }},
	{noop, "writes of objects", 0, 0, func(_ *run, _, d measurement) float64 { return float64(d.asked.writes) }},
	{oneChanged, "seconds / helm 3", 0.10, 1000, wallRatio},
	{planOfNoop, "seconds / helm 3", 0.08, 1000, wallRatio},
	{"", "peak memory / helm 3", 1, 0, memoryRatio},
	{"", "peak memory / helm 3", 0.85, 5000, memoryRatio},
	{install, "peak MiB", 110, 0, peakMiB},
	{noop, "peak MiB", 110, 0, peakMiB},
	{planOfNoop, "peak MiB", 110, 0, peakMiB},
}

func memoryRatio(_ *run, h, d measurement) float64 { return ratio(float64(h.peak), float64(d.peak)) }

// peakMiB is 0 for releases that are larger than those that the target is meant for.
func peakMiB(r *run, _, d measurement) float64 {
	if r.objects > 5000 {
		return 0
	}
	return float64(d.peak) / (1 << 20)
}

func floorRatio(r *run, _, d measurement) float64 { return ratio(float64(r.floor), float64(d.wall)) }

func wallRatio(_ *run, h, d measurement) float64 { return ratio(float64(h.wall), float64(d.wall)) }

// reportTargets writes which targets are hit.
func (r *run) reportTargets(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "\ntarget\t\tat most\tmeasured\t\n")
	for _, target := range r.targets {
		if value, phase, ok := r.worst(target); ok {
			fmt.Fprintf(t, "%s\t%s\t%g\t%s\t%s\n", phase, target.what, target.most, shown(value), verdict(value, target.most))
		}
	}
	fmt.Fprintln(t)
	return t.Flush()
}

// missed counts the targets that aren't hit.
func (r *run) missed() int {
	count := 0
	for _, target := range r.targets {
		if value, _, ok := r.worst(target); ok && value > target.most {
			count++
		}
	}
	return count
}

// worst is the largest value that a target is about, and its phase. It is negative when it isn't
// known. ok is false when the target isn't meant for this run.
func (r *run) worst(target target) (value float64, phase string, ok bool) {
	value, phase = -1, target.phase
	if r.objects < target.from {
		return value, phase, false
	}
	for _, row := range r.rows {
		if target.phase != "" && target.phase != row.phase.name {
			continue
		}
		ok = true
		if v := target.value(r, median(row.helm), median(row.deployer)); v > value {
			value, phase = v, row.phase.name
		}
	}
	return value, phase, ok
}

func verdict(value, most float64) string {
	switch {
	case value < 0:
		return "not known"
	case value > most:
		return "miss"
	}
	return "hit"
}

// mostGrowth is what the processor time for one object may be with the most
// objects, as against a smaller number, whose share in starting a program is the
// larger: more would mean that something is done for each pair of them.
const mostGrowth = 1.25

// reportGrowth compares what an object costs in small and in large releases.
func reportGrowth(w io.Writer, runs []run) error {
	if len(runs) < 2 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "CPU milliseconds of deployer for each object")
	for _, r := range runs {
		fmt.Fprintf(t, "\tof %d", r.objects)
	}
	fmt.Fprintln(t, "\tlast / first\t")
	for i, row := range runs[0].rows {
		fmt.Fprint(t, row.phase.name)
		var each []float64
		for _, r := range runs {
			each = append(each, float64(median(r.rows[i].deployer).cpu)/float64(time.Millisecond)/float64(r.objects))
			fmt.Fprintf(t, "\t%.3f", each[len(each)-1])
		}
		growth := ratio(each[0], each[len(each)-1])
		fmt.Fprintf(t, "\t%s\t%s\n", shown(growth), verdict(growth, mostGrowth))
	}
	return t.Flush()
}
