package track

import (
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const askAgain = 5 * time.Second // for the ReplicaSet of a Deployment

// podsOf says how to find the pods of a workload's new revision; owner is
// empty while that isn't known.
func podsOf(sub *subject) (query podQuery, value, owner string) {
	o := sub.object
	query.namespace = sub.ID.Namespace
	switch sub.gk.Kind {
	case "Deployment":
		if !sub.current() {
			sub.revision = ""
			clear(sub.pods)
		}
		if sub.revision == "" {
			sub.setRevision(revisionByMessage(sub))
		}
		if sub.revision == "" {
			return query, "", ""
		}
		query.label = "pod-template-hash"
		return query, sub.revision, ownerKey(query.namespace, "", sub.replicaSet())
	case "StatefulSet":
		query.label = "controller-revision-hash"
		value, _, _ = unstructured.NestedString(o.Object, "status", "updateRevision")
		if value == "" || !sub.observed() {
			return query, "", ""
		}
	case "DaemonSet":
		// The API server raises it with each change of the template, so the
		// answer to the apply has it already.
		// k8s.io/kubernetes/pkg/registry/apps/daemonset/strategy.go
		query.label = "pod-template-generation"
		value = o.GetAnnotations()["deprecated.daemonset.template.generation"]
	case "Job":
		query.label, value = "batch.kubernetes.io/controller-uid", string(o.GetUID())
	case "ReplicaSet":
		selector, err := selectorOf(o)
		if err != nil {
			return query, "", ""
		}
		query.selector = selector
		return query, o.GetName(), ownerKey(query.namespace, "", o.GetName())
	}
	if value == "" {
		return query, "", ""
	}
	return query, value, ownerKey("", o.GetUID(), "")
}

func selectorOf(o *unstructured.Unstructured) (string, error) {
	raw, _, _ := unstructured.NestedMap(o.Object, "spec", "selector")
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &selector); err != nil {
		return "", err
	}
	return metav1.FormatLabelSelector(&selector), nil
}

func (s *subject) observed() bool {
	n, _, _ := unstructured.NestedInt64(s.object.Object, "status", "observedGeneration")
	return n >= s.object.GetGeneration()
}

// setRevision notes the hash of a Deployment's new ReplicaSet.
func (s *subject) setRevision(hash string) {
	if hash != "" {
		s.revision, s.revisionOf = hash, s.object.GetAnnotations()["deployment.kubernetes.io/revision"]
	}
}

// current reports whether the known ReplicaSet still is the new one.
func (s *subject) current() bool {
	return s.revisionOf == s.object.GetAnnotations()["deployment.kubernetes.io/revision"]
}

// revisionByMessage reads the name of the new ReplicaSet from the Deployment's
// progress. A message that was there before the change may be about an old one.
// k8s.io/kubernetes/pkg/controller/deployment/progress.go
func revisionByMessage(s *subject) string {
	if !s.observed() {
		return ""
	}
	message := progressing(s.object)
	if s.Changed && s.Baseline != nil && message == progressing(s.Baseline) {
		return ""
	}
	for _, word := range strings.Split(message, `"`) {
		if hash, ok := strings.CutPrefix(word, s.ID.Name+"-"); ok && !strings.ContainsAny(hash, " -") {
			return hash
		}
	}
	return ""
}

func progressing(o *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Progressing" {
			message, _ := m["message"].(string)
			return message
		}
	}
	return ""
}

// askRevision lists a Deployment's ReplicaSets when its status doesn't name
// the new one, as after a rollback or a change of scale.
func (s *session) askRevision(sub *subject, now time.Time) {
	if sub.gk.Kind != "Deployment" || sub.revision != "" || sub.asking || now.Before(sub.askAt) || !sub.observed() {
		return
	}
	typed, err := s.tracker.cluster.Typed()
	selector, bad := selectorOf(sub.object)
	if err != nil || bad != nil {
		return
	}
	sub.asking = true
	uid, revision := sub.object.GetUID(), sub.object.GetAnnotations()["deployment.kubernetes.io/revision"]
	s.group.Go(func() {
		found, err := typed.AppsV1().ReplicaSets(sub.ID.Namespace).List(s.ctx, metav1.ListOptions{LabelSelector: selector})
		hash := ""
		if err == nil {
			for i := range found.Items {
				rs := &found.Items[i]
				if metav1.IsControlledBy(rs, &metav1.ObjectMeta{UID: uid}) && rs.Annotations["deployment.kubernetes.io/revision"] == revision {
					hash = rs.Labels["pod-template-hash"]
				}
			}
		}
		s.send(func() {
			sub.asking, sub.askAt = false, s.opts.Now().Add(askAgain)
			if apierrors.IsForbidden(err) {
				sub.askAt = s.opts.Now().Add(24 * time.Hour)
				s.warn("pod details unavailable: missing permission to list replicasets in namespace " + sub.ID.Namespace)
			}
			sub.setRevision(hash)
			sub.moved, s.dirty[sub] = true, true
		})
	})
}
