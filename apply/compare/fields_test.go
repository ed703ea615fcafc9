package compare

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"deployer/apply/fields"
	"deployer/apply/ownership"
)

func pod(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte("apiVersion: v1\nkind: Pod\n" + text))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	obj.SetName("p")
	return obj
}

const managed = `
metadata:
  managedFields:
  - manager: helm
    operation: Apply
    fieldsV1: {f:spec: {f:containers: {'k:{"name":"a"}': {.: {}, f:image: {}, f:env: {'k:{"name":"X"}': {.: {}}, 'k:{"name":"W"}': {.: {}}}}, 'k:{"name":"b"}': {.: {}}}}}
  - {manager: kubectl-edit, operation: Update, fieldsV1: {f:spec: {f:containers: {'k:{"name":"a"}': {f:image: {}}}}}}
`

// Plans, drifts and saved plans all say of a change what is said here.
func TestFields(t *testing.T) {
	for _, test := range []struct {
		name, before, after, desired string
		stated                       bool
		want                         []string // changes, and below each those that it is taken apart into
	}{
		{"nothing", "spec: {nodeName: x}", "spec: {nodeName: x}", "", false, nil},
		{
			"bookkeeping of servers and controllers",
			"metadata: {uid: a, resourceVersion: '1'}\nstatus: {phase: Pending}",
			"metadata: {uid: b, resourceVersion: '2', annotations: {deployment.kubernetes.io/revision: '1'}}\nstatus: {phase: Running}", "", false, nil,
		},
		{
			"bookkeeping beside something else",
			"metadata: {labels: {}}\nspec: {nodeName: x}", "metadata: {labels: {}, annotations: {deployment.kubernetes.io/revision: '1', a: b}}\nspec: {nodeName: x}", "", false,
			[]string{`added metadata.annotations {"a":"b"}`, "  added metadata.annotations.a"},
		},
		{
			"a container that comes, in the order of the list",
			"spec: {containers: [{name: b, image: x}]}", "spec: {containers: [{name: b, image: z}, {name: a, image: z, tty: true}]}",
			"spec: {containers: [{name: b, image: z}, {name: a, image: z}]}", false,
			[]string{
				`changed spec.containers[name="b"].image "x" -> "z"`,
				`added spec.containers[name="a"] {"image":"z","name":"a","tty":true}`,
				`  added spec.containers[name="a"].image`, `  added spec.containers[name="a"].name`, `  added spec.containers[name="a"].tty undeclared`,
			},
		},
		{
			"a container that goes",
			"spec: {containers: [{name: a}, {name: b, args: [x, z]}]}", "spec: {containers: [{name: a}]}", "", false,
			[]string{`removed spec.containers[name="b"] {"args":["x","z"],"name":"b"}`, `  removed spec.containers[name="b"].args`, `  removed spec.containers[name="b"].name`},
		},
		{
			"an atomic map is one field, and is taken apart for those who ask",
			"spec: {nodeSelector: {a: '1', b: '2'}}", "spec: {nodeSelector: {b: '3', c: '4'}}", "", false,
			[]string{
				`changed spec.nodeSelector {"a":"1","b":"2"} -> {"b":"3","c":"4"}`,
				"  removed spec.nodeSelector.a", "  changed spec.nodeSelector.b", "  added spec.nodeSelector.c",
			},
		},
		{
			"owners of a field, and what the chart doesn't state",
			managed + "spec: {containers: [{name: a, image: x}]}", "spec: {containers: [{name: a, image: z}]}", "spec: {containers: [{name: a}]}", false,
			[]string{`changed spec.containers[name="a"].image "x" -> "z" undeclared by helm (Apply), kubectl-edit (Update)`},
		},
		{
			"another order of variables",
			managed + "spec: {containers: [{name: a, env: [{name: X}, {name: W}]}, {name: b}]}", "spec: {containers: [{name: a, env: [{name: W}, {name: X}]}, {name: b}]}", "", false,
			[]string{`reordered spec.containers[name="a"].env ["name=\"X\"","name=\"W\""] -> ["name=\"W\"","name=\"X\""] by helm (Apply)`},
		},
		{
			"another order is not told of where more than the order differs",
			managed + "spec: {containers: [{name: a, env: [{name: X}, {name: W}]}, {name: b}]}", "spec: {containers: [{name: a, env: [{name: W}, {name: X, value: z}]}, {name: b}]}", "", false,
			[]string{`added spec.containers[name="a"].env[name="X"].value "z" by helm (Apply)`},
		},
		{
			"a variable that was there twice",
			"spec: {containers: [{name: a, env: [{name: X, value: '1'}, {name: X, value: '2'}]}]}", "spec: {containers: [{name: a, env: [{name: X, value: '2'}]}]}", "", false,
			[]string{`changed spec.containers[name="a"].env[name="X"] [{"name":"X","value":"1"},{"name":"X","value":"2"}] -> {"name":"X","value":"2"}`},
		},
		{
			"an object as a chart states it",
			"spec: {nodeName: x, containers: [{name: a, image: x, resources: {limits: {cpu: '1', memory: 1Gi}}}, {name: b}]}",
			"spec: {containers: [{name: a, image: z, resources: {limits: {cpu: 1000m, memory: 2Gi}}}]}", "", true,
			[]string{`changed spec.containers[name="a"].image "x" -> "z"`, `changed spec.containers[name="a"].resources.limits.memory "1Gi" -> "2Gi"`},
		},
		{
			"a port without a protocol",
			"spec: {containers: [{name: a, ports: [{containerPort: 80}]}]}", "spec: {containers: [{name: a, ports: [{containerPort: 80, protocol: TCP, name: x}]}]}", "", false,
			[]string{
				`added spec.containers[name="a"].ports[containerPort=80,protocol="TCP"].name "x"`,
				`added spec.containers[name="a"].ports[containerPort=80,protocol="TCP"].protocol "TCP"`,
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := States{Before: pod(t, test.before), After: pod(t, test.after), AfterIsManifest: test.stated}
			if test.desired != "" {
				s.Desired = pod(t, test.desired)
			}
			var err error
			if s.Managed, err = ownership.Parse(s.Before.GetManagedFields()); err != nil {
				t.Fatal(err)
			}
			changes, err := Fields(applyconfigurations.NewTypeConverter(scheme.Scheme), s)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range changes {
				got = append(got, line(c))
				for _, leaf := range c.Leaves() {
					if text := "  " + string(leaf.Type) + " " + leaf.String() + undeclared(leaf); leaf.String() != c.String() {
						got = append(got, text)
					}
				}
			}
			if a, b := strings.Join(got, "\n"), strings.Join(test.want, "\n"); a != b {
				t.Errorf("got\n%s\nwant\n%s", a, b)
			}
		})
	}
}

func line(c FieldChange) string {
	text := fmt.Sprintf("%s %s", c.Type, c)
	switch c.Type {
	case Added:
		text += " " + fields.ValueText(c.After, true)
	case Removed:
		text += " " + fields.ValueText(c.Before, true)
	default:
		text += " " + fields.ValueText(c.Before, true) + " -> " + fields.ValueText(c.After, true)
	}
	text += undeclared(c)
	var owners []string
	for _, o := range c.Owners {
		owners = append(owners, o.Label())
	}
	if len(owners) > 0 {
		text += " by " + strings.Join(owners, ", ")
	}
	return text
}

func undeclared(c FieldChange) string {
	if c.Declared {
		return ""
	}
	return " undeclared"
}
