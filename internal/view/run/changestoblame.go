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
	"deployer/internal/deploy"
	"deployer/internal/hide"
	"deployer/internal/kube"
	"deployer/internal/view/diff"
	"deployer/internal/view/page"
	"deployer/internal/view/plan"
	"deployer/track"
	"deployer/track/class"
)

// podFields are the fields of a pod template, outside of containers, that may cause a class
// of problems.
var podFields = map[class.Class][]string{
	class.Unschedulable:            {"resources", "nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "volumes", "runtimeClassName", "priorityClassName"},
	class.WaitingForNode:           {"resources", "nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "priorityClassName"},
	class.WaitingForRoom:           {"resources", "priorityClassName"},
	class.SchedulingGated:          {"schedulingGates"},
	class.Evicted:                  {"resources", "priorityClassName"},
	class.MultiAttach:              {"volumes", "nodeSelector", "affinity"},
	class.ReadinessProbeFailed:     {"readinessGates", "hostNetwork", "dnsPolicy", "serviceAccountName"},
	class.NoNodeFits:               {"nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "volumes", "runtimeClassName", "resourceClaims"},
	class.ResourceClaimUnallocated: {"resourceClaims", "nodeSelector", "affinity", "tolerations"},
	class.OOMKilled:                {"resources"},
	class.QuotaExceeded:            {"resources"},
	class.QuotaDeadlock:            {"resources"},
	class.LimitRangeViolated:       {"resources"},
	class.PodSandboxFailed:         {"hostUsers", "hostNetwork", "runtimeClassName", "securityContext"},
	class.ContainerCreateFailed:    {"hostUsers", "securityContext", "runtimeClassName", "volumes"},
	class.ContainerEnded:           {"restartPolicy", "hostUsers", "securityContext", "volumes", "serviceAccountName"},
	class.ImagePullTransient:       {"imagePullSecrets", "volumes"},
	class.InvalidImageName:         {"volumes"},
	class.ClaimUnbound:             {"volumes"},
	class.ImagePullPermanent:       {"imagePullSecrets", "serviceAccountName", "volumes"},
	class.ConfigError:              {"volumes"},
	class.MountedObjectMissing:     {"volumes"},
	class.MountFailed:              {"volumes", "securityContext"},
	class.PodSecurity:              {"securityContext", "hostUsers", "hostNetwork", "hostPID", "volumes"},
	class.ServiceAccountMissing:    {"serviceAccountName"},
	class.PriorityClassMissing:     {"priorityClassName"},
	class.CrashLoop:                {"hostUsers", "securityContext", "volumes", "serviceAccountName"},
}

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

// ofTemplate are the classes of problems that any field of the pod template may cause, also a label: what is refused, is
// refused by rules that nobody here knows.
var ofTemplate = sets.New(class.AdmissionDenied, class.InvalidPod)

// ofObject are the classes of problems that any field of the object may cause: the API server has refused it as a whole.
var ofObject = sets.New(classApplyFailed, classRejected, classStayed)

// scaleFields are the fields of a workload itself that may cause a class of problems.
var scaleFields = map[string]bool{"spec.replicas": true, "spec.minReadySeconds": true, "spec.progressDeadlineSeconds": true, "spec.parallelism": true,
	"spec.completions": true, "spec.backoffLimit": true, "spec.activeDeadlineSeconds": true}

// ofScale are the classes of problems that these fields may cause.
var ofScale = sets.New(class.Unschedulable, class.NoNodeFits, class.QuotaExceeded, class.QuotaDeadlock, class.ResourceClaimUnallocated,
	class.ProgressDeadline, class.NoProgress, class.Timeout, class.JobFailed)

// maxChanged bounds the list.
const maxChanged = 8

// ofConfiguration are the classes of problems that what the pods read from ConfigMaps and Secrets may cause.
var ofConfiguration = sets.New(class.CrashLoop, class.ContainerEnded, class.OOMKilled, class.BadCommand, class.LivenessProbeFailed,
	class.ReadinessProbeFailed, class.StartupProbeFailed, class.ConfigError, class.MountedObjectMissing, class.JobFailed, class.PodFailed,
	class.ProgressDeadline, class.NoProgress, class.Timeout)

// changesToBlame lists what the release changed that may cause a failure of an object: in the container that fails, in
// those fields of its pod that the class makes suspect, and in the ConfigMaps and Secrets that its pods read, also if the
// object itself is unchanged. An unknown container means all of them.
func (t *runState) changesToBlame(failure track.Finding) []string {
	id, of := failure.Objects[0], failure.Class
	c := t.changes[id]
	if hide.IsSecretKind(id.GroupKind()) {
		return nil
	}
	hasPods := podKinds[id.GroupKind()]
	fields := t.changedFields(c, func(path string) (string, bool) {
		switch {
		case ofObject.Has(of):
			return path, true
		case hasPods:
			return relativePath(path, strings.TrimPrefix(failure.Container, "init:"), of)
		}
		return path, !strings.HasPrefix(path, "metadata.")
	})
	sort.SliceStable(fields, func(i, j int) bool { return isSuspect(failure, fields[i].Path) && !isSuspect(failure, fields[j].Path) })
	if hasPods && ofConfiguration.Has(of) {
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
	if c.Action != apply.Update && c.Action != apply.Recreate {
		return nil
	}
	var out []diff.Field
	for _, f := range plan.FieldsOf(c, deploy.Nondeterminism{}) {
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

// isSuspect reports whether a field is the first to look at for a failure.
func isSuspect(failure track.Finding, path string) bool {
	if ofObject.Has(failure.Class) {
		return strings.Contains(failure.Message, path)
	}
	switch failure.Class {
	case class.InvalidImageName, class.ImageNeverPull, class.ImagePullPermanent, class.ImagePullTransient:
		return strings.HasPrefix(path, "image")
	case class.OOMKilled, class.Unschedulable, class.QuotaExceeded, class.LimitRangeViolated, class.QuotaDeadlock:
		return strings.HasPrefix(path, "resources")
	case class.ContainerEnded:
		return strings.HasPrefix(path, "restartPolicy")
	case class.ReadinessProbeFailed, class.StartupProbeFailed, class.LivenessProbeFailed:
		return strings.Contains(path, "Probe")
	case class.BadCommand:
		return strings.HasPrefix(path, "command") || strings.HasPrefix(path, "args")
	}
	return false
}

// relativePath cuts a path down to the part below its container, or to the field
// of the pod. It reports whether that matters to the failure.
func relativePath(path, container string, of class.Class) (string, bool) {
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
		return path, ofScale.Has(of)
	}
	if ofTemplate.Has(of) {
		_, field, inTemplate := strings.Cut(path, ".template.")
		return strings.TrimPrefix(field, "spec."), inTemplate
	}
	for _, name := range podFields[of] {
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
