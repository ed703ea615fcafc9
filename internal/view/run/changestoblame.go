package run

import (
	"fmt"
	"sort"
	"strings"

	"deployer/apply"
	"deployer/internal/deploy"
	"deployer/internal/hide"
	"deployer/internal/view/diff"
	"deployer/internal/view/page"
	"deployer/internal/view/plan"
	"deployer/track/class"
)

// podFields are the fields of a pod template, outside of containers, that may cause a class
// of problems.
var podFields = map[class.Class][]string{
	class.Unschedulable:         {"nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "volumes", "runtimeClassName", "priorityClassName"},
	class.NoNodeFits:            {"nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "volumes", "runtimeClassName"},
	class.ClaimUnbound:          {"volumes"},
	class.ImagePullPermanent:    {"imagePullSecrets", "serviceAccountName"},
	class.ConfigError:           {"volumes"},
	class.MountedObjectMissing:  {"volumes"},
	class.MountFailed:           {"volumes", "securityContext"},
	class.PodSecurity:           {"securityContext", "hostNetwork", "hostPID", "volumes"},
	class.ServiceAccountMissing: {"serviceAccountName"},
	class.PriorityClassMissing:  {"priorityClassName"},
	class.CrashLoop:             {"securityContext", "volumes", "serviceAccountName"},
}

// containerFields are the fields of a container that may cause problems.
var containerFields = map[string]bool{
	"image": true, "command": true, "args": true, "env": true, "envFrom": true, "resources": true, "workingDir": true,
	"livenessProbe": true, "readinessProbe": true, "startupProbe": true, "lifecycle": true, "ports": true,
	"securityContext": true, "volumeMounts": true, "imagePullPolicy": true,
}

// maxChanged bounds the list.
const maxChanged = 8

// changesToBlame lists what the release changed in the container that fails, and in
// those fields of its pod that the class makes suspect. An unknown container
// means all of them. c is nil for an object that wasn't updated.
func changesToBlame(c *apply.Change, container string, of class.Class, hidden *hide.Texts) []string {
	if c == nil || hide.IsSecretKind(c.ID.GroupKind()) {
		return nil
	}
	var fields []diff.Field
	for _, f := range plan.FieldsOf(*c, deploy.Nondeterminism{}) {
		text, ok := relativePath(f.Path, strings.TrimPrefix(container, "init:"), of)
		if ok {
			f = f.WithoutHidden(hidden)
			f.Path = text
			fields = append(fields, f)
		}
	}
	sort.SliceStable(fields, func(i, j int) bool { return isSuspect(of, fields[i].Path) && !isSuspect(of, fields[j].Path) })
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

// isSuspect reports whether a field is the first to look at for a class.
func isSuspect(of class.Class, path string) bool {
	switch of {
	case class.InvalidImageName, class.ImageNeverPull, class.ImagePullPermanent, class.ImagePullTransient:
		return strings.HasPrefix(path, "image")
	case class.OOMKilled, class.Unschedulable, class.QuotaExceeded, class.LimitRangeViolated, class.QuotaDeadlock:
		return strings.HasPrefix(path, "resources")
	case class.ReadinessProbeFailed, class.LivenessProbeFailed:
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
			field = key + " " + field
		}
		return field, containerFields[name]
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
