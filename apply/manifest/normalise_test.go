package manifest_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/yaml"

	"deployer/apply/manifest"
)

// types gives the types of built-in kinds.
func types(t testing.TB) func(*unstructured.Unstructured) typed.ParseableType {
	t.Helper()
	conv := applyconfigurations.NewTypeConverter(scheme.Scheme)
	known := map[schema.GroupVersionKind]typed.ParseableType{}
	return func(obj *unstructured.Unstructured) typed.ParseableType {
		gvk := obj.GroupVersionKind()
		if found, ok := known[gvk]; ok {
			return found
		}
		known[gvk] = typeOf(conv, gvk)
		return known[gvk]
	}
}

func typeOf(conv managedfields.TypeConverter, gvk schema.GroupVersionKind) typed.ParseableType {
	empty := &unstructured.Unstructured{Object: map[string]any{}}
	empty.SetGroupVersionKind(gvk)
	v, err := conv.ObjectToTyped(empty)
	if err != nil {
		return typed.ParseableType{} // a kind without a schema
	}
	return typed.ParseableType{TypeRef: v.TypeRef(), Schema: v.Schema()}
}

func parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	obj := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

// text writes an object on one line.
func text(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func notes(list []manifest.Note) string {
	var out []string
	for _, n := range list {
		out = append(out, n.String())
	}
	return strings.Join(out, "\n")
}

const (
	podHead = "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: "
	cmHead  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
	secHead = "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n"
	svcHead = "apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: "
	netHead = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: x}\nspec: "
	roles   = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: x}\n"
)

func TestNormalise(t *testing.T) {
	of := types(t)
	for _, tt := range []struct {
		name, in string
		want     string // what becomes of all but apiVersion, kind and name
		notes    string
		problems string
		doubled  string
	}{
		{name: "what is right stays", in: cmHead + "data: {a: b}", want: `{"data":{"a":"b"}}`},
		{name: "null field", in: podHead + "{hostname: null, containers: [{name: a, resources: null}]}", want: `{"spec":{"containers":[{"name":"a"}]}}`},
		{name: "null list", in: podHead + "{volumes: null}", want: `{"spec":{}}`},
		{name: "null list item", in: podHead + "{volumes: [null]}", want: `{"spec":{"volumes":[null]}}`, problems: "spec.volumes[0]: is empty: a list item without a value"},
		{name: "null in a map of strings", in: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, labels: {a: null}}", want: `{"metadata":{"labels":{"a":""}}}`, notes: "metadata.labels.a: has no value: sent as an empty string"},
		{name: "null in data", in: cmHead + "data: {a: null}", want: `{"data":{"a":""}}`, notes: "data.a: has no value: sent as an empty string"},
		{name: "number in data", in: cmHead + "data: {a: 1}", want: `{"data":{"a":""}}`, problems: "data.a: is a number, should be a string: quote it in the template"},
		{name: "metadata of the server", in: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, uid: u, resourceVersion: '1', generation: 2, creationTimestamp: null, selfLink: s, managedFields: []}", want: `{}`},
		{name: "creationTimestamp of a template", in: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {template: {metadata: {creationTimestamp: null}}}", want: `{"spec":{"template":{"metadata":{}}}}`},
		{name: "status", in: podHead + "{}\nstatus: {phase: Running}", want: `{"spec":{}}`},
		{name: "unknown field", in: podHead + "{nodName: a}", want: `{"spec":{}}`, notes: "spec.nodName: is a field this kind doesn't have: not sent"},
		{name: "list for a map", in: podHead + "{securityContext: []}", want: `{"spec":{"securityContext":[]}}`, problems: "spec.securityContext: is a list, should be a map"},
		{name: "map for a list", in: podHead + "{containers: {}}", want: `{"spec":{"containers":{}}}`, problems: "spec.containers: is a map, should be a list"},
		{name: "text for a number", in: podHead + `{priority: high}`, want: `{"spec":{"priority":"high"}}`, problems: "spec.priority: is a string, should be a number"},
		{name: "string for a number", in: podHead + `{priority: "1"}`, want: `{"spec":{"priority":"1"}}`, problems: "spec.priority: is a string, should be a number: remove the quotes in the template"},

		{name: "pull secrets without a name", in: podHead + "{imagePullSecrets: [{name: a}, {name: ''}, {}]}", want: `{"spec":{"imagePullSecrets":[{"name":"a"},{"name":""},{}]}}`},
		{name: "repeated set items", in: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, finalizers: [a, b, a]}", want: `{"metadata":{"finalizers":["a","b"]}}`},
		{name: "repeated list items", in: podHead + "{imagePullSecrets: [{name: a}, {name: a}]}", want: `{"spec":{"imagePullSecrets":[{"name":"a"}]}}`},
		{name: "variable twice", in: podHead + "{containers: [{name: c, env: [{name: A, value: x}, {name: B, value: w}, {name: A, value: z}]}]}", want: `{"spec":{"containers":[{"env":[{"name":"B","value":"w"},{"name":"A","value":"z"}],"name":"c"}]}}`, notes: "spec.containers[0].env: A is set twice: the last one is sent"},
		{name: "variable used in between", in: podHead + "{containers: [{name: c, env: [{name: A, value: x}, {name: B, value: $(A)}, {name: A, value: z}]}]}", want: `{"spec":{"containers":[{"env":[{"name":"A","value":"x"},{"name":"B","value":"$(A)"},{"name":"A","value":"z"}],"name":"c"}]}}`, doubled: "spec.containers[0].env: A is set twice, and B between the two uses it"},
		{name: "variable used by one that is set again", in: podHead + "{containers: [{name: c, env: [{name: A, value: x}, {name: B, value: $(A)}, {name: A, value: z}, {name: B, value: w}]}]}", want: `{"spec":{"containers":[{"env":[{"name":"A","value":"z"},{"name":"B","value":"w"}],"name":"c"}]}}`, notes: "spec.containers[0].env: B is set twice: the last one is sent\nspec.containers[0].env: A is set twice: the last one is sent"},
		{name: "variable that refers to itself", in: podHead + "{containers: [{name: c, env: [{name: A, value: /a}, {name: A, value: '$(A):/b'}, {name: A, value: '$(A):/b'}]}]}", want: `{"spec":{"containers":[{"env":[{"name":"A","value":"/a"},{"name":"A","value":"$(A):/b"},{"name":"A","value":"$(A):/b"}],"name":"c"}]}}`, doubled: "spec.containers[0].env: A is set twice, and the later one uses the earlier one\nspec.containers[0].env: A is set twice, and the later one uses the earlier one"},
		{name: "variable that refers to itself and is set again", in: podHead + "{containers: [{name: c, env: [{name: A, value: /a}, {name: A, value: '$(A):/b'}, {name: A, value: /c}]}]}", want: `{"spec":{"containers":[{"env":[{"name":"A","value":"/c"}],"name":"c"}]}}`, notes: "spec.containers[0].env: A is set twice: the last one is sent\nspec.containers[0].env: A is set twice: the last one is sent"},
		{name: "address twice", in: podHead + "{hostAliases: [{ip: 1.1.1.1, hostnames: [a]}, {ip: 1.1.1.1, hostnames: [b, a]}]}", want: `{"spec":{"hostAliases":[{"hostnames":["a","b"],"ip":"1.1.1.1"}]}}`, notes: `spec.hostAliases: ip="1.1.1.1" is listed twice: sent once with all names`},
		{name: "item without its key", in: podHead + "{containers: [{image: a}]}", want: `{"spec":{"containers":[{"image":"a"}]}}`, problems: "spec.containers[0]: has no name"},

		{name: "protocol", in: podHead + "{containers: [{name: c, ports: [{containerPort: 1}, {containerPort: 1, protocol: UDP}]}]}", want: `{"spec":{"containers":[{"name":"c","ports":[{"containerPort":1,"protocol":"TCP"},{"containerPort":1,"protocol":"UDP"}]}]}}`},
		{name: "the same port twice", in: podHead + "{containers: [{name: c, ports: [{containerPort: 1}, {containerPort: 1, protocol: TCP}]}]}", want: `{"spec":{"containers":[{"name":"c","ports":[{"containerPort":1,"protocol":"TCP"}]}]}}`},
		{name: "one port, two names", in: podHead + "{containers: [{name: c, ports: [{name: a, containerPort: 1}, {name: b, containerPort: 1}]}]}", want: `{"spec":{"containers":[{"name":"c","ports":[{"containerPort":1,"name":"a","protocol":"TCP"},{"containerPort":1,"name":"b","protocol":"TCP"}]}]}}`, doubled: `spec.containers[0].ports: two different items have containerPort=1,protocol="TCP"`},

		{name: "stringData", in: secHead + "stringData: {a: x, b: null}\ndata: {c: eA==, a: b2xk}", want: `{"data":{"a":"eA==","b":"","c":"eA=="}}`, notes: "stringData.b: has no value: sent as an empty string"},
		{name: "stringData of numbers", in: secHead + "stringData: {a: 1234}", want: `{"data":{"a":""}}`, problems: "stringData.a: is a number, should be a string: quote it in the template"},
		{name: "stringData that is no map", in: secHead + "stringData: secret", want: `{}`, problems: "stringData: is not a map"},
		{name: "empty stringData", in: secHead + "stringData: null", want: `{}`},

		{name: "Service: choose for me", in: svcHead + "{clusterIP: '', loadBalancerIP: '', externalName: '', healthCheckNodePort: 0, clusterIPs: [], ports: [{port: 1, nodePort: 0}]}", want: `{"spec":{"ports":[{"port":1,"protocol":"TCP"}]}}`},
		{name: "Service: headless", in: svcHead + "{clusterIP: None}", want: `{"spec":{"clusterIP":"None"}}`},
		{name: "account of a pod", in: podHead + "{serviceAccountName: a, serviceAccount: b}", want: `{"spec":{"serviceAccount":"a","serviceAccountName":"a"}}`},
		{name: "account of a pod by its old name", in: podHead + "{serviceAccount: b, serviceAccountName: null}", want: `{"spec":{"serviceAccount":"b","serviceAccountName":"b"}}`},
		{name: "account of a template", in: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {template: {spec: {serviceAccountName: a}}}", want: `{"spec":{"template":{"spec":{"serviceAccount":"a","serviceAccountName":"a"}}}}`},
		{name: "NetworkPolicy for ingress", in: netHead + "{ingress: [{}], egress: []}", want: `{"spec":{"egress":[],"ingress":[{}],"policyTypes":["Ingress"]}}`},
		{name: "NetworkPolicy for both", in: netHead + "{egress: [{}], policyTypes: null}", want: `{"spec":{"egress":[{}],"policyTypes":["Ingress","Egress"]}}`},
		{name: "NetworkPolicy that says what for", in: netHead + "{egress: [{}], policyTypes: [Egress]}", want: `{"spec":{"egress":[{}],"policyTypes":["Egress"]}}`},
		{name: "ServiceAccount", in: "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: x}\nsecrets: []\nimagePullSecrets: []", want: `{}`},
		{name: "aggregated role", in: roles + "aggregationRule: {clusterRoleSelectors: []}\nrules: []", want: `{"aggregationRule":{"clusterRoleSelectors":[]}}`},
		{name: "aggregated role with rules", in: roles + "aggregationRule: {clusterRoleSelectors: []}\nrules: [{verbs: [get]}]", want: `{"aggregationRule":{"clusterRoleSelectors":[]}}`, notes: "rules: are computed by the cluster for a role with aggregationRule: not sent"},
		{name: "plain role", in: roles + "rules: []", want: `{"rules":[]}`},
		{name: "APIService", in: "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: x}\nspec: {caBundle: Cg==}", want: `{"spec":{}}`},
		{name: "kind without a schema", in: "apiVersion: example.com/v1\nkind: Foo\nmetadata: {name: x}\nspec: {a: null, b: [1, 1]}", want: `{"spec":{"a":null,"b":[1,1]}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := parse(t, tt.in)
			before := text(t, in.Object)
			res := manifest.Normalise(in, manifest.Rules{Type: of(in), Status: true})
			if text(t, in.Object) != before {
				t.Errorf("the argument was changed: %s", text(t, in.Object))
			}
			got := res.Object.DeepCopy().Object
			delete(got, "apiVersion")
			delete(got, "kind")
			unstructured.RemoveNestedField(got, "metadata", "name")
			if meta, ok := got["metadata"].(map[string]any); ok && len(meta) == 0 {
				delete(got, "metadata")
			}
			if text(t, got) != tt.want {
				t.Errorf("%s\ngives %s\nwant  %s", tt.in, text(t, got), tt.want)
			}
			for what, pair := range map[string][2]string{
				"notes": {notes(res.Notes), tt.notes}, "problems": {notes(res.Problems), tt.problems}, "doubled": {notes(res.Duplicates), tt.doubled},
			} {
				if pair[0] != pair[1] {
					t.Errorf("%s: %q, want %q", what, pair[0], pair[1])
				}
			}
			if tt.doubled != "" {
				once := manifest.Normalise(in, manifest.Rules{Type: of(in), DropDuplicates: true})
				if len(once.Duplicates)+len(once.Problems) > 0 || text(t, once.Object) == text(t, res.Object) {
					t.Errorf("Once: %s, %v %v", text(t, once.Object), once.Duplicates, once.Problems)
				}
			}
		})
	}
}

// FuzzNormalise: what has been normalised is normal.
func FuzzNormalise(f *testing.F) {
	of := types(f)
	for i := range uint64(300) {
		f.Add(i)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		obj := arbitrary(rand.New(rand.NewPCG(seed, 1)))
		for _, once := range []bool{false, true} {
			rules := manifest.Rules{Type: of(obj), Status: true, DropDuplicates: once}
			first := manifest.Normalise(obj, rules)
			if len(first.Problems) > 0 {
				continue
			}
			second := manifest.Normalise(first.Object, rules)
			if !reflect.DeepEqual(first.Object, second.Object) {
				t.Errorf("%s\nbecomes %s\nthen    %s", text(t, obj.Object), text(t, first.Object.Object), text(t, second.Object.Object))
			}
			if len(second.Notes)+len(second.Problems) > 0 || notes(second.Duplicates) != notes(first.Duplicates) {
				t.Errorf("%s\nis not normal: %v %v %v", text(t, first.Object.Object), second.Notes, second.Problems, second.Duplicates)
			}
		}
	})
}

// arbitrary makes objects of the sort that charts make, with everything in them
// that is repaired or refused.
func arbitrary(r *rand.Rand) *unstructured.Unstructured {
	name := func() any { return string(rune('a' + r.IntN(3))) }
	pick := func(values ...any) any { return values[r.IntN(len(values))] }
	list := func(item func() any) any {
		switch r.IntN(8) {
		case 0:
			return nil
		case 1:
			return []any{}
		}
		var out []any
		for range 1 + r.IntN(4) {
			out = append(out, item())
		}
		return out
	}
	values := func() any {
		return pick(nil, map[string]any{}, map[string]any{"a": "x", "b": nil}, map[string]any{"a": "eA=="}, map[string]any{"c": pick("x", int64(1), nil)})
	}
	port := func() any {
		return map[string]any{"containerPort": int64(r.IntN(2) + 1), "name": name(), "protocol": pick("TCP", "UDP", nil)}
	}
	env := func() any {
		return map[string]any{"name": name(), "value": pick("x", "$(a)", "$(b)", nil), "valueFrom": pick(nil, nil, map[string]any{"fieldRef": nil})}
	}
	container := func() any {
		return map[string]any{"name": name(), "ports": list(port), "env": list(env), "resources": pick(nil, map[string]any{}), "args": pick(nil, []any{"a", "a"}), "odd": pick(nil, int64(1))}
	}
	pod := map[string]any{
		"containers": list(container), "imagePullSecrets": list(func() any { return map[string]any{"name": name()} }),
		"hostAliases":  list(func() any { return map[string]any{"ip": name(), "hostnames": list(name)} }),
		"nodeSelector": values(), "volumes": list(func() any { return map[string]any{"name": name(), "emptyDir": pick(nil, map[string]any{})} }),
		"tolerations": list(func() any { return map[string]any{"key": name()} }),
	}
	meta := map[string]any{"name": "x", "labels": values(), "finalizers": list(name), "creationTimestamp": nil}
	obj := map[string]any{"metadata": meta, "status": map[string]any{}}
	set := func(apiVersion, kind string, more map[string]any) {
		obj["apiVersion"], obj["kind"] = apiVersion, kind
		for k, v := range more {
			obj[k] = v
		}
	}
	switch r.IntN(6) {
	case 0:
		set("v1", "Secret", map[string]any{"data": values(), "stringData": values()})
	case 1:
		set("v1", "ConfigMap", map[string]any{"data": values(), "binaryData": values()})
	case 2:
		set("v1", "Pod", map[string]any{"spec": pod})
	case 3:
		set("apps/v1", "Deployment", map[string]any{"spec": map[string]any{
			"template": map[string]any{"metadata": map[string]any{"creationTimestamp": nil}, "spec": pod}, "strategy": pick(nil, map[string]any{}), "replicas": pick(nil, int64(1)),
		}})
	case 4:
		set("v1", "Service", map[string]any{"spec": map[string]any{
			"clusterIP": pick("", "None", nil), "selector": values(),
			"ports": list(func() any {
				return map[string]any{"port": int64(r.IntN(2)), "nodePort": pick(int64(0), nil, int64(3)), "name": name(), "protocol": pick("TCP", nil)}
			}),
		}})
	default:
		set("rbac.authorization.k8s.io/v1", "ClusterRole", map[string]any{
			"aggregationRule": pick(nil, map[string]any{}), "rules": list(func() any { return map[string]any{"verbs": list(name)} }),
		})
	}
	return &unstructured.Unstructured{Object: obj}
}

// TestLabelsOfUnknownKindsMustBeStrings fails if labels and annotations are lost:
// what reads them takes none of them when one isn't a string.
func TestLabelsOfUnknownKindsMustBeStrings(t *testing.T) {
	head := "apiVersion: example.com/v1\nkind: Foo\nmetadata: "
	list := manifest.Normalise(parse(t, head+"{name: x, labels: [a]}"), manifest.Rules{})
	if got := notes(list.Problems); got != "metadata.labels: is a list, should be a map" {
		t.Errorf("problems: %s", got)
	}
	got := manifest.Normalise(parse(t, head+"{name: x, labels: {a: b, version: 1}, annotations: {live: true, none: }}"), manifest.Rules{})
	want := "metadata.annotations.live: is a boolean, should be a string: quote it in the template\nmetadata.labels.version: is a number, should be a string: quote it in the template"
	problems := strings.Split(notes(got.Problems), "\n")
	slices.Sort(problems)
	if strings.Join(problems, "\n") != want {
		t.Errorf("problems:\n%s\nwant:\n%s", notes(got.Problems), want)
	}
	if got := notes(got.Notes); got != "metadata.annotations.none: has no value: sent as an empty string" {
		t.Errorf("notes: %s", got)
	}
}
