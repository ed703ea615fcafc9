package decide

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = obj.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

// TestWhatActsGoesBefore: what acts on others goes before them, everything else after the wait.
func TestWhatActsGoesBefore(t *testing.T) {
	for gk, want := range map[schema.GroupKind]bool{
		{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:                         true,
		{Group: "autoscaling.k8s.io", Kind: "VerticalPodAutoscaler"}:                    true,
		{Group: "keda.sh", Kind: "ScaledObject"}:                                        true,
		{Kind: "ResourceQuota"}:                                                         true,
		{Kind: "LimitRange"}:                                                            true,
		{Group: "policy", Kind: "PodDisruptionBudget"}:                                  true,
		{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}:      true,
		{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicyBinding"}: true,
		{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   true,
		{Group: "constraints.gatekeeper.sh", Kind: "K8sRequiredLabels"}:                 true,
		{Group: "example.com", Kind: "ResourceQuota"}:                                   false,
		{Kind: "Service"}:                                   false,
		{Kind: "ConfigMap"}:                                 false,
		{Group: "apps", Kind: "Deployment"}:                 false,
		{Group: "networking.k8s.io", Kind: "Ingress"}:       false,
		{Group: "networking.k8s.io", Kind: "NetworkPolicy"}: false,
	} {
		if why := WhyBefore(gk); (why != "") != want {
			t.Errorf("%s: %q, want a reason: %v", gk, why, want)
		}
	}
}

// TestSharedHoldings: what the pods of one workload have, and those of another one can't have beside them.
func TestSharedHoldings(t *testing.T) {
	workload := func(spec string) string {
		return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: n}, spec: {template: {spec: " + spec + "}}}"
	}
	service := func(spec string) string {
		return "{apiVersion: v1, kind: Service, metadata: {name: s, namespace: n}, spec: " + spec + "}"
	}
	ingress := func(class string, hosts string) string {
		return "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i, namespace: n}, spec: {ingressClassName: " + class + ", rules: [" + hosts + "]}}"
	}
	port80 := workload("{containers: [{name: c, ports: [{containerPort: 80, hostPort: 80}]}]}")
	onAddress := func(ip string) string {
		return workload("{containers: [{name: c, ports: [{containerPort: 80, hostPort: 80, hostIP: " + ip + "}]}]}")
	}
	for name, c := range map[string]struct {
		old, next string
		want      string
	}{
		"host port":                  {port80, port80, "hostPort 80/TCP"},
		"another host port":          {port80, workload("{containers: [{name: c, ports: [{containerPort: 80, hostPort: 81}]}]}"), ""},
		"another protocol":           {port80, workload("{containers: [{name: c, ports: [{containerPort: 80, hostPort: 80, protocol: UDP}]}]}"), ""},
		"the network of the host":    {port80, workload("{hostNetwork: true, containers: [{name: c, ports: [{containerPort: 80}]}]}"), "hostPort 80/TCP"},
		"a port of a sidecar":        {port80, workload("{containers: [{name: a}], initContainers: [{name: c, restartPolicy: Always, ports: [{containerPort: 1, hostPort: 80}]}]}"), "hostPort 80/TCP"},
		"other nodes":                {workload("{nodeSelector: {pool: a}, containers: [{name: c, ports: [{containerPort: 80, hostPort: 80}]}]}"), workload("{nodeSelector: {pool: b}, containers: [{name: c, ports: [{containerPort: 80, hostPort: 80}]}]}"), ""},
		"no host port":               {workload("{containers: [{name: c, ports: [{containerPort: 80}]}]}"), workload("{containers: [{name: c, ports: [{containerPort: 80}]}]}"), ""},
		"claim":                      {workload("{containers: [{name: c}], volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}"), workload("{containers: [{name: c}], volumes: [{name: w, persistentVolumeClaim: {claimName: data}}]}"), "claim data"},
		"another claim":              {workload("{containers: [{name: c}], volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}"), workload("{containers: [{name: c}], volumes: [{name: v, persistentVolumeClaim: {claimName: more}}]}"), ""},
		"one address":                {onAddress("127.0.0.1"), onAddress("127.0.0.1"), "hostPort 80/TCP"},
		"all addresses":              {onAddress("127.0.0.1"), port80, "hostPort 80/TCP"},
		"every address":              {onAddress("127.0.0.1"), onAddress("0.0.0.0"), "hostPort 80/TCP"},
		"another address":            {onAddress("127.0.0.1"), onAddress("127.0.0.2"), ""},
		"claim of a StatefulSet":     {"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: n}, spec: {replicas: 2, template: {spec: {containers: [{name: c}]}}, volumeClaimTemplates: [{metadata: {name: data}}]}}", workload("{containers: [{name: c}], volumes: [{name: w, persistentVolumeClaim: {claimName: data-db-1}}]}"), "claim data-db-1"},
		"node port":                  {service("{ports: [{port: 1, nodePort: 30001}]}"), service("{ports: [{port: 2, nodePort: 30001}]}"), "nodePort 30001/TCP"},
		"node ports that are chosen": {service("{type: NodePort, ports: [{port: 1}]}"), service("{type: NodePort, ports: [{port: 1}]}"), ""},
		"cluster address":            {service("{clusterIP: 10.0.0.1}"), service("{clusterIPs: [10.0.0.1]}"), "clusterIP 10.0.0.1"},
		"no cluster address":         {service("{clusterIP: None}"), service("{clusterIP: None}"), ""},
		"address of a load balancer": {service("{loadBalancerIP: 192.0.2.1}"), service("{loadBalancerIP: 192.0.2.1}"), "loadBalancerIP 192.0.2.1"},
		"host":                       {ingress("a", "{host: x.test}"), ingress("a", "{host: y.test}, {host: x.test}"), "host x.test"},
		"host of another class":      {ingress("a", "{host: x.test}"), ingress("b", "{host: x.test}"), ""},
		"default PriorityClass":      {"{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: a}, globalDefault: true}", "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: b}, globalDefault: true}", "the place of the default PriorityClass"},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			for _, shared := range SharedHoldings(HoldingsOf(parsed(t, c.old)), HoldingsOf(parsed(t, c.next))) {
				got = shared.What
			}
			if got != c.want {
				t.Errorf("shared is %q, want %q", got, c.want)
			}
		})
	}
}

// TestIsRenamed: only what must not run beside its next version makes room for it.
func TestIsRenamed(t *testing.T) {
	workload := func(kind, name, image, strategy string) *unstructured.Unstructured {
		return parsed(t, "{apiVersion: apps/v1, kind: "+kind+", metadata: {name: "+name+", namespace: n}, spec: {strategy: {type: "+strategy+"}, template: {spec: {containers: [{name: c, image: '"+image+"'}]}}}}")
	}
	for name, c := range map[string]struct {
		old, next    *unstructured.Unstructured
		sameTemplate bool
		want         bool
	}{
		"StatefulSet":                 {workload("StatefulSet", "a", "db:1", ""), workload("StatefulSet", "b", "db:2", ""), false, true},
		"StatefulSet of a registry":   {workload("StatefulSet", "a", "r:5000/db:1", ""), workload("StatefulSet", "b", "r:5000/db@sha256:1", ""), false, true},
		"another StatefulSet":         {workload("StatefulSet", "a", "db:1", ""), workload("StatefulSet", "b", "queue:2", ""), false, false},
		"the template's other output": {workload("StatefulSet", "a", "db:1", ""), workload("StatefulSet", "b", "queue:2", ""), true, false},
		"another registry":            {workload("StatefulSet", "a", "r.test/old/db:1", ""), workload("StatefulSet", "b", "r.test/new/db:2", ""), true, true},
		"another's image of the name": {workload("StatefulSet", "a", "r.test/old/db:1", ""), workload("StatefulSet", "b", "r.test/new/db:2", ""), false, false},
		"Recreate":                    {workload("Deployment", "a", "db:1", "Recreate"), workload("Deployment", "b", "db:2", "RollingUpdate"), true, true},
		"RollingUpdate":               {workload("Deployment", "a", "db:1", "RollingUpdate"), workload("Deployment", "b", "db:2", "Recreate"), true, false},
		"another kind":                {workload("StatefulSet", "a", "db:1", ""), workload("Deployment", "b", "db:1", ""), true, false},
	} {
		if got := IsRenamed(c.old, c.next, c.sameTemplate); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestMayEndWithout: what keeps pods from running, and what may have it.
func TestMayEndWithout(t *testing.T) {
	workload := func(spec string) string {
		return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: shop}, spec: {template: {spec: " + spec + "}}}"
	}
	plain := workload("{containers: [{name: c}]}")
	onPort := workload("{containers: [{name: c, ports: [{containerPort: 80, hostPort: 80}]}]}")
	withClaim := workload("{containers: [{name: c}], volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}")
	config := "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}}"
	quota := func(resources string) string {
		return `pods "p" is forbidden: exceeded quota: q, requested: ` + resources + ", used: pods=1, limited: pods=1"
	}
	for name, c := range map[string]struct {
		message, obj string
		want         bool
	}{
		"room for pods":               {quota("limits.cpu=1,pods=1"), plain, true},
		"room for ReplicaSets":        {quota("count/replicasets.apps=1"), plain, true},
		"room for what isn't a pod":   {quota("count/configmaps=1,secrets=1"), plain, false},
		"pods, and no pod":            {quota("pods=1"), config, false},
		"room for ConfigMaps":         {quota("configmaps=1"), config, true},
		"room, counted":               {quota("count/configmaps=1"), config, true},
		"room elsewhere":              {quota("pods=1"), strings.Replace(plain, "namespace: shop", "namespace: other", 1), false},
		"storage":                     {quota("fast.storageclass.storage.k8s.io/requests.storage=1Gi"), "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, namespace: shop}}", true},
		"ports":                       {"0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.", onPort, true},
		"ports, and a pod without":    {"0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.", plain, false},
		"resources of nodes":          {"0/1 nodes are available: 1 Insufficient cpu.", plain, true},
		"resources, and no pod":       {"0/1 nodes are available: 1 Insufficient cpu.", config, false},
		"devices":                     {"0/1 nodes are available: 1 cannot allocate all claims.", plain, true},
		"a volume of one pod":         {"0/1 nodes are available: 1 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod.", withClaim, true},
		"a volume of one node":        {`Multi-Attach error for volume "v" Volume is already used by pod(s) p`, withClaim, true},
		"a volume, and a pod without": {`Multi-Attach error for volume "v" Volume is already used by pod(s) p`, plain, false},
		"nodes that don't fit":        {"0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.", plain, false},
	} {
		if got := (Shortage{Namespace: "shop", Message: c.message}).MayEndWithout(parsed(t, c.obj)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
