package track

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/kube"
	"deployer/track/class"
	"deployer/track/finding"
)

const (
	// A kubelet that has looked too early looks again after ten to fifteen seconds,
	// k8s.io/kubernetes/pkg/kubelet/pod_workers.go, and at volumes after up to two minutes,
	// k8s.io/kubernetes/pkg/util/goroutinemap/exponentialbackoff.
	noticedByKubeletWithin = 20 * time.Second
	mountedAgainWithin     = 150 * time.Second
	// maxAnswerAge is how old an answer may be that fails an object.
	maxAnswerAge = time.Second
)

// A missingReference is what is known of one object, or key of it, that pods refer to and miss.
type missingReference struct {
	foundAt     time.Time // when it was found to be there: the kubelet has yet to look again. Zero when it isn't, or may not be read
	isUnknown   bool      // nobody could say whether it is there
	isPermanent bool      // this release declares the object, with other keys: nobody will add this one
	askedAt     time.Time
	inFlight    bool
}

// missingReferences are all references that pods miss. A kubelet may not have noticed yet that somebody has
// written what is missing. The API server is therefore asked when something is first missed, and again
// before that fails an object.
type missingReferences struct {
	*session
	known map[missingID]*missingReference
}

type missingID struct {
	namespace string
	finding.Missing
}

// stateOf returns what is known of a reference.
func (m *missingReferences) stateOf(id missingID) missingReference {
	if known := m.known[id]; known != nil {
		return *known
	}
	return missingReference{}
}

// ensureReference returns what is known of a reference, and begins to keep it if nothing is.
func (m *missingReferences) ensureReference(id missingID) *missingReference {
	known := m.known[id]
	if known == nil {
		known = &missingReference{}
		m.known[id] = known
	}
	return known
}

// askForTargets asks for what objects scale that the release doesn't declare.
func (m *missingReferences) askForTargets() {
	for _, obj := range m.objects {
		if id, isForeign := obj.foreignTarget(); isForeign && m.known[id] == nil {
			m.ask(id, m.ensureReference(id))
		}
	}
}

// hasKeys are the kinds whose objects and keys may be written later than a kubelet looks.
var hasKeys = map[string]bool{"ConfigMap": true, "Secret": true}

// confirm asks about what an object misses, if it misses something, and reports whether
// its status holds. A failure holds when the answer is new.
func (m *missingReferences) confirm(obj *trackedObject, status Status, now time.Time) bool {
	p := status.Finding
	if p == nil || p.Missing == nil || !hasKeys[p.Missing.Kind] && p.Class != class.ScaleTargetMissing {
		return true
	}
	id := missingID{obj.target.ID.Namespace, *p.Missing}
	known := m.ensureReference(id)
	isNew := !known.inFlight && !known.askedAt.IsZero() && now.Sub(known.askedAt) <= maxAnswerAge
	holds := status.State != Failed || isNew
	if !known.inFlight && (known.askedAt.IsZero() || !holds) {
		m.ask(id, known)
	}
	return holds
}

func (m *missingReferences) ask(id missingID, known *missingReference) {
	known.inFlight = true
	m.tasks.group.Go(func() {
		ctx, stop := context.WithTimeout(m.tasks.ctx, lookupTimeout)
		defer stop()
		of := idOf(id.namespace, id.Missing)
		object, err := m.cluster.Get(ctx, of)
		m.tasks.send(func() {
			known.inFlight, known.isUnknown, known.askedAt = false, err != nil, m.opts.Now()
			if err == nil {
				m.health.recordAnswer()
			}
			known.update(object, id.Key, m.declares(of), known.askedAt)
			for _, obj := range m.objects {
				if obj.target.ID.Namespace == id.namespace {
					obj.schedule.isDue = true
				}
			}
		})
	})
}

// update records what the API server answered: the object, or nil when it has none or doesn't tell.
func (m *missingReference) update(object *unstructured.Unstructured, key string, declared bool, now time.Time) {
	keys := keysOf(object)
	if object != nil && (key == "" || slices.Contains(keys, key)) {
		m.foundAt, m.isPermanent = cmp.Or(m.foundAt, now), false
		return
	}
	m.foundAt, m.isPermanent = time.Time{}, declared && len(keys) > 0 // one declared without keys is meant to be filled by others
}

func idOf(namespace string, what finding.Missing) kube.ID {
	return kube.ID{Group: what.Group, Kind: what.Kind, Namespace: namespace, Name: what.Name}
}

// keysOf lists the keys of a ConfigMap or Secret.
func keysOf(object *unstructured.Unstructured) []string {
	if object == nil {
		return nil
	}
	var out []string
	for _, field := range []string{"data", "binaryData"} {
		values, _ := object.Object[field].(map[string]any)
		out = slices.AppendSeq(out, maps.Keys(values))
	}
	return out
}

// declares reports whether the release declares an object.
func (s *session) declares(id kube.ID) bool {
	if s.opts.Declares != nil && s.opts.Declares(id) {
		return true
	}
	obj := s.object(id)
	return obj != nil && !obj.target.MayAppearLater && obj.target.Until != UntilGone
}
