package apply_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply"
	"deployer/internal/kubetest"
)

// requests are those that f makes about a resource, or all for an empty one.
func (s *story) requests(resource string, f func()) []kubetest.AuditEvent {
	s.t.Helper()
	from := len(s.c.Audit(s.t, s.agent))
	f()
	asked := slices.Clone(s.c.Audit(s.t, s.agent)[from:])
	return slices.DeleteFunc(asked, func(e kubetest.AuditEvent) bool { return resource != "" && e.Object.Resource != resource })
}

// A release whose definitions in crds/ are as it left them asks for a list of their metadata and
// nothing else. One that changes costs one dry run and one write, and waiting for all that
// are new is one watch.
func TestUnchangedDefinitionsCostOneRequest(t *testing.T) {
	s := begin(t)
	s.dropCRDs(6)
	for i := range 6 {
		s.crds += definition(i, "")
	}
	installed := s.requests("", func() { s.deploy(config("a")) })
	count := func(list []kubetest.AuditEvent, is func(kubetest.AuditEvent) bool) int {
		return len(slices.DeleteFunc(slices.Clone(list), func(e kubetest.AuditEvent) bool { return !is(e) }))
	}
	isDefinition := func(verb string) func(e kubetest.AuditEvent) bool {
		return func(e kubetest.AuditEvent) bool {
			return e.Object.Resource == "customresourcedefinitions" && e.Verb == verb
		}
	}
	if n := count(installed, isDefinition("watch")); n != 1 {
		t.Errorf("%d watches while six kinds came, want 1: %v", n, installed)
	}
	if n := count(installed, isDefinition("get")); n != 0 {
		t.Errorf("definitions were read %d times while six kinds came: %v", n, installed)
	}
	if n := count(installed, func(e kubetest.AuditEvent) bool { return e.URI == "/apis" }); n > 3 { // it lags a little
		t.Errorf("the kinds were read %d times while six came: %v", n, installed)
	}

	unchanged := s.requests("customresourcedefinitions", func() { s.expect(s.deploy(config("a"))) })
	if len(unchanged) != 1 || unchanged[0].Verb != "list" {
		t.Errorf("unchanged definitions took %v, want one list", unchanged)
	}

	s.crds = strings.Replace(s.crds, definition(3, ""), definition(3, "added"+text), 1)
	var p *apply.Plan
	changed := s.requests("customresourcedefinitions", func() { p = s.deploy(config("a")) })
	s.expect(p, "update CustomResourceDefinition/foos3."+s.ns+".example.com")
	dryRuns, writes := count(changed, kubetest.AuditEvent.DryRun), len(kubetest.Writes(changed))
	if dryRuns != 1 || writes != 1 || len(changed) > 5 {
		t.Errorf("a change of one of six definitions took %d dry runs and %d writes, want one each: %v", dryRuns, writes, changed)
	}
}

// The list of definitions also tells whether the objects of their kinds are as they were left.
func TestDefinitionsAreReadOnceForTheirObjects(t *testing.T) {
	s := begin(t)
	s.dropCRDs(3)
	var chart string
	for i := range 3 {
		s.crds += definition(i, "")
		chart += foos(i, 1, "size: 1")
	}
	s.deploy(chart)
	asked := s.requests("customresourcedefinitions", func() { s.expect(s.deploy(chart)) })
	if len(asked) != 1 || asked[0].Verb != "list" {
		t.Errorf("three definitions and objects of their kinds took %v, want one list", asked)
	}
}

// A definition that somebody has changed since is not taken for unchanged.
func TestChangedDefinitionIsNotSkipped(t *testing.T) {
	s := begin(t)
	s.dropCRDs(3)
	s.crds = definition(0, "") + definition(1, "") + definition(2, "")
	s.deploy(config("a"))
	s.patch(crdAPI, "CustomResourceDefinition", s.crdName(), merge, `{"spec":{"names":{"shortNames":["fz"]}}}`, "somebody")
	s.patch(crdAPI, "CustomResourceDefinition", strings.Replace(s.crdName(), "foos0", "foos1", 1), jsonPatch,
		`[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/deflt"}]`, "somebody")
	s.expect(s.deploy(config("a")), "update CustomResourceDefinition/foos1."+s.ns+".example.com")
	s.eventually("the field is back", func() error {
		crd := s.get(crdAPI, "CustomResourceDefinition", strings.Replace(s.crdName(), "foos0", "foos1", 1))
		if at(crd, "spec.versions.v1.schema.openAPIV3Schema.properties.spec.properties.deflt") == nil {
			return fmt.Errorf("it lacks deflt")
		}
		return nil
	})
}

// What other releases have in a namespace is not read for a small one.
func TestObjectsOfOthersAreNotListed(t *testing.T) {
	s := begin(t)
	const ours = 3
	var others, chart string
	for i := range 200 {
		others += config(fmt.Sprintf("a-%d", i))
	}
	for i := range ours {
		chart += config(fmt.Sprintf("z-%d", i))
	}
	theirs := *s
	theirs.owner.Release, theirs.past, theirs.marks = "others", nil, nil
	theirs.deploy(others)
	s.deploy(chart)
	asked := s.requests("configmaps", func() { s.expect(s.deploy(chart)) })
	lists := slices.DeleteFunc(slices.Clone(asked), func(e kubetest.AuditEvent) bool { return e.Verb != "list" })
	if len(lists) != 1 || !strings.Contains(lists[0].URI, "limit=112") || len(asked) != 1+ours {
		t.Errorf("%d objects of ours among 200 others took %v, want one short list and a look at each", ours, asked)
	}
}

// TestListExpiresBetweenPages fails if a plan fails because the rest of a list of whole
// objects is no longer there when it is asked for.
func TestListExpiresBetweenPages(t *testing.T) {
	s := begin(t)
	chart := config("a") + config("b") + config("c") + config("d")
	s.deploy(chart)
	isList := func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/configmaps") && !strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata")
	}
	var expired atomic.Bool
	s.through(&faulty{
		before: func(r *http.Request) (*http.Response, error) {
			if !isList(r) || r.URL.Query().Get("continue") == "" {
				return nil, nil
			}
			expired.Store(true)
			return answered(r, http.StatusGone, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`), nil
		},
		replace: func(r *http.Request, body []byte) []byte {
			if !isList(r) {
				return body
			}
			var list unstructured.UnstructuredList
			if err := list.UnmarshalJSON(body); err != nil {
				t.Error(err)
				return body
			}
			list.Items = list.Items[:1]
			list.SetContinue("next")
			first, err := list.MarshalJSON()
			if err != nil {
				t.Error(err)
			}
			return first
		},
	})
	s.expect(s.deploy(strings.ReplaceAll(chart, "k: v", "k: w")), "update ConfigMap/a", "update ConfigMap/b", "update ConfigMap/c", "update ConfigMap/d")
	if !expired.Load() {
		t.Error("no second page was asked for")
	}
}
