package run

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/internal/hide"
	"deployer/internal/kube"
	"deployer/internal/view/diff"
	"deployer/internal/view/page"
	"deployer/track"
)

// containerFields are the fields of a container that may cause problems.
var containerFields = map[string]bool{
	"image": true, "command": true, "args": true, "env": true, "envFrom": true, "resources": true, "workingDir": true,
	"livenessProbe": true, "readinessProbe": true, "startupProbe": true, "lifecycle": true, "ports": true,
	"securityContext": true, "volumeMounts": true, "imagePullPolicy": true,
	"restartPolicy": true, "restartPolicyRules": true, "resizePolicy": true,
}

// podKinds are the kinds of which only what concerns their pods may cause a problem.
var podKinds = map[schema.GroupKind]bool{
	kube.DeploymentKind: true, kube.StatefulSetKind: true, kube.DaemonSetKind: true, kube.ReplicaSetKind: true, kube.JobKind: true, kube.PodKind: true,
	{Group: "batch", Kind: "CronJob"}: true,
}

// scaleFields are the counts and limits of a workload itself.
var scaleFields = map[string]bool{"spec.replicas": true, "spec.minReadySeconds": true, "spec.progressDeadlineSeconds": true, "spec.parallelism": true,
	"spec.completions": true, "spec.backoffLimit": true, "spec.activeDeadlineSeconds": true}

// maxChanged bounds the list.
const maxChanged = 8

// changesToBlame lists what the release changed that may cause a failure of an object: in the container that fails, in
// those fields of its pod that the class makes suspect, and in the ConfigMaps and Secrets that its pods read, also if the
// object itself is unchanged. An unknown container means all of them.
func (t *runState) changesToBlame(failure track.Finding) []string {
	id, of := failure.Objects[0], aboutClasses[failure.Class]
	c := t.changes[id]
	if hide.IsSecretKind(id.GroupKind()) {
		return nil
	}
	hasPods := podKinds[id.GroupKind()]
	fields := t.changedFields(c, func(path string) (string, bool) {
		switch {
		case of.object:
			return path, true
		case hasPods:
			return relativePath(path, strings.TrimPrefix(failure.Container, "init:"), of)
		}
		return path, !strings.HasPrefix(path, "metadata.")
	})
	isSuspect := func(f diff.Field) bool {
		return of.object && strings.Contains(failure.Message, f.Path) || slices.ContainsFunc(of.suspects, func(part string) bool { return strings.Contains(f.Path, part) })
	}
	sort.SliceStable(fields, func(i, j int) bool { return isSuspect(fields[i]) && !isSuspect(fields[j]) })
	if hasPods && of.configuration {
		for _, config := range t.configurationOf(id) {
			fields = append(fields, t.changedFields(t.changes[config], func(path string) (string, bool) {
				return config.Kind + "/" + config.Name + " " + path, !strings.HasPrefix(path, "metadata.")
			})...)
		}
	}
	var out []string
	for _, f := range fields[:min(len(fields), maxChanged)] {
		lines := page.FieldLines(f, 0)
		if len(lines) > maxChanged { // a file: that it changed is news enough
			lines = lines[:1]
		}
		for _, l := range lines {
			out = append(out, strings.TrimSpace(strings.TrimPrefix(string(l.Sign), "~")+" "+l.Text))
		}
	}
	if more := len(fields) - maxChanged; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return out
}

// changedFields are the fields of an update that matter, by the names under which they are shown; none without an update.
func (t *runState) changedFields(c apply.Change, shown func(path string) (name string, matters bool)) []diff.Field {
	if c.Action != decide.Update && c.Action != decide.Recreate {
		return nil
	}
	var out []diff.Field
	for _, f := range diff.Fields(c, nil) {
		if name, matters := shown(f.Path); matters {
			f = f.WithoutHidden(t.op.Hidden)
			f.Path = name
			out = append(out, f)
		}
	}
	return out
}

// referenceKinds are the kinds of what a pod reads, by the fields that name it.
// https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
var referenceKinds = map[string]string{"configMap": "ConfigMap", "configMapRef": "ConfigMap", "configMapKeyRef": "ConfigMap",
	"secret": "Secret", "secretRef": "Secret", "secretKeyRef": "Secret"}

// configurationOf returns the ConfigMaps and Secrets that the pods of a workload read, in order.
func (t *runState) configurationOf(id kube.ID) []kube.ID {
	found := sets.New[kube.ID]()
	var collect func(any)
	collect = func(value any) {
		switch value := value.(type) {
		case []any:
			for _, item := range value {
				collect(item)
			}
		case map[string]any:
			for field, item := range value {
				if reference, isMap := item.(map[string]any); isMap && referenceKinds[field] != "" {
					name, _, _ := unstructured.NestedString(reference, "name")
					ofVolume, _, _ := unstructured.NestedString(reference, "secretName")
					found.Insert(kube.ID{Kind: referenceKinds[field], Namespace: id.Namespace, Name: cmp.Or(name, ofVolume)})
				}
				collect(item)
			}
		}
	}
	c := t.changes[id]
	workload := c.Desired
	if c.WasNotCompared() { // so its change doesn't have it
		workload = t.declared().Find(id, t.op.Namespace)
	}
	if workload != nil {
		collect(workload.Object["spec"])
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b kube.ID) int { return strings.Compare(a.String(), b.String()) })
}

// relativePath cuts a path down to the part below its container, or to the field
// of the pod. It reports whether that matters to the failure.
func relativePath(path, container string, of aboutClass) (string, bool) {
	for _, kind := range []string{"containers[", "initContainers["} {
		_, rest, ok := strings.Cut(path, "."+kind)
		if !ok {
			continue
		}
		key, field, found := strings.Cut(rest, "].")
		if container != "" && key != fmt.Sprintf("name=%q", container) && key != fmt.Sprintf("name=%q]", container) {
			return "", false
		}
		if !found { // the container as a whole
			return kind + rest, true
		}
		name, _, _ := strings.Cut(field, ".")
		name, _, _ = strings.Cut(name, "[")
		if container == "" {
			field = kind + key + "]." + field
		}
		return field, containerFields[name]
	}
	if scaleFields[path] {
		return path, of.scale
	}
	if of.template {
		_, field, inTemplate := strings.Cut(path, ".template.")
		return strings.TrimPrefix(field, "spec."), inTemplate
	}
	for _, name := range of.podFields {
		if strings.HasSuffix(path, ".spec."+name) || strings.Contains(path, ".spec."+name+".") || strings.Contains(path, ".spec."+name+"[") {
			_, field, _ := strings.Cut(path, "template.spec.")
			if field == "" {
				field = path
			}
			return field, true
		}
	}
	return "", false
}
