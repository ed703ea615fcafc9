package chart

import (
	"fmt"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
)

// ReuseMode says what an upgrade takes from the values of the previous revision.
// (helm.sh/helm/v3/pkg/action/upgrade.go, reuseValues)
type ReuseMode string

const (
	// ReuseDefault takes the previous user values when there are no new ones,
	// and nothing of them when there are.
	ReuseDefault ReuseMode = ""
	// ResetValues takes nothing.
	ResetValues ReuseMode = "--reset-values"
	// ReuseValues lays new values over the previous ones, and those over the
	// defaults of the previous chart instead of the new one's.
	ReuseValues ReuseMode = "--reuse-values"
	// ResetThenReuseValues lays new values over the previous ones, and those
	// over the defaults of the new chart.
	ResetThenReuseValues ReuseMode = "--reset-then-reuse-values"
)

// Previous is the revision whose values may be used again.
type Previous struct {
	Chart  *helmchart.Chart // nil when there was none
	Values map[string]any   // the user's values
}

// ReusedByDefault reports whether the previous user values are reused because neither new
// values nor a flag for reusing them are given.
func (p Previous) ReusedByDefault(mode ReuseMode, values map[string]any) bool {
	return mode == ReuseDefault && len(values) == 0 && len(p.Values) > 0
}

// WithPreviousValues returns what to render: the chart, with other defaults under
// ReuseValues, and the user's values, which are what the release records.
// It changes none of its arguments.
func (c *Chart) WithPreviousValues(mode ReuseMode, previous Previous, values map[string]any) (*Chart, map[string]any, error) {
	values, old := copyMap(values), copyMap(previous.Values)
	switch mode {
	case ResetValues:
		return c, values, nil
	case ResetThenReuseValues:
		return c, chartutil.CoalesceTables(values, old), nil
	case ReuseDefault:
		if previous.ReusedByDefault(mode, values) {
			values = old
		}
		return c, values, nil
	case ReuseValues:
		if previous.Chart == nil {
			return c, chartutil.CoalesceTables(values, old), nil
		}
		defaults, err := chartutil.CoalesceValues(previous.Chart, old)
		if err != nil {
			return nil, nil, fmt.Errorf("computing the values of the previous revision: %w", err)
		}
		out := *c
		out.Helm = copyChart(c.Helm)
		out.Helm.Values = copyMap(defaults)
		return &out, chartutil.CoalesceTables(values, old), nil
	}
	return nil, nil, fmt.Errorf("%q is not a way to reuse values", mode)
}
