package chart

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
	"sigs.k8s.io/yaml"

	"deployer/internal/annotation"
)

// hookEvents are the values of the annotation helm.sh/hook.
// https://helm.sh/docs/topics/charts_hooks/
var hookEvents = map[string]helmrelease.HookEvent{
	"pre-install":   helmrelease.HookPreInstall,
	"post-install":  helmrelease.HookPostInstall,
	"pre-delete":    helmrelease.HookPreDelete,
	"post-delete":   helmrelease.HookPostDelete,
	"pre-upgrade":   helmrelease.HookPreUpgrade,
	"post-upgrade":  helmrelease.HookPostUpgrade,
	"pre-rollback":  helmrelease.HookPreRollback,
	"post-rollback": helmrelease.HookPostRollback,
	"test":          helmrelease.HookTest,
	"test-success":  helmrelease.HookTest, // Helm 2's word
}

// A renderedDocument is one rendered document with its parsed head, before sorting.
type renderedDocument struct {
	Document
	head releaseutil.SimpleHead
}

// sortIntoManifest sorts rendered files into the manifest and hooks, in Helm's order. The
// error lists all documents that can't be read.
func (r *Rendered) sortIntoManifest(helm *helmchart.Chart, files map[string]string, crds bool) error {
	var main, hooks []renderedDocument
	var problems []error
	for _, name := range manifestFiles(files) {
		pieces, err := splitFile(name, files[name])
		problems = append(problems, err)
		for _, p := range pieces {
			if _, ok := p.annotation(helmrelease.HookAnnotation); ok {
				hooks = append(hooks, p)
			} else {
				main = append(main, p)
			}
		}
	}
	if err := errors.Join(problems...); err != nil {
		for _, name := range manifestFiles(files) {
			r.Manifest += Document{Source: name, Text: files[name]}.String()
		}
		return err
	}
	if crds {
		for _, crd := range helm.CRDObjects() {
			r.Documents = append(r.Documents, Document{Source: crd.Filename, Text: string(crd.File.Data)})
		}
	}
	for _, p := range sortByInstallOrder(main) {
		r.Documents = append(r.Documents, p.Document)
	}
	for _, p := range sortByInstallOrder(hooks) {
		r.addHook(p)
	}
	r.Manifest = joinDocuments(r.Documents)
	return nil
}

func joinDocuments(documents []Document) string {
	var out strings.Builder
	for _, d := range documents {
		out.WriteString(d.String())
	}
	return out.String()
}

// String is the document as Helm writes it.
func (d Document) String() string { return fmt.Sprintf("---\n# Source: %s\n%s\n", d.Source, d.Text) }

// manifestFiles lists the files that are neither partials nor blank, sorted.
func manifestFiles(files map[string]string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(name string) bool {
		return strings.HasPrefix(path.Base(name), "_") || strings.TrimSpace(files[name]) == ""
	})
}

// splitFile splits a rendered file into documents where Helm does.
func splitFile(name, text string) ([]renderedDocument, error) {
	var out []renderedDocument
	var problems []error
	at := 0
	for _, document := range splitDocuments(text) {
		start := at + max(strings.Index(text[at:], document), 0)
		at = start + len(document)
		var head releaseutil.SimpleHead
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			line := strings.Count(text[:start], "\n")
			problems = append(problems, &DocumentError{Source: name, Err: headError(err, line)})
			continue
		}
		out = append(out, renderedDocument{Document{Source: name, Text: document}, head})
	}
	return out, errors.Join(problems...)
}

// splitDocuments splits a text as Helm does.
func splitDocuments(text string) []string {
	var out []string
	parts := releaseutil.SplitManifests(text)
	for i := range len(parts) {
		out = append(out, parts[fmt.Sprintf("manifest-%d", i)])
	}
	return out
}

// headError says what is wrong with a document whose head can't be read.
func headError(err error, line int) error {
	typed, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case !ok:
		return shiftedYAMLError(err, line)
	case typed.Field == "":
		return fmt.Errorf("the document at line %d of what it rendered is not an object: %s", line+1, typed.Value)
	}
	return fmt.Errorf("the document at line %d of what it rendered has %s where Helm takes %s: %s",
		line+1, typed.Value, typed.Type, strings.TrimPrefix(typed.Field, "."))
}

func (p renderedDocument) annotation(name string) (string, bool) {
	if p.head.Metadata == nil {
		return "", false
	}
	value, ok := p.head.Metadata.Annotations[name]
	return value, ok
}

// sortByInstallOrder sorts documents in Helm's install order, in which Helm stores the
// manifest. Unknown kinds come last, by name.
func sortByInstallOrder(pieces []renderedDocument) []renderedDocument {
	rank := map[string]int{} // negative: an unknown kind has 0
	for i, kind := range releaseutil.InstallOrder {
		rank[kind] = i - len(releaseutil.InstallOrder)
	}
	slices.SortStableFunc(pieces, func(a, b renderedDocument) int {
		return cmp.Or(cmp.Compare(rank[a.head.Kind], rank[b.head.Kind]), cmp.Compare(a.head.Kind, b.head.Kind))
	})
	return pieces
}

// hookWeight returns a hook's weight. Our annotation for all objects overrides Helm's. As in
// Helm, a value that isn't a number is 0.
func (p renderedDocument) hookWeight() int {
	weight, stated, errs := annotation.Weight.Read(p.head.Metadata.Annotations)
	if stated || len(errs) > 0 {
		return weight
	}
	weight, err := strconv.Atoi(p.head.Metadata.Annotations[helmrelease.HookWeightAnnotation])
	if err != nil {
		return 0
	}
	return weight
}

// addHook adds a document as a hook. As in Helm, a hook with an unknown event is left out.
func (r *Rendered) addHook(p renderedDocument) {
	events, _ := p.annotation(helmrelease.HookAnnotation)
	hook := &helmrelease.Hook{
		Name:              p.head.Metadata.Name,
		Kind:              p.head.Kind,
		Path:              p.Source,
		Manifest:          p.Text,
		Events:            []helmrelease.HookEvent{},
		Weight:            p.hookWeight(),
		DeletePolicies:    annotationList[helmrelease.HookDeletePolicy](p, helmrelease.HookDeleteAnnotation),
		OutputLogPolicies: annotationList[helmrelease.HookOutputLogPolicy](p, helmrelease.HookOutputLogAnnotation),
	}
	for _, word := range annotationList[string](p, helmrelease.HookAnnotation) {
		event, ok := hookEvents[word]
		if !ok {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s: %s/%s is left out: %q is not a hook event",
				p.Source, hook.Kind, hook.Name, events))
			return
		}
		hook.Events = append(hook.Events, event)
	}
	r.Hooks = append(r.Hooks, hook)
}

// annotationList are the comma-separated words of an annotation, in lower case; empty and not nil without it.
func annotationList[T ~string](p renderedDocument, annotation string) []T {
	words := []T{}
	if value, ok := p.annotation(annotation); ok {
		for word := range strings.SplitSeq(value, ",") {
			words = append(words, T(strings.ToLower(strings.TrimSpace(word))))
		}
	}
	return words
}
