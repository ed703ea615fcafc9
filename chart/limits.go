package chart

import (
	"context"
	"fmt"

	helmchart "helm.sh/helm/v3/pkg/chart"

	"deployer/chart/internal/limits"
)

// A LimitError says that rendering a chart took too much time or memory, or that its output is too large. It has the
// Chart, the Template, which is empty if it isn't known, and What, such as "took more than 1m0s".
type LimitError = limits.Error

// outputLimit is how many bytes a chart may render to. A release record can't hold more.
const outputLimit = 128 << 20

// renderWithinLimits calls work, which renders a chart, and returns an error when a limit is exceeded.
func renderWithinLimits(ctx context.Context, helm *helmchart.Chart, in Input, work func() (map[string]string, error)) (map[string]string, error) {
	var files map[string]string
	err := limits.Run(ctx, helm.Name(), in.endless, func() (err error) {
		files, err = work()
		return err
	})
	if err != nil {
		return nil, err // and work may still be writing files
	}
	return files, checkOutputSize(helm, files)
}

// checkOutputSize refuses more output than any release can have.
func checkOutputSize(helm *helmchart.Chart, files map[string]string) error {
	total, largest := 0, ""
	for name, text := range files {
		total += len(text)
		if len(text) > len(files[largest]) || len(text) == len(files[largest]) && name < largest {
			largest = name
		}
	}
	if total <= outputLimit {
		return nil
	}
	return &LimitError{Chart: helm.Name(), Template: largest,
		What: fmt.Sprintf("renders to %d MiB; the limit of all templates together is %d MiB", len(files[largest])>>20, outputLimit>>20)}
}
