package apply_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"deployer/apply/decide"
)

// template is a strategic merge patch of the pods' template of the Deployment x.
func template(containerFields, podFields string) string {
	if containerFields != "" {
		containerFields = `"containers":[{"name":"c",` + containerFields + `}]`
	}
	return `{"spec":{"template":{"spec":{` + strings.Trim(containerFields+","+podFields, ",") + `}}}}`
}

const (
	volume   = ", volumes: [{name: v%s}]"
	budget   = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: x}\nspec: {selector: {matchLabels: {a: b}}, %s}"
	ingress  = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: x}\nspec: {defaultBackend: {%s}}"
	webhooks = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: NS}\nwebhooks: [{name: x.example.com, admissionReviewVersions: [v1], sideEffects: None, clientConfig: {%s}}]"
)

// The chart moves from one member of a union to another one while others own something in the old one, or nobody owns
// it: it goes with all of that, whatever the policy for conflicts, and is told as taken.
func TestFormerMemberGoesWithWhatOthersHaveInIt(t *testing.T) {
	t.Parallel()
	strategy := func(s string) string { return strings.Replace(pod("", ""), "replicas: 0", "replicas: 0"+s, 1) }
	for name, c := range map[string]struct{ from, edit, to string }{
		"volume":            {pod("", fmt.Sprintf(volume, ", emptyDir: {}")), template("", `"volumes":[{"name":"v","emptyDir":{"sizeLimit":"1Gi"}}]`), pod("", fmt.Sprintf(volume, ", persistentVolumeClaim: {claimName: x}"))},
		"sourceless volume": {pod("", fmt.Sprintf(volume, "")), template("", `"volumes":[{"name":"v","emptyDir":{"sizeLimit":"1Gi"}}]`), pod("", fmt.Sprintf(volume, ", secret: {secretName: x}"))},
		"to the default":    {pod("", fmt.Sprintf(volume, ", configMap: {name: x}")), template("", `"volumes":[{"name":"v","configMap":{"optional":true}}]`), pod("", fmt.Sprintf(volume, ""))},
		"dropped volume":    {pod("", fmt.Sprintf(volume, ", configMap: {name: x}")), template("", `"volumes":[{"name":"v","configMap":{"optional":true}}]`), pod("", "")},
		"probe":             {pod(", livenessProbe: {httpGet: {port: 80}}", ""), template(`"livenessProbe":{"httpGet":{"httpHeaders":[{"name":"X","value":"v"}]}}`, ""), pod(", livenessProbe: {tcpSocket: {port: 80}}", "")},
		"dropped probe":     {pod(", livenessProbe: {httpGet: {port: 80}}", ""), template(`"livenessProbe":{"httpGet":{"httpHeaders":[{"name":"X","value":"v"}]}}`, ""), pod("", "")},
		"lifecycle":         {pod(", lifecycle: {preStop: {httpGet: {port: 80}}}", ""), template(`"lifecycle":{"preStop":{"httpGet":{"path":"/x"}}}`, ""), pod(", lifecycle: {preStop: {exec: {command: [x]}}}", "")},
		"variable":          {pod(", env: [{name: A, valueFrom: {configMapKeyRef: {name: x, key: k}}}]", ""), template(`"env":[{"name":"A","valueFrom":{"configMapKeyRef":{"name":"x","key":"k","optional":true}}}]`, ""), pod(", env: [{name: A, value: x}]", "")},
		"variable's source": {pod(", env: [{name: A, valueFrom: {configMapKeyRef: {name: x, key: k}}}]", ""), template(`"env":[{"name":"A","valueFrom":{"configMapKeyRef":{"name":"x","key":"k","optional":true}}}]`, ""), pod(", env: [{name: A, valueFrom: {secretKeyRef: {name: x, key: k}}}]", "")},
		"strategy":          {strategy(", strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}"), `{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":2}}}}`, strategy(", strategy: {type: Recreate}")},
		"ingress":           {fmt.Sprintf(ingress, "service: {name: a, port: {number: 80}}"), `{"spec":{"defaultBackend":{"service":{"port":{"name":null,"number":81}}}}}`, fmt.Sprintf(ingress, "resource: {apiGroup: g.example.com, kind: B, name: a}")},
		"affinity":          {service("sessionAffinity: ClientIP, ports: [{port: 80}]"), `{"spec":{"sessionAffinityConfig":{"clientIP":{"timeoutSeconds":5}}}}`, service("sessionAffinity: None, ports: [{port: 80}]")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, policy := range []decide.ConflictPolicy{decide.TakeConflicts, decide.FailOnConflict, decide.YieldConflicts} {
				s := newStory(t)
				s.deploy(c.to)
				want := s.content(c.to)
				s = newStory(t)
				s.deploy(c.from)
				live := s.manifests(c.from)[0].Object
				s.patch(live.GetAPIVersion(), live.GetKind(), live.GetName(), types.StrategicMergePatchType, c.edit, "operator")
				s.opts.Conflicts = policy
				p := s.deploy(c.to)
				if got := outcomes(p); !strings.Contains(got, "(taken by operator)") && name != "dropped volume" { // an apply itself removes the item
					t.Errorf("%s: conflicts: %s", policy, got)
				}
				if got := warnings(p); strings.Contains(got, "stays") {
					t.Errorf("%s: warnings: %s", policy, got)
				}
				if got := s.content(c.to); got != want {
					t.Errorf("%s:\n%s\nwant\n%s", policy, got, want)
				}
				s.expect(s.deploy(c.to))
			}
		})
	}
}

// Somebody has put another member into a union than the chart's: that is a conflict like others.
func TestMemberPutInByHandIsAConflict(t *testing.T) {
	t.Parallel()
	strategy := func(s string) string { return strings.Replace(pod("", ""), "replicas: 0", "replicas: 0"+s, 1) }
	for name, c := range map[string]struct{ chart, edit string }{
		"volume":            {pod("", fmt.Sprintf(volume, ", emptyDir: {}")), template("", `"volumes":[{"name":"v","emptyDir":null,"configMap":{"name":"y"}}]`)},
		"sourceless volume": {pod("", fmt.Sprintf(volume, "")), template("", `"volumes":[{"name":"v","emptyDir":null,"configMap":{"name":"y"}}]`)},
		"probe":             {pod(", livenessProbe: {httpGet: {port: 80}}", ""), template(`"livenessProbe":{"httpGet":null,"tcpSocket":{"port":81}}`, "")},
		"lifecycle":         {pod(", lifecycle: {preStop: {httpGet: {port: 80}}}", ""), template(`"lifecycle":{"preStop":{"httpGet":null,"exec":{"command":["x"]}}}`, "")},
		"variable":          {pod(", env: [{name: A, value: x}]", ""), template(`"env":[{"name":"A","value":null,"valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]`, "")},
		"variable's source": {pod(", env: [{name: A, valueFrom: {configMapKeyRef: {name: x, key: k}}}]", ""), template(`"env":[{"name":"A","valueFrom":{"configMapKeyRef":null,"fieldRef":{"fieldPath":"metadata.name"}}}]`, "")},
		"sub path":          {pod(", volumeMounts: [{name: v, mountPath: /v, subPath: a}]", fmt.Sprintf(volume, ", emptyDir: {}")), template(`"volumeMounts":[{"mountPath":"/v","subPath":null,"subPathExpr":"b"}]`, "")},
		"strategy":          {strategy(", strategy: {type: Recreate}"), `{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":3}}}}`},
		"implied strategy":  {strategy(", strategy: {rollingUpdate: {maxSurge: 1}}"), `{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}`},
		"budget":            {fmt.Sprintf(budget, "minAvailable: 1"), `{"spec":{"minAvailable":null,"maxUnavailable":2}}`},
		"ingress":           {fmt.Sprintf(ingress, "service: {name: a, port: {number: 80}}"), `{"spec":{"defaultBackend":{"service":null,"resource":{"apiGroup":"g.example.com","kind":"B","name":"b"}}}}`},
		"affinity":          {service("sessionAffinity: None, ports: [{port: 80}]"), `{"spec":{"sessionAffinity":"ClientIP","sessionAffinityConfig":{"clientIP":{"timeoutSeconds":5}}}}`},
		"service":           {service("type: ClusterIP, ports: [{port: 80}]"), `{"spec":{"type":"LoadBalancer","loadBalancerClass":"example.com/x","loadBalancerSourceRanges":["10.0.0.0/8"]}}`},
		"stated strategy":   {strategy(", strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}"), `{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}`},
		"stated affinity":   {service("sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 5}}, ports: [{port: 80}]"), `{"spec":{"sessionAffinity":"None","sessionAffinityConfig":null}}`},
		"stated ranges":     {service("type: LoadBalancer, allocateLoadBalancerNodePorts: false, loadBalancerSourceRanges: [10.0.0.0/8], ports: [{port: 80}]"), `{"spec":{"type":"ClusterIP","allocateLoadBalancerNodePorts":null,"loadBalancerSourceRanges":null}}`},
		"stated class":      {service("type: LoadBalancer, allocateLoadBalancerNodePorts: false, loadBalancerClass: example.com/x, ports: [{port: 80}]"), `{"spec":{"type":"ClusterIP","allocateLoadBalancerNodePorts":null,"loadBalancerClass":null}}`},
		"stated policy":     {service("type: LoadBalancer, allocateLoadBalancerNodePorts: false, externalTrafficPolicy: Cluster, ports: [{port: 80}]"), `{"spec":{"type":"ClusterIP","allocateLoadBalancerNodePorts":null,"externalTrafficPolicy":null}}`},
		"stated ports":      {service("type: NodePort, ports: [{name: a, port: 80, nodePort: 30061}, {name: b, port: 81, nodePort: 30062}]"), `{"spec":{"type":"ClusterIP"}}`},
		"named port":        {fmt.Sprintf(ingress, "service: {name: a, port: {number: 80}}"), `{"spec":{"defaultBackend":{"service":{"port":{"number":null,"name":"http"}}}}}`},
		"seccomp profile":   {pod("", ", securityContext: {seccompProfile: {type: Localhost, localhostProfile: a}}"), template("", `"securityContext":{"seccompProfile":{"type":"RuntimeDefault","localhostProfile":null}}`)},
		"profile by hand":   {pod("", ", securityContext: {seccompProfile: {type: RuntimeDefault}}"), template("", `"securityContext":{"seccompProfile":{"type":"Localhost","localhostProfile":"a"}}`)},
		"webhook":           {fmt.Sprintf(webhooks, "url: 'https://x.example.com/'"), `{"webhooks":[{"name":"x.example.com","clientConfig":{"url":null,"service":{"name":"s","namespace":"NS"}}}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			s.deploy(c.chart)
			want := s.spec(c.chart)
			live := s.manifests(c.chart)[0].Object
			edit := func(s *story) {
				s.patch(live.GetAPIVersion(), live.GetKind(), live.GetName(), types.StrategicMergePatchType, strings.ReplaceAll(c.edit, "NS", s.ns), "kubectl-edit")
			}
			edit(s)
			s.opts.Conflicts = decide.FailOnConflict
			if err := s.refuse(c.chart); !strings.Contains(err.Error(), "kubectl-edit") {
				t.Errorf("fail: %v", err)
			}
			s.opts.Conflicts = decide.YieldConflicts
			body := s.spec(c.chart)
			p := s.deploy(c.chart)
			if got := outcomes(p); !strings.Contains(got, "kubectl-edit") || strings.Contains(got, "taken") {
				t.Errorf("yield: conflicts: %s", got)
			}
			if got := s.spec(c.chart); got != body {
				t.Errorf("yield:\n%s\nwant\n%s", got, body)
			}
			s.opts.Conflicts = decide.TakeConflicts
			p = s.deploy(c.chart)
			if got := outcomes(p); !strings.Contains(got, "(taken by kubectl-edit)") {
				t.Errorf("take: conflicts: %s", got)
			}
			if got := warnings(p); strings.Contains(got, "stays") {
				t.Errorf("take: warnings: %s", got)
			}
			if got := s.spec(c.chart); got != want {
				t.Errorf("take:\n%s\nwant\n%s", got, want)
			}
			s.expect(s.deploy(c.chart))
		})
	}
}

// A definition that isn't converted by a webhook any more loses what a controller has filled in for the webhook.
func TestConversionIsDropped(t *testing.T) {
	t.Parallel()
	for name, conversion := range map[string]string{"dropped": "", "none": "\n  conversion: {strategy: None}"} {
		s := newStory(t)
		s.dropCRDs(1)
		_, ca := localCertificate(t)
		chart := func(conversion string) string {
			return strings.Replace(definition(0, ""), "\nspec:", "\nspec:"+conversion, 1)
		}
		s.deploy(chart("\n  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: x, name: x, path: /}}}}"))
		s.patch("apiextensions.k8s.io/v1", "CustomResourceDefinition", s.crdName(), merge, `{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":"`+ca+`"}}}}}`, "cainjector")
		if got := outcomes(s.deploy(chart(conversion))); !strings.Contains(got, "spec.conversion.webhook") || !strings.Contains(got, "taken by cainjector") {
			t.Errorf("%s: conflicts: %s", name, got)
		}
		if got := fmt.Sprint(at(s.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", s.crdName()), "spec.conversion")); got != "map[strategy:None]" {
			t.Errorf("%s: conversion: %s", name, got)
		}
		s.expect(s.deploy(chart(conversion)))
	}
}

// spec is what the first object of a chart says.
func (s *story) spec(chart string) string {
	s.t.Helper()
	want := s.manifests(chart)[0].Object
	o := s.get(want.GetAPIVersion(), want.GetKind(), want.GetName())
	return fmt.Sprint(o.Object["spec"], o.Object["webhooks"])
}
