package track

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// podKinds are the kinds whose pods are looked at, in the order people read them.
var podKinds = []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "Pod"}

// supports are the annotations that mean something for some kinds only, without
// their prefix. One that isn't here is for all kinds.
var supports = map[string][]string{
	"rollout-required":     {"Deployment", "StatefulSet", "DaemonSet"},
	"track-as":             {"Pod"},
	"failures-allowed":     {"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Pod"}, // a Job counts itself: spec.backoffLimit
	"logs":                 podKinds,
	"logs-containers":      podKinds,
	"logs-skip-containers": podKinds,
	"logs-pods":            podKinds,
	"logs-regex":           podKinds,
	"logs-skip-regex":      podKinds,
	"instances-ready":      {"CustomResourceDefinition"},
	"instances-failed":     {"CustomResourceDefinition"},
}

// sameAs are the annotations of ours that those of Nelm and werf stand for, where
// ours are for some kinds only.
var sameAs = map[string]string{
	"failures-allowed-per-replica":          "failures-allowed",
	"log-regex":                             "logs-regex",
	"log-regex-skip":                        "logs-skip-regex",
	"skip-logs":                             "logs",
	"skip-logs-for-containers":              "logs-skip-containers",
	"show-logs-only-for-containers":         "logs-containers",
	"show-logs-only-for-number-of-replicas": "logs-pods",
}

// unsupported says that a known annotation has no effect on objects of a kind;
// empty when it has one, or when the kind isn't known.
func unsupported(key string, gk schema.GroupKind) string {
	kinds := supports[ownName(key)]
	if gk.Kind == "" || kinds == nil || slices.Contains(kinds, gk.Kind) && ofKubernetes(gk) {
		return ""
	}
	return "annotation " + key + " has no effect on objects of kind " + gk.Kind + ": it is for " + strings.Join(kinds, ", ")
}

// ownName is the name, without prefix, of the annotation of ours that one is or
// stands for.
func ownName(key string) string {
	for _, p := range perContainer {
		if strings.HasPrefix(key, p.prefix) {
			key = strings.TrimSuffix(p.prefix, "-for-")
		}
	}
	if name, ok := strings.CutPrefix(key, werfPrefix); ok {
		return sameAs[name]
	}
	return strings.TrimPrefix(key, prefix)
}

// ofKubernetes tells kinds of Kubernetes from those of others with the same name.
func ofKubernetes(gk schema.GroupKind) bool {
	return workloadKinds[gk] || gk == podKind || gk == definitionKind
}
