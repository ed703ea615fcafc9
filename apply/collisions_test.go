package apply_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"deployer/apply"
	"deployer/apply/compare"
	"deployer/apply/decide"
)

func nodePorts(ports string) string {
	return "\napiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {type: NodePort, selector: {app: x}, ports: [" + ports + "]}\n"
}

// podOf is a Deployment whose pods have a container c with more, and volumes.
func podOf(more, pods string) string {
	return "\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec:\n  selector: {matchLabels: {app: x}}\n  template:\n    metadata: {labels: {app: x}}\n" +
		"    spec: {containers: [{name: c, image: i" + more + "}]" + pods + "}\n"
}

const block = ", volumes: [{name: v, persistentVolumeClaim: {claimName: v}}, {name: w, persistentVolumeClaim: {claimName: w}}]"

// A collided chart and what somebody does to its object x.
type collided struct {
	chart string
	next  string // what the chart becomes; the same when empty
	patch string // of the first chart's object
	// theirs is the path that collides, ours the chart's item.
	theirs, ours string
}

// collisions are what somebody may have put beside what a chart states although the
// server's validation has room for one of them only, one for each rule and more.
var collisions = map[string]collided{
	"a port of a Service is renumbered": {
		chart:  nodePorts("{name: http, port: 80}, {name: other, port: 81}"),
		patch:  `[{"op":"replace","path":"/spec/ports/0/port","value":8080}]`,
		theirs: `spec.ports[port=8080,protocol="TCP"]`, ours: `spec.ports[port=80,protocol="TCP"]`,
	},
	"a port of a Service gets another protocol": {
		chart:  nodePorts("{name: dns, port: 53}"),
		patch:  `[{"op":"replace","path":"/spec/ports/0/protocol","value":"UDP"}]`,
		theirs: `spec.ports[port=53,protocol="UDP"]`, ours: `spec.ports[port=53,protocol="TCP"]`,
	},
	"the only port of a Service, without a name": {
		chart:  nodePorts("{port: 80}"),
		patch:  `[{"op":"replace","path":"/spec/ports/0/port","value":8080}]`,
		theirs: `spec.ports[port=8080,protocol="TCP"]`, ours: `spec.ports[port=80,protocol="TCP"]`,
	},
	"the chart renumbers a port to one that is there under another number": {
		chart:  nodePorts("{name: http, port: 80}"),
		next:   nodePorts("{name: http, port: 80}, {name: admin, port: 9000}"),
		patch:  `[{"op":"add","path":"/spec/ports/-","value":{"name":"admin","port":9001}}]`,
		theirs: `spec.ports[port=9001,protocol="TCP"]`, ours: `spec.ports[port=9000,protocol="TCP"]`,
	},
	"a container's port is renumbered": {
		chart:  podOf(", ports: [{name: http, containerPort: 80}]", ""),
		patch:  `[{"op":"replace","path":"/spec/template/spec/containers/0/ports/0/containerPort","value":8080}]`,
		theirs: `spec.template.spec.containers[name="c"].ports[containerPort=8080,protocol="TCP"]`,
		ours:   `spec.template.spec.containers[name="c"].ports[containerPort=80,protocol="TCP"]`,
	},
	"a host port in one container": {
		chart:  podOf(", ports: [{containerPort: 80, hostPort: 30000}]", ""),
		patch:  `[{"op":"replace","path":"/spec/template/spec/containers/0/ports/0/containerPort","value":8080}]`,
		theirs: `spec.template.spec.containers[name="c"].ports[containerPort=8080,protocol="TCP"]`,
		ours:   `spec.template.spec.containers[name="c"].ports[containerPort=80,protocol="TCP"]`,
	},
	"a host port in two containers": {
		chart:  podOf("", ""),
		next:   podOf(", ports: [{containerPort: 80, hostPort: 30000}]", ""),
		patch:  `[{"op":"add","path":"/spec/template/spec/containers/-","value":{"name":"side","image":"i","ports":[{"containerPort":9,"hostPort":30000}]}}]`,
		theirs: `spec.template.spec.containers[name="side"].ports[containerPort=9,protocol="TCP"]`,
		ours:   `spec.template.spec.containers[name="c"].ports[containerPort=80,protocol="TCP"]`,
	},
	"a container that was made an init container": {
		chart:  podOf("}, {name: d, image: i", ""),
		patch:  `[{"op":"remove","path":"/spec/template/spec/containers/1"},{"op":"add","path":"/spec/template/spec/initContainers","value":[{"name":"d","image":"i","restartPolicy":"Always"}]}]`,
		theirs: `spec.template.spec.initContainers[name="d"]`, ours: `spec.template.spec.containers[name="d"]`,
	},
	"a device under another path": {
		chart:  podOf(", volumeDevices: [{name: v, devicePath: /dev/a}]", block),
		patch:  `[{"op":"replace","path":"/spec/template/spec/containers/0/volumeDevices/0/devicePath","value":"/dev/b"}]`,
		theirs: `spec.template.spec.containers[name="c"].volumeDevices[devicePath="/dev/b"]`,
		ours:   `spec.template.spec.containers[name="c"].volumeDevices[devicePath="/dev/a"]`,
	},
	"a volume that was made a device": {
		chart: podOf(", volumeMounts: [{name: v, mountPath: /v}]", block),
		patch: `[{"op":"remove","path":"/spec/template/spec/containers/0/volumeMounts"},
			{"op":"add","path":"/spec/template/spec/containers/0/volumeDevices","value":[{"name":"v","devicePath":"/dev/v"}]}]`,
		theirs: `spec.template.spec.containers[name="c"].volumeDevices[devicePath="/dev/v"]`,
		ours:   `spec.template.spec.containers[name="c"].volumeMounts[mountPath="/v"]`,
	},
	"a device where a volume is mounted": {
		chart:  podOf("", block),
		next:   podOf(", volumeMounts: [{name: v, mountPath: /v}]", block),
		patch:  `[{"op":"add","path":"/spec/template/spec/containers/0/volumeDevices","value":[{"name":"w","devicePath":"/v"}]}]`,
		theirs: `spec.template.spec.containers[name="c"].volumeDevices[devicePath="/v"]`,
		ours:   `spec.template.spec.containers[name="c"].volumeMounts[mountPath="/v"]`,
	},
	"another controller": {
		chart: "\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
		next: "\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n  ownerReferences:\n" +
			"  - {apiVersion: v1, kind: Secret, name: a, uid: UID-A, controller: true}\n",
		patch: `[{"op":"add","path":"/metadata/ownerReferences","value":[
			{"apiVersion":"v1","kind":"Secret","name":"b","uid":"UID-B","controller":true}]}]`,
		theirs: `metadata.ownerReferences[uid="UID-B"]`,
		ours:   `metadata.ownerReferences[uid="UID-A"]`,
	},
}

// meddle begins a story in which the chart is deployed and somebody changes its
// object, and gives what the chart becomes, and the paths.
func (c collided) meddle(t *testing.T, manager string) (s *story, next, theirs, ours string) {
	t.Helper()
	s = begin(t)
	var uids []string
	for name, word := range map[string]string{"a": "UID-A", "b": "UID-B"} { // owners that are there: who has none is collected
		s.post(s.manifests("\napiVersion: v1\nkind: Secret\nmetadata: {name: " + name + "}\n")[0].Object, "somebody")
		uids = append(uids, word, string(s.get("v1", "Secret", name).GetUID()))
	}
	with := strings.NewReplacer(uids...).Replace
	s.deploy(c.chart)
	o := s.manifests(c.chart)[0].Object
	s.patch(o.GetAPIVersion(), o.GetKind(), "x", types.JSONPatchType, with(c.patch), manager)
	if next = c.next; next == "" {
		next = c.chart
	}
	return s, with(next), with(c.theirs), with(c.ours)
}

// body is what the object x of a chart says.
func (s *story) body(chart string) string {
	s.t.Helper()
	want := s.manifests(chart)[0].Object
	o := s.get(want.GetAPIVersion(), want.GetKind(), "x")
	data, err := json.Marshal([]any{o.Object["spec"], o.Object["metadata"].(map[string]any)["ownerReferences"]})
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

// Items of a list with different keys that may not be side by side: the chart's wins,
// and a warning names the other one and its owner.
func TestTheChartWinsWhereKeysCollide(t *testing.T) {
	for name, c := range collisions {
		t.Run(name, func(t *testing.T) {
			s, next, theirs, ours := c.meddle(t, "kubectl-edit")
			p := s.plan(next)
			if got := warnings(p); !strings.Contains(got, theirs+", set by kubectl-edit, is removed: it ") || !strings.Contains(got, "the chart's "+ours) ||
				strings.Contains(got, "kubectl-edit added "+theirs) {
				t.Errorf("warnings: %s", got)
			}
			if len(conflicts(p)) != 1 || conflicts(p)[0].Path != theirs || conflicts(p)[0].CollidesWith != ours ||
				conflicts(p)[0].Manager != "kubectl-edit" || conflicts(p)[0].Outcome != decide.OutcomeTaken {
				t.Errorf("conflicts: %s", outcomes(p))
			}
			done := s.run(p)
			if !slices.ContainsFunc(done, func(c apply.Change) bool {
				return c.Action == decide.Update && len(c.Conflicts) == 1 && slices.ContainsFunc(removed(c), func(f compare.FieldChange) bool { return strings.HasPrefix(theirs, f.String()) })
			}) {
				t.Errorf("the run doesn't tell of the conflict and of what goes: %+v", done)
			}
			s.record("deployed", next)
			again := s.plan(next)
			if s.expect(again); len(conflicts(again)) > 0 || strings.Contains(warnings(again), "is removed") {
				t.Errorf("what collided is still there: %s", s.body(next))
			}
		})
	}
}

func TestCollidingKeysAreRefused(t *testing.T) {
	for name, c := range collisions {
		t.Run(name, func(t *testing.T) {
			s, next, theirs, ours := c.meddle(t, "some-controller")
			s.opts.Conflicts = decide.FailOnConflict
			err := s.refuse(next)
			var conflict *apply.ConflictError
			if !errors.As(err, &conflict) || len(conflict.Fields) != 1 || conflict.Fields[0].Path != theirs || conflict.Fields[0].Outcome != decide.OutcomeRefused ||
				!strings.Contains(err.Error(), `by "some-controller" and conflicts with the chart's `+ours) {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

func TestCollidingKeysYield(t *testing.T) {
	for name, c := range collisions {
		t.Run(name, func(t *testing.T) {
			s, next, theirs, _ := c.meddle(t, "kubectl-edit")
			s.opts.Conflicts = decide.YieldConflicts
			before := s.body(next)
			for range 2 {
				p := s.deploy(next)
				if len(conflicts(p)) != 1 || conflicts(p)[0].Path != theirs || conflicts(p)[0].Outcome != decide.OutcomeYielded {
					t.Errorf("conflicts: %s", outcomes(p))
				}
			}
			if got := s.body(next); got != before {
				t.Errorf("it became %s, want what it was: %s", got, before)
			}
			// When the other one is content with the chart, so are we.
			s.opts.Conflicts = decide.TakeConflicts
			s.expect(s.deploy(next), "update "+s.manifests(next)[0].Object.GetKind()+"/x")
			s.expect(s.deploy(next))
		})
	}
}

// What the API server has allocated for the port that was renumbered is the port's
// again, and what others have added beside stays.
func TestANodePortOutlivesACollision(t *testing.T) {
	s, _, _, _ := collided{chart: nodePorts("{name: http, port: 80}"), patch: `[{"op":"replace","path":"/spec/ports/0/port","value":8080},
		{"op":"add","path":"/spec/ports/-","value":{"name":"metrics","port":9090}}]`}.meddle(t, "kubectl-edit")
	port := func(name string) any {
		return at(s.get("v1", "Service", "x"), "spec.ports."+name+".nodePort")
	}
	http, metrics := port("http"), port("metrics")
	s.deploy(nodePorts("{name: http, port: 80}"))
	if port("http") != http || port("metrics") != metrics || http == nil || metrics == nil {
		t.Errorf("node ports %v and %v, were %v and %v", port("http"), port("metrics"), http, metrics)
	}
	if got := fmt.Sprint(at(s.get("v1", "Service", "x"), "spec.ports.http.port")); got != "80" {
		t.Errorf("port %s", got)
	}
}

// A node port that the server has allocated for another port of the chart is given
// up for one that the chart states.
func TestAStatedNodePortGoesBeforeAnAllocatedOne(t *testing.T) {
	s := begin(t)
	s.deploy(nodePorts("{name: a, port: 80}, {name: b, port: 81}"))
	taken := fmt.Sprint(at(s.get("v1", "Service", "x"), "spec.ports.b.nodePort"))
	next := nodePorts("{name: a, port: 80, nodePort: " + taken + "}, {name: b, port: 81}")
	s.deploy(next)
	x := s.get("v1", "Service", "x")
	if a, b := fmt.Sprint(at(x, "spec.ports.a.nodePort")), fmt.Sprint(at(x, "spec.ports.b.nodePort")); a != taken || b == taken || b == "<nil>" {
		t.Errorf("node ports %s and %s, want %s and another one", a, b, taken)
	}
	s.expect(s.deploy(next))
}
