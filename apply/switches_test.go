package apply_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply"
)

// pod is a Deployment around a container, volumes and the like.
func pod(container, rest string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i" +
		container + "}]" + rest + "}}}"
}

func service(spec string) string {
	return "apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {" + spec + "}"
}

// switches are changes from one alternative of a kind to another, where
// defaults chosen for the first don't go with the second.
var switches = map[string][2]string{
	"probe":           {pod(", livenessProbe: {httpGet: {port: 80}}", ""), pod(", livenessProbe: {exec: {command: [x]}}", "")},
	"probe to tcp":    {pod(", readinessProbe: {exec: {command: [x]}, periodSeconds: 3}", ""), pod(", readinessProbe: {tcpSocket: {port: 80}}", "")},
	"probe to none":   {pod(", startupProbe: {httpGet: {port: 80}}", ""), pod("", "")},
	"lifecycle":       {pod(", lifecycle: {preStop: {exec: {command: [x]}}}", ""), pod(", lifecycle: {preStop: {httpGet: {port: 80}}}", "")},
	"variable":        {pod(", env: [{name: A, value: x}]", ""), pod(", env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]", "")},
	"variable source": {pod(", env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]", ""), pod(", env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]", "")},
	"volume":          {pod("", ", volumes: [{name: v, configMap: {name: x}}]"), pod("", ", volumes: [{name: v, emptyDir: {}}]")},
	"volume source":   {pod("", ", volumes: [{name: v, emptyDir: {}}]"), pod("", ", volumes: [{name: v, projected: {sources: [{secret: {name: s}}]}}]")},
	"sourceless":      {pod("", ", volumes: [{name: v}]"), pod("", ", volumes: [{name: v, persistentVolumeClaim: {claimName: x}}]")},
	"null source":     {pod("", ", volumes: [{name: v, emptyDir: }]"), pod("", ", volumes: [{name: v, hostPath: {path: /x}}]")},
	"two nulls":       {pod("", ", volumes: [{name: v, emptyDir: , configMap: {name: x}}]"), pod("", ", volumes: [{name: v, emptyDir: {sizeLimit: 1Gi}}]")},
	"no source":       {pod("", ", volumes: [{name: v}]"), pod("", ", volumes: [{name: v, emptyDir: {medium: Memory}}]")},
	"sources":         {pod("", ", volumes: [{name: v, projected: {sources: [{secret: {name: s}}]}}]"), pod("", ", volumes: [{name: v, projected: {sources: [{configMap: {name: s}}]}}]")},
	"downward":        {pod("", ", volumes: [{name: v, downwardAPI: {items: [{path: p, fieldRef: {fieldPath: metadata.name}}]}}]"), pod("", ", volumes: [{name: v, downwardAPI: {items: [{path: p, resourceFieldRef: {containerName: c, resource: limits.cpu}}]}}]")},
	"sub path":        {pod(", volumeMounts: [{name: v, mountPath: /v, subPath: a}]", ", volumes: [{name: v, emptyDir: {}}]"), pod(", env: [{name: A, value: x}], volumeMounts: [{name: v, mountPath: /v, subPathExpr: $(A)}]", ", volumes: [{name: v, emptyDir: {}}]")},
	"env from":        {pod(", envFrom: [{configMapRef: {name: x}}]", ""), pod(", envFrom: [{secretRef: {name: x}}]", "")},
	"seccomp":         {pod(", securityContext: {seccompProfile: {type: Localhost, localhostProfile: x.json}}", ""), pod(", securityContext: {seccompProfile: {type: RuntimeDefault}}", "")},
	"app armor":       {pod(", securityContext: {appArmorProfile: {type: Localhost, localhostProfile: x}}", ""), pod(", securityContext: {appArmorProfile: {type: Unconfined}}", "")},
	"grpc probe":      {pod(", livenessProbe: {grpc: {port: 80}}", ""), pod(", livenessProbe: {tcpSocket: {port: 80}}", "")},
	"sleep":           {pod(", lifecycle: {preStop: {sleep: {seconds: 1}}}", ""), pod(", lifecycle: {postStart: {exec: {command: [x]}}}", "")},
	"host ports":      {pod(", ports: [{containerPort: 80}]", ", hostNetwork: true"), pod(", ports: [{containerPort: 80}]", "")},
	"account":         {pod("", ", serviceAccountName: x"), pod("", "")},
	"former account":  {pod("", ", serviceAccount: x"), pod("", ", serviceAccountName: z")},
	"context":         {pod(", securityContext: {runAsUser: 1}", ""), pod(", securityContext: {}", "")},
	"limits":          {pod(", resources: {limits: {cpu: 1, memory: 1Gi}}", ""), pod(", resources: {limits: {memory: 2Gi}}", "")},
	"lower limits":    {pod(", resources: {limits: {cpu: 2}}", ""), pod(", resources: {limits: {cpu: 1}}", "")},
	"directions": {
		"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: x}\nspec: {podSelector: {}, ingress: [{}]}",
		"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: x}\nspec: {podSelector: {}, ingress: [{}], egress: [{}]}",
	},
	"strategy": {pod("", ""), strings.Replace(pod("", ""), "replicas: 0", "replicas: 0, strategy: {type: Recreate}", 1)},

	"daemon set": {
		"apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: x}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {nodeSelector: {no: where}, containers: [{name: c, image: i}]}}}",
		"apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: x}\nspec: {updateStrategy: {type: OnDelete}, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {nodeSelector: {no: where}, containers: [{name: c, image: i}]}}}",
	},
	"stateful set": {
		"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: x}\nspec: {replicas: 0, serviceName: x, updateStrategy: {type: OnDelete}, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}",
		"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: x}\nspec: {replicas: 0, serviceName: x, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}",
	},
	"disruption budget": {
		"apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: x}\nspec: {minAvailable: 1, selector: {matchLabels: {a: b}}}",
		"apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: x}\nspec: {maxUnavailable: 1, selector: {matchLabels: {a: b}}}",
	},
	"ingress backend": {
		"apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: x}\nspec: {defaultBackend: {service: {name: a, port: {number: 80}}}}",
		"apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: x}\nspec: {defaultBackend: {service: {name: a, port: {name: http}}}}",
	},
	"ingress resource": {
		"apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: x}\nspec: {defaultBackend: {service: {name: a, port: {number: 80}}}}",
		"apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: x}\nspec: {defaultBackend: {resource: {apiGroup: k8s.example.com, kind: Bucket, name: a}}}",
	},
	"ingress paths": {
		"apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: x}\nspec: {rules: [{http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}}]}",
		"apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: x}\nspec: {rules: [{http: {paths: [{path: /, pathType: Prefix, backend: {resource: {apiGroup: k8s.example.com, kind: Bucket, name: a}}}]}}]}",
	},
	"network peers": {
		"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: x}\nspec: {podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8}}]}]}",
		"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: x}\nspec: {podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {a: b}}}]}]}",
	},
	"metrics": {
		"apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: x}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: w}, maxReplicas: 3, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}",
		"apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: x}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: w}, maxReplicas: 3, metrics: [{type: External, external: {metric: {name: q}, target: {type: AverageValue, averageValue: 5}}}]}",
	},
	"autoscaler's version": {
		"apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: x}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: w}, maxReplicas: 3, targetCPUUtilizationPercentage: 50}",
		"apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: x}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: w}, maxReplicas: 3, metrics: [{type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 1Gi}}}], behavior: {scaleDown: {stabilizationWindowSeconds: 5}}}",
	},
	"autoscaler's behaviour": {
		"apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: x}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: w}, maxReplicas: 3, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}], behavior: {scaleDown: {stabilizationWindowSeconds: 5}}}",
		"apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: x}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: w}, maxReplicas: 3, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}",
	},
	"network policy": {
		"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: x}\nspec: {podSelector: {}, ingress: [{}]}",
		"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: x}\nspec: {podSelector: {matchLabels: {a: b}}, policyTypes: [Egress]}",
	},
	"cron job": {
		"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: x}\nspec: {suspend: true, schedule: '0 0 * * *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}",
		"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: x}\nspec: {suspend: true, schedule: '0 0 * * *', concurrencyPolicy: Forbid, jobTemplate: {spec: {completionMode: Indexed, completions: 2, template: {spec: {restartPolicy: OnFailure, containers: [{name: c, image: i}]}}}}}",
	},
	"role":   {"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: x}\nrules: [{apiGroups: [''], resources: [pods], verbs: [get]}]", "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: x}\nrules: []"},
	"empty":  {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: b}", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}"},
	"binary": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: b}", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nbinaryData: {a: eA==}"},

	"service to node port":     {service("ports: [{port: 80}]"), service("type: NodePort, ports: [{port: 80}]")},
	"service to load balancer": {service("ports: [{port: 80}]"), service("type: LoadBalancer, externalTrafficPolicy: Local, ports: [{port: 80}]")},
	"service to external":      {service("type: NodePort, ports: [{port: 80}]"), service("type: ExternalName, externalName: example.com")},
	"service from external":    {service("type: ExternalName, externalName: example.com"), service("ports: [{port: 80}]")},
	"service from headless":    {service("clusterIP: None, ports: [{port: 80}]"), service("clusterIP: None, publishNotReadyAddresses: true, ports: [{port: 81, name: a}]")},
	"service port":             {service("type: NodePort, ports: [{port: 80, nodePort: 0, name: t, targetPort: http}]"), service("type: NodePort, ports: [{port: 80, name: t, protocol: TCP}, {port: 80, name: u, protocol: UDP}]")},
	"service ranges":           {service("type: LoadBalancer, loadBalancerClass: example.com/x, loadBalancerSourceRanges: [10.0.0.0/8], ports: [{port: 80}]"), service("type: ClusterIP, ports: [{port: 80}]")},
	"service affinity default": {service("sessionAffinity: ClientIP, ports: [{port: 80}]"), service("sessionAffinity: None, ports: [{port: 80}]")},
	"service affinity dropped": {service("sessionAffinity: ClientIP, ports: [{port: 80}]"), service("ports: [{port: 80}]")},
	"service affinity":         {service("sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 5}}, ports: [{port: 80}]"), service("ports: [{port: 80}]")},
}

// An object that goes from one alternative to the other, or back, is
// as if it had been made so.
func TestSwitches(t *testing.T) {
	t.Parallel()
	for name, pair := range switches {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "sleep" {
				newStory(t).c.Since(t, "1.30", "the lifecycle handler sleep")
			}
			for i, from := range pair {
				to := pair[1-i]
				fresh := newStory(t)
				fresh.deploy(to)
				want := fresh.content(to)
				for _, legacy := range []bool{true, false} {
					s := newStory(t)
					s.install(from, legacy)
					s.deploy(to)
					if got := s.content(to); got != want {
						t.Errorf("back=%v helm3=%v\n%s\nhas become\n%s\nwant\n%s", i == 1, legacy, from, got, want)
					}
					s.expect(s.deploy(to))
				}
			}
		})
	}
}

// What a custom resource states as empty is empty, and not null, whatever was in
// it, and is so at once. Not everything named env has names.
func TestEmptied(t *testing.T) {
	t.Parallel()
	for _, legacy := range []bool{true, false} {
		s := newStory(t)
		s.dropCRDs(1)
		s.crds = definition(0, "")
		s.deploy("")
		s.install(foo(0, "size: 5, any: {a: {b: 1}, l: [{name: x, m: {y: 1}}]}, things: [{name: a}]"), legacy)
		for _, step := range [][2]string{
			{"size: 6, any: {a: {}, l: [{name: x, m: {}}]}, things: []", "map[any:map[a:map[] l:[map[m:map[] name:x]]] deflt:abc size:6 things:[]]"},
			{"size: 6, any: {}, things: []", "map[any:map[] deflt:abc size:6 things:[]]"},
			{"size: 6, maybe: null, any: {env: [A=1, B=2]}, things: []", "map[any:map[env:[A=1 B=2]] deflt:abc maybe:<nil> size:6 things:[]]"},
			{"size: 7, maybe: null, any: {env: [A=1, B=2], l: {}}", "map[any:map[env:[A=1 B=2] l:map[]] deflt:abc maybe:<nil> size:7 things:[]]"},
		} {
			was := s.generation(s.ns+".example.com/v1", "Foo0", "f")
			s.expect(s.deploy(foo(0, step[0])), "update Foo0/f")
			if got := s.generation(s.ns+".example.com/v1", "Foo0", "f"); got != was+1 {
				t.Errorf("helm3=%v: %s\nis written %d times", legacy, step[0], got-was)
			}
			if got := fmt.Sprint(at(s.get(s.ns+".example.com/v1", "Foo0", "f"), "spec")); got != step[1] {
				t.Errorf("helm3=%v: %s\nhas become %s", legacy, step[0], got)
			}
			s.expect(s.deploy(foo(0, step[0])))
		}
	}
}

// content is the one object of a chart, without what the server and its
// controllers choose.
func (s *story) content(chart string) string {
	s.t.Helper()
	want := s.manifests(chart)[0].Object
	o := s.get(want.GetAPIVersion(), want.GetKind(), want.GetName())
	if m := strings.TrimSuffix(managers(o), " kube-controller-manager/Update"); m != "helm/Apply" {
		s.t.Errorf("managers %s of %s", m, chart)
	}
	for _, path := range []string{
		"status", "metadata.uid", "metadata.resourceVersion", "metadata.generation", "metadata.creationTimestamp", "metadata.managedFields", "metadata.namespace",
		"metadata.finalizers", "spec.clusterIP", "spec.clusterIPs", "spec.healthCheckNodePort",
		"metadata.annotations.deployment\\kubernetes\\io/revision", "metadata.annotations.deprecated\\daemonset\\template\\generation",
		"metadata.annotations.autoscaling\\alpha\\kubernetes\\io/conditions", // the status of an autoscaler as v1 shows it
	} {
		var keys []string
		for _, key := range strings.Split(path, ".") {
			keys = append(keys, strings.ReplaceAll(key, "\\", "."))
		}
		unstructured.RemoveNestedField(o.Object, keys...)
	}
	ports, _, _ := unstructured.NestedSlice(o.Object, "spec", "ports")
	for _, p := range ports {
		m := p.(map[string]any)
		if _, ok := m["nodePort"]; ok {
			m["nodePort"] = "chosen"
		}
	}
	if len(ports) > 0 {
		_ = unstructured.SetNestedSlice(o.Object, ports, "spec", "ports")
	}
	data, err := json.MarshalIndent(o.Object, "", " ")
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.ReplaceAll(string(data), s.ns, "NS")
}

// The one switch that the API server doesn't make is told, once.
func TestStaysHeadless(t *testing.T) {
	headless, plain := service("clusterIP: None, ports: [{port: 80}]"), service("ports: [{port: 80}]")
	for _, legacy := range []bool{true, false} {
		s := newStory(t)
		s.install(headless, legacy)
		if got := warnings(s.deploy(headless)); got != "" {
			t.Errorf("helm3=%v: the chart states it, and there is %s", legacy, got)
		}
		if got := warnings(s.deploy(plain)); !strings.Contains(got, "no longer sets spec.clusterIP: None, but it stays") {
			t.Errorf("helm3=%v: warnings: %s", legacy, got)
		}
		if got := warnings(s.deploy(plain)); got != "" {
			t.Errorf("helm3=%v: told again: %s", legacy, got)
		}
		var broken *apply.ImmutableError
		if err := s.refuse(service("type: NodePort, ports: [{port: 80}]")); !errors.As(err, &broken) || !strings.Contains(broken.Hint(), "--allow-recreate") {
			t.Errorf("helm3=%v: a type that needs an address: %v", legacy, err)
		}
	}
}
