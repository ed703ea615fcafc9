package track

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"deployer/internal/kube"
	"deployer/track/class"
	"deployer/track/finding"
)

// A diagnosis finds out why objects aren't ready at the end of a wait.
type diagnosis struct {
	*session
	timedOut bool // the deadline ended the wait, and not a failure
}

// groupByCause groups objects with the same problem: the same class, container image
// and message. The first object of a group is one that has failed, if any has.
func (d diagnosis) groupByCause() [][]*trackedObject {
	var groups [][]*trackedObject
	byKey := map[string]int{}
	for _, obj := range d.objects {
		p := obj.status.Finding
		if p == nil || obj.status.State == Ready || obj.status.State == Gone || obj.settings.isBackground() {
			continue
		}
		hasFailed := obj.status.State == Failed
		if class.InfoOf(p.Class).Scope == class.Informational && !hasFailed && !d.timedOut {
			continue // when time is up, what can never fail by itself is the reason too
		}
		key := string(p.Class) + "\x00" + p.Image + "\x00" + withoutPodNames(withoutNames(obj, p))
		if p.Missing != nil {
			key = "needs " + obj.target.ID.Namespace + fmt.Sprint(*p.Missing)
		}
		i, known := byKey[key]
		switch {
		case !known:
			byKey[key] = len(groups)
			groups = append(groups, []*trackedObject{obj})
		case hasFailed && groups[i][0].status.State != Failed:
			groups[i] = slices.Insert(groups[i], 0, obj)
		default:
			groups[i] = append(groups[i], obj)
		}
	}
	return groups
}

// withoutNames is a message without the names of the object and its pods.
func withoutNames(obj *trackedObject, p *Finding) string {
	message := p.Message
	for _, name := range slices.Concat(p.Pods, []string{obj.target.ID.Name}) {
		message = strings.ReplaceAll(message, name, "#")
	}
	return message
}

// causes returns the root causes, fatal ones first. An object that only waits for another
// one is listed in Blocks of that one's cause.
func (d diagnosis) causes() []Finding {
	groups := d.groupByCause()
	hasCause := sets.New(slices.Concat(groups...)...)
	blockedBy := map[*trackedObject]*trackedObject{}
	for _, g := range groups {
		if hasCause.Has(d.providerOf(g[0])) {
			for _, m := range g {
				blockedBy[m] = d.providerOf(m)
			}
		}
	}
	var out []Finding
	for _, g := range groups {
		first := g[0]
		if blockedBy[first] != nil {
			continue
		}
		c := *first.status.Finding
		c.Objects, c.Rollout = nil, first.status.Rollout
		c.BeforeRelease, c.Blocks = !first.target.Changed, d.blockedObjects(g, blockedBy)
		for _, m := range g {
			c.Objects = append(c.Objects, m.target.ID)
		}
		out = append(out, c)
	}
	isFatal := func(c Finding) bool { return c.Fatal }
	if !slices.ContainsFunc(out, isFatal) { // only what others block has failed
		for i := range out {
			for obj := range blockedBy {
				out[i].Fatal = out[i].Fatal || obj.status.State == Failed && slices.Contains(out[i].Blocks, obj.target.ID)
			}
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Fatal && !out[j].Fatal })
	return out
}

// providerOf returns the object that would create what obj's problem lacks and isn't ready
// itself; nil when there is none.
func (d diagnosis) providerOf(obj *trackedObject) *trackedObject {
	needs := obj.missingRefs()
	if len(needs) == 0 {
		return nil
	}
	for _, other := range d.objects {
		isNear := other.target.ID.Namespace == obj.target.ID.Namespace || other.target.ID.Namespace == ""
		if other == obj || other.observed.object == nil || !isNear || other.status.State == Ready {
			continue
		}
		if slices.ContainsFunc(needs, func(what finding.Missing) bool { return isOrMakes(other.observed.object, what) }) {
			return other
		}
	}
	return nil
}

// missingRefs returns the objects that obj's problem waits for: the missing object, or the
// claims whose volumes its pods wait for.
func (t *trackedObject) missingRefs() []finding.Missing {
	p := t.status.Finding
	switch {
	case p.Missing != nil:
		return []finding.Missing{*p.Missing}
	case p.Class != class.ClaimUnbound:
		return nil
	}
	var out []finding.Missing
	for _, history := range t.newPods.byUID {
		for _, claim := range history.Pod.Volumes.Claims {
			out = append(out, finding.Missing{Kind: "PersistentVolumeClaim", Name: claim})
		}
	}
	return out
}

// blockedObjects lists the objects that aren't ready because of a group: objects that need
// what the group creates, and APIServices that the group's workloads serve.
func (d diagnosis) blockedObjects(group []*trackedObject, blockedBy map[*trackedObject]*trackedObject) []kube.ID {
	var out []kube.ID
	for _, obj := range d.objects {
		needs := func(m *trackedObject) bool { return blockedBy[obj] == m || d.isAPIOf(obj, m) }
		if obj.status.State != Ready && obj.status.State != Gone && slices.ContainsFunc(group, needs) {
			out = append(out, obj.target.ID)
		}
	}
	return out
}

// isAPIOf reports whether an APIService isn't available because of a workload
// whose pods its Service selects. Only a Service that was applied with them
// is known.
func (d diagnosis) isAPIOf(api, workload *trackedObject) bool {
	if api.observed.object == nil || api.gk != kube.APIServiceKind || workload.observed.object == nil {
		return false
	}
	name, _, _ := unstructured.NestedString(api.observed.object.Object, "spec", "service", "name")
	namespace, _, _ := unstructured.NestedString(api.observed.object.Object, "spec", "service", "namespace")
	service := d.object(kube.ID{Kind: "Service", Namespace: namespace, Name: name})
	if service == nil || service.observed.object == nil || workload.target.ID.Namespace != namespace {
		return false
	}
	selector, _, _ := unstructured.NestedStringMap(service.observed.object.Object, "spec", "selector")
	podLabels, _, _ := unstructured.NestedStringMap(workload.observed.object.Object, "spec", "template", "metadata", "labels")
	return len(selector) > 0 && labels.SelectorFromSet(selector).Matches(labels.Set(podLabels))
}
