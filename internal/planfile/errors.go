package planfile

import (
	"cmp"
	"fmt"
	"strings"

	"deployer/internal/program"
)

// A TamperedError says that a file isn't as it was written.
type TamperedError struct {
	Path    string // empty when not known
	Why     string
	Foreign bool // it is not a plan at all
}

func (e *TamperedError) Error() string {
	name := cmp.Or(e.Path, "the plan")
	if e.Foreign {
		return fmt.Sprintf("%s is not a plan: %s", name, e.Why)
	}
	return fmt.Sprintf("%s is refused: %s", name, e.Why)
}

// ChangedNothing is true: a plan is read first.
func (e *TamperedError) ChangedNothing() bool { return true }

// Hint says what to do about it.
func (e *TamperedError) Hint() string {
	if e.Foreign {
		return "plans are files made by " + program.Name + " plan --out FILE"
	}
	return "make a new plan and compare the digest that it prints: a plan is applied exactly as it was made, or not at all"
}

// A StaleError says that a plan no longer fits the cluster. Nothing was changed.
type StaleError struct {
	Differences []Difference // never empty
	Err         error        // why the operation can't be decided again; nil when it can
}

func (e *StaleError) Error() string {
	noun := "things have"
	if len(e.Differences) == 1 {
		noun = "thing has"
	}
	lines := []string{fmt.Sprintf("the plan no longer fits the cluster: %d %s changed since it was made", len(e.Differences), noun)}
	for _, d := range e.Differences {
		lines = append(lines, "  "+d.String())
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the reason why the operation can't be decided again, if there is one.
func (e *StaleError) Unwrap() error { return e.Err }

// Hint says what to do about it.
func (e *StaleError) Hint() string {
	return "nothing was changed; make a new plan and review it"
}

// A Difference is one thing that has changed since the plan was made.
type Difference struct {
	Subject string `json:"what"`              // Deployment/prod/web, or "release web"
	Path    string `json:"path,omitempty"`    // the field; empty for the whole
	Planned string `json:"planned,omitempty"` // in words
	Now     string `json:"now"`               // in words
}

func (d Difference) String() string {
	what := d.Subject
	if d.Path != "" {
		what += "  " + d.Path
	}
	if d.Planned == "" {
		return fmt.Sprintf("%s: %s", what, d.Now)
	}
	return fmt.Sprintf("%s: planned %s; %s", what, d.Planned, d.Now)
}

// A ContentMismatchError says that the rendered or stored content differs from the plan.
type ContentMismatchError struct {
	Mode  ContentMode
	Parts []string // that differ: "values", "Secret/db (web/templates/db.yaml)"
}

func (e *ContentMismatchError) Error() string {
	from := "the chart and values given now make"
	if e.Mode == ContentStored {
		from = "the stored revision has"
	}
	return fmt.Sprintf("%s something else than was planned: %s", from, strings.Join(e.Parts, ", "))
}

// ChangedNothing is true: contents are compared first.
func (e *ContentMismatchError) ChangedNothing() bool { return true }

// Hint says what to do about it.
func (e *ContentMismatchError) Hint() string {
	if e.Mode == ContentStored {
		return "make a new plan"
	}
	return "give the chart, values and rendering flags that the plan was made with;\n" +
		"a chart that renders random values differs every time: plan it with --encrypt-to;\n" +
		"one that looks up objects differs if these have changed: make a new plan"
}
