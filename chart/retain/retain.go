// Package retain keeps what templates have generated, such as passwords and certificates, when a chart is deployed again.
//
// It is pure: it computes the manifest to deploy from two or more renderings of the same input (render.go), and the manifests that
// earlier revisions recorded. Decide takes these steps, and the files are best read in their order:
//
//  1. Read: each document that differs between renderings becomes objects, and each object a tree of fields, items and texts; the
//     texts are trees themselves: base64, YAML, JSON (documents.go, node.go, layer.go), or lines and blocks of lines (lines.go). What
//     is in a tree has a name if no other one beside it has that: its key, or what it begins with.
//  2. Compare: a walk through the renderings of an object finds what differs, the generated places, down to the words of a line
//     (compare.go, segments.go). Everything else comes from the chart and is deployed as it is.
//  3. Recognise: the same walk takes what is recorded at a place, only if the entry provably is the same one, level by level: the
//     same object, then what has the same name or everything fixed in it (identity.go), the same owner beside it (owners.go), and the
//     same comments (comments.go). Nothing goes by position, number or likeness.
//  4. Group: equal texts of one rendering are one value with many places (values.go). What is computed from another value (derive.go)
//     and what belongs to a certificate (certificates.go) goes with it.
//  5. Decide: a value is kept in all places or in none. It is renewed if in one of them it would come to another owner (moves.go), if a
//     certificate is due, or in any doubt. What is only in pod templates restarts the pods, so it is new each time, but for
//     checksums of what hasn't changed (checksums.go). An order that is generated stays (order.go).
//
// docs/generated-values.md has the rule in the words of users.
package retain

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
	Release    string // its name; a number in it is no position
	Namespace  string // of the release, for objects that don't name one
	Policy     Policy
	Rendered   Revision
	Rerendered []Revision // rendered again with the same input
	Earlier    []Revision // that may have been deployed, oldest first
	// Older returns the revisions before those in Earlier, as far as their records are kept. It is called where a value that is kept
	// comes to a new place, and may be nil.
	Older func() []Revision
	// SameInput says that the last successful revision was rendered from the same chart and values.
	SameInput bool
	// ChangedValues are the texts among the values that the last successful revision didn't have.
	ChangedValues []string
	// Checksum reports whether the chart computes the field with a key as a hash of rendered content, and of which templates
	// if that is known. It may be nil.
	Checksum func(key string) (templates []string, ok bool)
	// Encrypts says that templates encrypt something.
	Encrypts bool
	// Live reads an object of the cluster; nil, nil when it isn't there.
	Live func(kube.ID) (*unstructured.Unstructured, error)
	// Now returns the time. It is called if there are certificates.
	Now func() time.Time
	// NextUpgrade returns how long it may take until the release is upgraded again. It may be nil.
	NextUpgrade func(now time.Time) time.Duration
}

// A Value is a field with something generated in it. Its JSON is a promise, see docs/json.md.
type Value struct {
	ID   kube.ID `json:"-"`    // as the manifest names it: without a namespace where it names none
	Path string  `json:"path"` // data.password
	// Revision is the one whose record the value was taken from; 0 when it is new.
	Revision int `json:"kept_from_revision,omitempty"`
	// Reason says why it isn't kept; empty when nothing is recorded of it.
	Reason string `json:"reason,omitempty"`
}

// Kept reports whether the value is that of an earlier revision.
func (v Value) Kept() bool { return v.Revision > 0 }

// A Result is what to deploy.
type Result struct {
	Manifest string
	Hooks    []string
	Values   []Value // in the order of the manifest, then of the hooks
	Warnings []string
	// Unexplained says that it differs from an earlier revision in more than what is generated, as far as the renderings show.
	Unexplained bool

	cutsWord     bool     // a part of a word is generated, as far as the renderings show
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
	if len(d.objects) > 0 {
		d.unchanged = d.nothingFixedHasChanged()
	}
	for _, o := range d.objects {
		d.find(o)
	}
	d.decideValues()
	return d.finish()
}

// A decider is the state of one decision.
type decider struct {
	in             Input
	documents      []*document // of Rendered: manifest, then hooks
	objects        []*object   // of the documents that differ between renderings
	rerendered     []index
	earlier        []index // as in.Earlier
	older          []index // see olderRevisions
	unchanged      bool    // nothing but generated values has changed since the last successful revision
	places         []*place
	generatedNames []string           // names of objects that are generated
	values         []Value            // those without a place
	comparisons    map[[2]string]bool // see bcryptMatches
	now            time.Time
	result         Result // finish adds the manifest, hooks and values
}

// time is the present time.
func (d *decider) time() time.Time {
	if d.now.IsZero() {
		d.now = d.in.Now()
	}
	return d.now
}

// finish returns the result of the decision.
func (d *decider) finish() *Result {
	r := d.result
	r.Manifest, r.Hooks = d.finalTexts()
	r.Values = d.listValues()
	r.Unexplained = d.hasUnexplained()
	for _, p := range d.places {
		if p.kept && len(p.rendered()) >= minCopyLength && p.rendered() != p.final {
			r.replacements = append(r.replacements, p.rendered(), p.final)
		}
	}
	return &r
}

// finalTexts are the manifest and hooks with kept values.
func (d *decider) finalTexts() (manifest string, hooks []string) {
	next := 0
	rewrite := func(text string) string {
		return yamltext.RewriteDocuments(text, func(string) string {
			next++
			return d.documents[next-1].final()
		})
	}
	manifest = rewrite(d.in.Rendered.Manifest)
	for _, hook := range d.in.Rendered.Hooks {
		hooks = append(hooks, rewrite(hook))
	}
	return manifest, hooks
}

// hasUnexplained reports whether a document isn't in all earlier revisions, and has something else than the last successful one
// where all renderings are the same.
func (d *decider) hasUnexplained() bool {
	counts := countDocuments(d.in.Earlier)
	return slices.ContainsFunc(d.documents, func(doc *document) bool {
		isExplained := func(o *object) bool { return o.compared && o.fitsRecorded }
		return counts[doc.final()] < len(d.in.Earlier) && (len(doc.objects) == 0 || slices.ContainsFunc(doc.objects, func(o *object) bool { return !isExplained(o) }))
	})
}

// listValues lists the fields with generated parts. One with several parts is kept when
// all of them are.
func (d *decider) listValues() []Value {
	var out []Value
	at := map[Value]int{} // by ID and Path
	add := func(v Value) {
		field := Value{ID: v.ID, Path: v.Path}
		i, known := at[field]
		switch {
		case !known:
			at[field] = len(out)
			out = append(out, v)
		case out[i].Kept() && !v.Kept():
			out[i] = v
		}
	}
	for _, p := range d.places {
		revision := p.revisionIfKept()
		if p.reason != "" { // a part of it is new
			revision = 0
		}
		add(Value{ID: p.owner.id, Path: p.path, Revision: revision, Reason: p.reason})
	}
	for _, v := range d.values {
		add(v)
	}
	position := func(id kube.ID) int {
		return slices.IndexFunc(d.objects, func(o *object) bool { return o.id == id })
	}
	slices.SortStableFunc(out, func(a, b Value) int { return position(a.ID) - position(b.ID) })
	return out
}

func (p *place) revisionIfKept() int {
	if p.kept {
		return p.revision
	}
	return 0
}
