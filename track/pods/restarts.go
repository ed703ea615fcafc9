package pods

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// restarts says whether the kubelet starts a container again that has ended. A container may have a policy and rules
// of its own, which go before the policy of its pod.
// https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#container-restart-rules
type restarts struct {
	policy corev1.RestartPolicy
	rules  []corev1.ContainerRestartRule
}

func restartsOf(c *corev1.Container, p *corev1.PodSpec) restarts {
	policy := cmp.Or(p.RestartPolicy, corev1.RestartPolicyAlways)
	if c.RestartPolicy == nil {
		return restarts{policy: policy}
	}
	return restarts{policy: corev1.RestartPolicy(*c.RestartPolicy), rules: c.RestartPolicyRules}
}

// after reports whether the container is started again after it has ended with an exit code.
func (r restarts) after(code int32) bool {
	if slices.ContainsFunc(r.rules, func(rule corev1.ContainerRestartRule) bool { return matches(rule.ExitCodes, code) }) {
		return true // there is no other action than to restart the container, or the whole pod with it
	}
	return r.policy == corev1.RestartPolicyAlways || r.policy == corev1.RestartPolicyOnFailure && code != 0
}

func matches(on *corev1.ContainerRestartRuleOnExitCodes, code int32) bool {
	if on == nil {
		return false
	}
	is := slices.Contains(on.Values, code)
	return is == (on.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn)
}

// restartingAll is the reason of containers that have ended because all containers of their pod are restarted, by the
// rules of one of them.
// k8s.io/kubernetes/pkg/kubelet/kubelet_pods.go, RestartingAllContainers
const restartingAll = "RestartingAllContainers"

// hasEnded reports whether a container has ended for good.
func (c *Container) hasEnded() bool {
	return c.Terminated != nil && c.Terminated.Reason != restartingAll && !c.restarts.after(c.Terminated.ExitCode)
}

// hasEndedInVain reports whether a container has ended for good, and the pod can't become what it has to be by that:
// it has failed, or it is one of a workload whose pods must stay ready, as one with a container that has ended can't.
// k8s.io/kubernetes/pkg/kubelet/status/generate.go, GenerateContainersReadyCondition
func (p *Pod) hasEndedInVain(c *Container) bool {
	if !c.hasEnded() {
		return false
	}
	mustServe := p.Policy == corev1.RestartPolicyAlways && p.Owner.UID != ""
	return c.Terminated.ExitCode != 0 || mustServe && !c.Init
}
