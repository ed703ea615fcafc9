package diff

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/yaml"

	"deployer/apply"
	"deployer/apply/compare"
)

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	if strings.TrimSpace(text) == "" {
		return nil
	}
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return &unstructured.Unstructured{Object: m}
}

// changeOf is a change of an object whose kind has no schema.
func changeOf(t testing.TB, before, after, stated *unstructured.Unstructured, partial bool) apply.Change {
	t.Helper()
	c := apply.Change{Live: before, Desired: stated, Predicted: after}
	states := compare.States{Before: before, After: after, Desired: stated, AfterIsManifest: partial}
	if partial {
		c.Desired, c.Predicted, states.Desired = after, nil, after
	}
	if before == nil {
		states.Before = &unstructured.Unstructured{Object: map[string]any{}}
	}
	var err error
	if c.Fields, err = compare.Fields(managedfields.NewDeducedTypeConverter(), states); err != nil {
		t.Fatal(err)
	}
	return c
}

// lines writes changes so that a test can be read.
func lines(changes []Field) string {
	var b strings.Builder
	for _, c := range changes {
		before, _ := json.Marshal(c.Before)
		after, _ := json.Marshal(c.After)
		fmt.Fprintf(&b, "%s %s %s -> %s", c.Type, c.Path, before, after)
		if c.Hidden {
			b.WriteString(" secret")
		}
		if c.ByServer {
			b.WriteString(" server")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestFields(t *testing.T) {
	for _, test := range []struct {
		name, before, after, stated, want string
		partial                           bool
	}{
		{name: "equal", before: "a: 1", after: "a: 1"},
		{name: "number kinds", before: "a: 1", after: "a: 1.0"},
		{name: "null is absent", before: "a: null", after: "b: null"},
		{name: "scalar", before: "spec: {replicas: 1}", after: "spec: {replicas: 3}", want: "changed spec.replicas 1 -> 3\n"},
		{
			name:   "noise",
			before: "metadata: {name: a, uid: x, resourceVersion: '1', generation: 1, managedFields: []}\nstatus: {a: 1}",
			after:  "metadata: {name: a, uid: y, resourceVersion: '2', generation: 2, annotations: {deployment.kubernetes.io/revision: '3'}}\nstatus: {a: 2}",
		},
		{
			name:   "noise keeps neighbours",
			before: "metadata: {annotations: {deployment.kubernetes.io/revision: '2', a: x}}",
			after:  "metadata: {annotations: {deployment.kubernetes.io/revision: '3', a: z}}",
			want:   "changed metadata.annotations.a \"x\" -> \"z\"\n",
		},
		{
			name:   "keys with dots",
			before: "metadata: {labels: {app.kubernetes.io/name: a}}",
			after:  "metadata: {labels: {app.kubernetes.io/name: b}}",
			want:   "changed metadata.labels.\"app.kubernetes.io/name\" \"a\" -> \"b\"\n",
		},
		{
			name:   "list by name, order changed as well",
			before: "spec: {containers: [{name: a, image: x:1}, {name: b, image: y:1}]}",
			after:  "spec: {containers: [{name: b, image: y:1}, {name: a, image: x:2}]}",
			want:   "changed spec.containers[name=\"a\"].image \"x:1\" -> \"x:2\"\n",
		},
		{
			name:   "order only",
			before: "spec: {env: [{name: a}, {name: b}]}",
			after:  "spec: {env: [{name: b}, {name: a}]}",
			want:   "changed spec.env [\"name=\\\"a\\\"\",\"name=\\\"b\\\"\"] -> [\"name=\\\"b\\\"\",\"name=\\\"a\\\"\"]\n",
		},
		{
			name:   "container ports",
			before: "ports: [{containerPort: 80, protocol: TCP, name: a}, {containerPort: 80, protocol: UDP}]",
			after:  "ports: [{containerPort: 80, protocol: TCP, name: b}, {containerPort: 80, protocol: UDP}]",
			want:   "changed ports[containerPort=80,protocol=\"TCP\"].name \"a\" -> \"b\"\n",
		},
		{
			name:   "service ports, protocol by default",
			before: "ports: [{port: 80}, {port: 81}]",
			after:  "ports: [{port: 80, protocol: TCP}, {port: 81, targetPort: 8}]",
			want:   "added ports[port=80,protocol=\"TCP\"].protocol null -> \"TCP\"\nadded ports[port=81,protocol=\"TCP\"].targetPort null -> 8\n",
		},
		{
			name:   "mounts, aliases, spread",
			before: "volumeMounts: [{mountPath: /a, name: x}]\nhostAliases: [{ip: 1.2.3.4, hostnames: [a]}]\ntopologySpreadConstraints: [{topologyKey: z, whenUnsatisfiable: DoNotSchedule, maxSkew: 1}]",
			after:  "volumeMounts: [{mountPath: /a, name: z}]\nhostAliases: [{ip: 1.2.3.4, hostnames: [b]}]\ntopologySpreadConstraints: [{topologyKey: z, whenUnsatisfiable: DoNotSchedule, maxSkew: 2}]",
			want: "changed hostAliases[ip=\"1.2.3.4\"].hostnames[0] \"a\" -> \"b\"\n" +
				"changed topologySpreadConstraints[topologyKey=\"z\",whenUnsatisfiable=\"DoNotSchedule\"].maxSkew 1 -> 2\n" +
				"changed volumeMounts[mountPath=\"/a\"].name \"x\" -> \"z\"\n",
		},
		{
			name:   "twice the same key falls back to positions",
			before: "x: [{name: a, v: 1}, {name: a, v: 2}]",
			after:  "x: [{name: a, v: 1}, {name: a, v: 3}]",
			want:   "changed x[1].v 2 -> 3\n",
		},
		{
			name: "scalars by what they have in common", before: "args: [a, b, c, d]", after: "args: [a, c, x, d]",
			want: "removed args[1] \"b\" -> null\nadded args[2] null -> \"x\"\n",
		},
		{name: "type changed", before: "a: {b: 1}", after: "a: [1]", want: "changed a {\"b\":1} -> [1]\n"},
		{
			name: "new subtree without defaults", before: "spec: {}",
			after:  "spec: {containers: [{name: a, image: x, imagePullPolicy: Always}]}",
			stated: "spec: {containers: [{name: a, image: x}]}",
			want:   "added spec.containers null -> [{\"image\":\"x\",\"name\":\"a\"}]\n",
		},
		{
			name: "by the server", before: "spec: {a: 1}", after: "spec: {a: 2, injected: true}", stated: "spec: {a: 2}",
			want: "changed spec.a 1 -> 2\nadded spec.injected null -> true server\n",
		},
		{
			name: "partial says nothing of the rest", partial: true,
			before: "spec: {a: 1, default: x, resources: {limits: {cpu: '1'}}, containers: [{name: a, image: x}, {name: side}]}",
			after:  "spec: {a: 2, resources: {limits: {cpu: 1000m}}, containers: [{name: a, image: z}]}",
			want:   "changed spec.a 1 -> 2\nchanged spec.containers[name=\"a\"].image \"x\" -> \"z\"\n",
		},
		{name: "created", after: "spec: {a: 1}", want: "added spec null -> {\"a\":1}\n"},
		{
			name:   "secret",
			before: "apiVersion: v1\nkind: Secret\ndata: {a: c2VjcmV0, gone: c2VjcmV0, same: c2VjcmV0}\nmetadata: {labels: {x: a}, annotations: {copy: secret}}",
			after:  "apiVersion: v1\nkind: Secret\ndata: {a: c2VjcmV0MQ==, same: c2VjcmV0}\nmetadata: {labels: {x: b}, annotations: {copy: secret1, helm.sh/x: a}}",
			want: "changed data.a null -> null secret\n" +
				"removed data.gone null -> null secret\n" +
				"changed metadata.annotations.copy null -> null secret\n" +
				"added metadata.annotations.\"helm.sh/x\" null -> \"a\"\n" +
				"changed metadata.labels.x \"a\" -> \"b\"\n",
		},
		{
			name: "new secret", after: "apiVersion: v1\nkind: Secret\nstringData: {a: b}\nodd: [secret]\nextra: secret",
			want: "added apiVersion null -> \"v1\"\nadded extra null -> null secret\nadded kind null -> \"Secret\"\n" +
				"added odd null -> null secret\nadded stringData null -> null secret\n",
		},
		{
			name: "a CustomResource called Secret is open", before: "apiVersion: x.io/v1\nkind: Secret\ndata: {a: b}", after: "apiVersion: x.io/v1\nkind: Secret\ndata: {a: c}",
			want: "changed data.a \"b\" -> \"c\"\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := lines(Fields(changeOf(t, object(t, test.before), object(t, test.after), object(t, test.stated), test.partial), nil))
			if got != test.want {
				t.Errorf("Fields\nbefore %s\nafter  %s\ngot:\n%s\nwant:\n%s", test.before, test.after, got, test.want)
			}
		})
	}
}

func TestMasked(t *testing.T) {
	in := object(t, `
apiVersion: v1
kind: Secret
type: Opaque
metadata: {name: a, uid: x, annotations: {kubectl.kubernetes.io/last-applied-configuration: planted, copy: planted}}
data: {a: cGxhbnRlZA==}
stringData: {b: planted}
status: {}
`)
	got, err := yaml.Marshal(ShownManifest(in))
	if err != nil {
		t.Fatal(err)
	}
	const want = `apiVersion: v1
data:
  a: (hidden)
kind: Secret
metadata:
  annotations:
    copy: (hidden)
  name: a
stringData:
  b: (hidden)
type: Opaque
`
	if string(got) != want {
		t.Errorf("Masked\ngot:\n%s\nwant:\n%s", got, want)
	}
	if v, _, _ := unstructured.NestedString(in.Object, "stringData", "b"); v != "planted" {
		t.Errorf("Masked changed the object: %q", v)
	}
}

func TestUnified(t *testing.T) {
	for _, test := range []struct {
		name, before, after string
		context             int
		want                string
	}{
		{"equal", "a\nb\n", "a\nb\n", 3, ""},
		{"changed", "a\nb\nc\nd\ne\n", "a\nb\nC\nd\ne\n", 1, "...| b|-c|+C| d|..."},
		{"no context", "a\nb\nc\n", "a\nB\nc\n", 0, "...|-b|+B|..."},
		{"two places", "a\nb\nc\nd\ne\nf\n", "A\nb\nc\nd\ne\nF\n", 1, "-a|+A| b|...| e|-f|+F"},
		{"near places", "a\nb\nc\n", "A\nb\nC\n", 3, "-a|+A| b|-c|+C"},
		{"added", "", "a\nb\n", 3, "+a|+b"},
		{"removed", "a\n", "", 3, "-a"},
		{"line end", "a\n", "a", 3, "-a|+a (no line end)"},
		{"negative context", "a\nb\n", "a\nc\n", -1, "...|-b|+c"},
	} {
		if got := strings.Join(Unified(test.before, test.after, test.context), "|"); got != test.want {
			t.Errorf("%s: Unified(%q, %q) = %q, want %q", test.name, test.before, test.after, got, test.want)
		}
	}
}

// FuzzFields holds that no two objects make the walk fail, and that an object
// never differs from itself.
func FuzzFields(f *testing.F) {
	f.Add(`{"a":[{"name":"x"},{"name":"y"}]}`, `{"a":[{"name":"y","b":[1,2]}]}`)
	f.Add(`{"kind":"Secret","apiVersion":"v1","data":{"a":"planted"}}`, `{"kind":"Secret","apiVersion":"v1","data":[null,"planted"]}`)
	f.Add(`{"metadata":[],"status":1}`, `{"metadata":{"annotations":"x","labels":null}}`)
	f.Add(`{"ports":[{"port":1},{"port":null}]}`, `{"ports":[[],{}],"spec":{"limits":{"cpu":"1"}}}`)
	f.Fuzz(func(t *testing.T, before, after string) {
		var b, a map[string]any
		if json.Unmarshal([]byte(before), &b) != nil || json.Unmarshal([]byte(after), &a) != nil {
			t.Skip()
		}
		x, y := &unstructured.Unstructured{Object: b}, &unstructured.Unstructured{Object: a}
		for _, partial := range []bool{false, true} {
			Fields(changeOf(t, x, y, y, partial), nil)
			if same := Fields(changeOf(t, x, x, nil, partial), nil); len(same) > 0 {
				t.Errorf("differs from itself: %s", lines(same))
			}
		}
		ShownManifest(x)
		Unified(before, after, 2)
	})
}
