// Package generated keeps what templates have generated, such as passwords and
// certificates, when a chart is deployed again.
//
// It is pure: it computes the manifest to deploy from a rendering of a chart, repeated
// renderings, and the manifests that earlier revisions recorded. Text that differs between
// renderings of the same input is generated; all other text comes from the chart and is
// always deployed. docs/generated-values.md has the rules.
package generated

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/chart/internal/yamltext"
	"deployer/internal/kube"
)

// Policy says what becomes of generated values that an earlier revision recorded.
type Policy string

// The policies. Empty means Keep.
const (
	Keep  Policy = "keep"
	Renew Policy = "renew" // as Helm does
)

// A Revision is the rendered output of one revision.
type Revision struct {
	Number int
	// Successful says that it was deployed completely. Values of other revisions count only if
	// the live object has them.
	Successful bool
	Manifest   string
	Hooks      []string // the text of each
}

// Input is all that a decision depends on.
type Input struct {
	Namespace  string // of the release, for objects that don't name one
	Policy     Policy
	Rendered   Revision
	Rerendered []Revision // rendered again, see chart.Rerenderer
	// MakesHashes says that templates make hashes.
	MakesHashes bool
	// WithHashInputs was rendered with content in place of hashes; nil when that wasn't
	// asked for, see Result.WantsHashInputs.
	WithHashInputs *Revision
	Earlier        []Revision // that may have been deployed, oldest first
	// Live reads an object of the cluster; nil, nil when it isn't there.
	Live func(kube.ID) (*unstructured.Unstructured, error)
	Now  time.Time
}

// A Value is a field with something generated in it.
type Value struct {
	ID   kube.ID // as the manifest names it: without a namespace where it names none
	Path string  // data.password
	// Revision is the one whose record the value was taken from; 0 when it is new.
	Revision int
	// Reason says why it isn't kept; empty when nothing is recorded of it.
	Reason string
}

// Kept reports whether the value is that of an earlier revision.
func (v Value) Kept() bool { return v.Revision > 0 }

// InPodAnnotation reports whether the field is an annotation of a pod template, which restarts pods when it changes.
func (v Value) InPodAnnotation() bool {
	return strings.Contains("."+v.Path, ".template.metadata.annotations.")
}

// A Result is what to deploy.
type Result struct {
	Manifest string
	Hooks    []string
	Values   []Value // in the order of the manifest, then of the hooks
	Warnings []string
	// Unsure says that another rendering may show that equal text was equal by chance.
	Unsure bool
	// WantsHashInputs says that Input.WithHashInputs is needed for checksums.
	WantsHashInputs bool

	replacements []string // fresh text, kept text, …
}

// Replace replaces fresh values by kept ones in text that was rendered together with the
// manifest, such as notes.
func (r *Result) Replace(text string) string {
	return strings.NewReplacer(r.replacements...).Replace(text)
}

// Decide finds what is generated and keeps what can be kept.
func Decide(in Input) *Result {
	d := &decider{in: in}
	d.readInputs()
	for _, o := range d.objects {
		d.findGenerated(o)
	}
	d.decideSets()
	d.decideChecksums()
	return d.finish()
}

// A decider is the state of one decision.
type decider struct {
	in             Input
	documents      []*document // of Rendered: manifest, then hooks
	objects        []*object   // of the documents that differ between renderings
	rerendered     []index
	earlier        []index // as in.Earlier
	withHashInputs index
	tokens         []*token
	generatedNames []string // names of objects that are generated
	values         []Value  // those without a token
	result         Result   // finish adds the manifest, hooks and values
}

// finish returns the result of the decision.
func (d *decider) finish() *Result {
	r := d.result
	next := 0
	rewrite := func(manifest string) string {
		return yamltext.RewriteDocuments(manifest, func(string) string {
			next++
			return d.documents[next-1].rewritten()
		})
	}
	r.Manifest = rewrite(d.in.Rendered.Manifest)
	for _, hook := range d.in.Rendered.Hooks {
		r.Hooks = append(r.Hooks, rewrite(hook))
	}
	r.Values = d.listValues()
	for _, t := range d.tokens {
		if t.kept && len(t.rendered) >= minCopyLength && t.rendered != t.final {
			r.replacements = append(r.replacements, t.rendered, t.final)
		}
	}
	return &r
}

// listValues lists the fields with generated parts. One with several parts is kept when
// all of them are.
func (d *decider) listValues() []Value {
	var out []Value
	at := map[Value]int{} // by ID and Path
	for _, t := range d.tokens {
		field := Value{ID: t.owner.id, Path: t.fieldPath}
		v := Value{ID: field.ID, Path: field.Path, Revision: t.revision, Reason: t.reason}
		i, known := at[field]
		switch {
		case !known:
			at[field] = len(out)
			out = append(out, v)
		case out[i].Kept() && !v.Kept():
			out[i] = v
		}
	}
	out = append(out, d.values...)
	slices.SortStableFunc(out, func(a, b Value) int { return d.position(a.ID) - d.position(b.ID) })
	return out
}

func (d *decider) position(id kube.ID) int {
	return slices.IndexFunc(d.objects, func(o *object) bool { return o.id == id })
}
