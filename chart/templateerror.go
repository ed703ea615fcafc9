package chart

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"

	"deployer/internal/lazyregexp"
)

// TemplateError says that a template can't be evaluated.
type TemplateError struct {
	Chart  string
	At     string   // web/templates/_helpers.tpl:5:3, where it went wrong; empty when the engine doesn't say
	Kind   string   // "parse error" or "execution error" where Helm says so, else empty
	Expr   string   // the expression there; may be empty
	Reason string   // what went wrong
	Via    []string // places that led to At, outermost first
	Err    error    // the error of Helm's engine
}

func (e *TemplateError) Error() string {
	var out strings.Builder
	fmt.Fprintf(&out, "rendering chart %s: ", e.Chart)
	switch {
	case e.Kind != "":
		fmt.Fprintf(&out, "%s at (%s): ", e.Kind, e.At) // Helm's words
	case e.At != "":
		out.WriteString(e.At + ": ")
	}
	if e.Expr != "" {
		fmt.Fprintf(&out, "in <%s>: ", e.Expr)
	}
	out.WriteString(e.Reason)
	if len(e.Via) > 0 {
		fmt.Fprintf(&out, " (from %s)", strings.Join(e.Via, ", "))
	}
	return out.String()
}

func (e *TemplateError) Unwrap() error { return e.Err }

var (
	// One link of the chain that text/template writes.
	executingLink = lazyregexp.New(`^(?:template: )?(\S+:\d+(?::\d+)?): executing "(?:[^"\\]|\\.)*" at <(.*?)>: `)
	callingLink   = lazyregexp.New(`^error calling (?:include|tpl): `)
	// Helm's way of telling parse errors and the words of required and fail.
	locatedError = lazyregexp.New(`^((?:parse|execution) error) at \((\S+?)\): (?s:(.*))$`)
	tplLink      = lazyregexp.New(`^(?s:error during tpl function execution for ".*?"): `)
)

// templateError finds the innermost position in the chain of an engine error, and the
// positions that led to it.
func templateError(helm *helmchart.Chart, err error) error {
	if errors.As(err, new(*LimitError)) || errors.Is(err, context.Canceled) {
		return err
	}
	e := &TemplateError{Chart: helm.Name(), Reason: err.Error(), Err: err}
	if m := locatedError().FindStringSubmatch(e.Reason); m != nil {
		e.Kind, e.At, e.Reason = m[1], m[2], m[3]
		return e
	}
	for {
		rest := tplLink().ReplaceAllString(callingLink().ReplaceAllString(e.Reason, ""), "")
		m := executingLink().FindStringSubmatch(rest)
		if m == nil {
			return e
		}
		if e.At != "" && !slices.Contains(e.Via, e.At) {
			e.Via = append(e.Via, e.At)
		}
		e.At, e.Expr, e.Reason = m[1], m[2], rest[len(m[0]):]
	}
}
