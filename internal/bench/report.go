package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// A target is what a number of a step must not exceed.
type target struct {
	what  string // the number
	most  float64
	value func(r results, step string) float64
}

// perHelm is a target for the ratio of deployer's figure to Helm's in the same step.
func perHelm(figure int, most float64) target {
	return target{figureNames[figure] + " / helm 3", most, func(r results, step string) float64 {
		return ratio(median(r[helm][step])[figure], median(r[deployer][step])[figure])
	}}
}

// atMost is a target for deployer's figure itself.
func atMost(figure int, most float64) target {
	return target{figureNames[figure], most, func(r results, step string) float64 { return median(r[deployer][step])[figure] }}
}

// perStep is a target for the ratio of seconds to those of another step.
func perStep(other string, most float64) target {
	return target{"seconds / " + other, most, func(r results, step string) float64 {
		return ratio(median(r[deployer][other])[wall], median(r[deployer][step])[wall])
	}}
}

// overStep is a target for the seconds beyond those of another step.
func overStep(other string, most float64) target {
	return target{"seconds over " + other, most, func(r results, step string) float64 {
		return max(0, median(r[deployer][step])[wall]-median(r[deployer][other])[wall])
	}}
}

// roundTrips is a target for how many round trips a step takes longer than near the server, the fastest of
// each, since all else that the machine does only adds.
func roundTrips(most float64) target {
	return target{"round trips", most, func(r results, step string) float64 {
		fastest := func(list []measurement) float64 {
			return slices.MinFunc(list, func(a, b measurement) int { return cmp.Compare(a[wall], b[wall]) })[wall]
		}
		return max(0, fastest(r[deployer][step])-fastest(r[deployer][near(step)])) / (2 * oneWay.Seconds())
	}}
}

// median is, for each figure on its own, the one in the middle; all -1 when nothing was measured.
func median(list []measurement) (m measurement) {
	for f := range m {
		values := []float64{-1}
		for _, measured := range list {
			values = append(values, measured[f])
		}
		slices.Sort(values)
		m[f] = values[(len(values))/2]
	}
	return m
}

// ratio is negative when it isn't known.
func ratio(of, to float64) float64 {
	if of <= 0 || to < 0 {
		return -1
	}
	return to / of
}

// report writes the tables of a section and returns how many targets were missed.
func report(w io.Writer, s section, r results) (missed int, err error) {
	fmt.Fprintf(w, "%s\nmedian of %d; ratio = deployer / helm 3\n\n", s.title, cmp.Or(s.waits, s.lives))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, name := range figureNames {
		fmt.Fprintf(t, "\t\t\t%s", name)
	}
	fmt.Fprint(t, "\t\n")
	for range figureNames {
		fmt.Fprint(t, "\thelm\tdeployer\tratio")
	}
	fmt.Fprint(t, "\t\n")
	for i, st := range s.steps {
		if st.name == "" || i > 0 && st.name == s.steps[i-1].name {
			continue
		}
		fmt.Fprint(t, st.name)
		h, d := median(r[helm][st.name]), median(r[deployer][st.name])
		for f := range h {
			fmt.Fprintf(t, "\t%s\t%s\t%s", shown(h[f]), shown(d[f]), shown(ratio(h[f], d[f])))
		}
		fmt.Fprint(t, "\t\n")
	}
	if err := t.Flush(); err != nil {
		return 0, err
	}
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "\ntarget\t\tat most\tis\t\n")
	for _, st := range s.steps {
		for _, target := range st.targets {
			value, verdict := target.value(r, st.name), "hit"
			switch {
			case value < 0:
				verdict = "not known"
			case value > target.most:
				verdict = "miss"
				missed++
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", st.name, target.what, shown(target.most), shown(value), verdict)
		}
	}
	fmt.Fprintln(t)
	return missed, t.Flush()
}

func shown(value float64) string {
	switch {
	case value < 0:
		return "-"
	case value >= 100:
		return fmt.Sprintf("%.0f", value)
	}
	return fmt.Sprintf("%.2f", value)
}
