package predict

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"deployer/apply/builtin"
	"deployer/apply/compare"
	"deployer/apply/fields"
	"deployer/apply/ownership"
	"deployer/internal/kubetest"
)

// managers owns parts of the live object, each stated as the object that the manager wrote:
// "helm Apply", "kubectl-edit Update".
type managers map[string]string

// begin begins a prediction of applying desired to live, of which managers have written parts.
func begin(t *testing.T, live string, wrote managers, desired string, declared ...string) *Prediction {
	t.Helper()
	conv, err := builtin.TypeConverter()
	if err != nil {
		t.Fatal(err)
	}
	set := func(text string) *fieldpath.Set {
		v, err := compare.Typed(conv, kubetest.Object(t, text))
		if err != nil {
			t.Fatal(err)
		}
		out, err := ownership.Appliable(v)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	obj := kubetest.Object(t, live)
	var entries []ownership.Entry
	for _, name := range slices.Sorted(maps.Keys(wrote)) {
		manager, operation, _ := strings.Cut(name, " ")
		by := ownership.FieldManager{Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), Time: time.Unix(1, 0)}
		e := ownership.Entry{FieldManager: by, APIVersion: obj.GetAPIVersion()}
		entries = append(entries, e.With(set(wrote[name])))
	}
	raw, err := ownership.Encode(entries)
	if err != nil {
		t.Fatal(err)
	}
	obj.SetManagedFields(raw)
	l, err := compare.NewLive(conv, obj)
	if err != nil {
		t.Fatal(err)
	}
	var revisions []Declared
	for i, text := range declared {
		revisions = append(revisions, Declared{Revision: i + 1, Fields: set(text), Object: kubetest.Object(t, text).Object})
	}
	return New(l, kubetest.Object(t, desired), revisions, nil)
}

func compute(t *testing.T, p *Prediction, terms ownership.Terms) {
	t.Helper()
	terms.Served = func(string) bool { return true }
	if err := p.Compute(terms); err != nil {
		t.Fatal(err)
	}
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
`

const service = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
`

func TestPredictions(t *testing.T) {
	for name, c := range map[string]struct {
		live     string
		wrote    managers
		desired  string
		declared []string
		terms    ownership.Terms
		want     string
		repaired bool
	}{
		"what the chart no longer states is removed": {
			live:    deployment + "  {replicas: 1, paused: true}",
			wrote:   managers{"helm Apply": deployment + "  {replicas: 1, paused: true}"},
			desired: deployment + "  {replicas: 1}",
			want:    deployment + "  {replicas: 1}",
		},
		"the container that a failed release renamed is removed": {
			live:    deployment + "  {template: {spec: {containers: [{name: old, image: a}, {name: new, image: a}]}}}",
			wrote:   managers{"helm Update": deployment + "  {template: {spec: {containers: [{name: old, image: a}, {name: new, image: a}]}}}"},
			desired: deployment + "  {template: {spec: {containers: [{name: new, image: a}]}}}",
			want:    deployment + "  {template: {spec: {containers: [{name: new, image: a}]}}}",
		},
		"what others own stays": {
			live:    deployment + "  {replicas: 1, paused: true}",
			wrote:   managers{"helm Apply": deployment + "  {replicas: 1}", "controller Update": deployment + "  {paused: true}"},
			desired: deployment + "  {replicas: 2}",
			want:    deployment + "  {replicas: 2, paused: true}",
		},
		"what a person added stays": {
			live:    deployment + "  {replicas: 1, paused: true}",
			wrote:   managers{"helm Apply": deployment + "  {replicas: 1}", "kubectl-edit Update": deployment + "  {paused: true}"},
			desired: deployment + "  {replicas: 1}",
			want:    deployment + "  {replicas: 1, paused: true}",
		},
		"what a person added is removed on demand": {
			live:    deployment + "  {replicas: 1, paused: true}",
			wrote:   managers{"helm Apply": deployment + "  {replicas: 1}", "kubectl-edit Update": deployment + "  {paused: true}"},
			desired: deployment + "  {replicas: 1}",
			terms:   ownership.Terms{RevertManual: true},
			want:    deployment + "  {replicas: 1}",
		},
		"what an earlier revision declared is the chart's, whoever wrote it": {
			live:     deployment + "  {replicas: 1, paused: true}",
			wrote:    managers{"kubectl-create Update": deployment + "  {replicas: 1, paused: true}"},
			desired:  deployment + "  {replicas: 1}",
			declared: []string{deployment + "  {replicas: 1, paused: true}"},
			want:     deployment + "  {replicas: 1}",
		},
		"adopting removes nothing": {
			live:    deployment + "  {replicas: 1, paused: true}",
			wrote:   managers{"helm Update": deployment + "  {replicas: 1, paused: true}"},
			desired: deployment + "  {replicas: 1}",
			terms:   ownership.Terms{Adopting: true},
			want:    deployment + "  {replicas: 1, paused: true}",
		},
		"a default that the new type of a strategy forbids is removed": {
			live:     deployment + "  {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}}",
			wrote:    managers{"helm Apply": deployment + "  {strategy: {type: RollingUpdate}}"},
			desired:  deployment + "  {strategy: {type: Recreate}}",
			want:     deployment + "  {strategy: {type: Recreate}}",
			repaired: true,
		},
		"of variables that are set twice the last one stays": {
			live:     deployment + "  {template: {spec: {containers: [{name: c, env: [{name: A, value: one}, {name: A, value: two}]}]}}}",
			wrote:    managers{"helm Update": deployment + "  {template: {spec: {containers: [{name: c}]}}}"},
			desired:  deployment + "  {template: {spec: {containers: [{name: c, env: [{name: B, value: z}]}]}}}",
			want:     deployment + "  {template: {spec: {containers: [{name: c, env: [{name: A, value: two}, {name: B, value: z}]}]}}}",
			repaired: true,
		},
		"a variable of others that refers to itself stays": {
			live:    deployment + "  {template: {spec: {containers: [{name: c, env: [{name: A, value: one}, {name: A, value: $(A)two}]}]}}}",
			wrote:   managers{"helm Update": deployment + "  {template: {spec: {containers: [{name: c}]}}}"},
			desired: deployment + "  {template: {spec: {containers: [{name: c, env: [{name: B, value: z}]}]}}}",
			want:    deployment + "  {template: {spec: {containers: [{name: c, env: [{name: A, value: one}, {name: A, value: $(A)two}, {name: B, value: z}]}]}}}",
		},
		"a field that the chart empties stays empty": {
			live:     deployment + "  {template: {spec: {volumes: [{name: tmp, emptyDir: {medium: Memory}}]}}}",
			wrote:    managers{"helm Apply": deployment + "  {template: {spec: {volumes: [{name: tmp, emptyDir: {medium: Memory}}]}}}"},
			desired:  deployment + "  {template: {spec: {volumes: [{name: tmp, emptyDir: {}}]}}}",
			want:     deployment + "  {template: {spec: {volumes: [{name: tmp, emptyDir: {}}]}}}",
			repaired: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := begin(t, c.live, c.wrote, c.desired, c.declared...)
			compute(t, p, c.terms)
			p.Predicted.SetManagedFields(nil)
			if !fields.Equal(kubetest.Object(t, c.want).Object, p.Predicted.Object) {
				have, _ := yaml.Marshal(p.Predicted.Object)
				t.Errorf("have\n%s\nwant%s", have, c.want)
			}
			if p.Repaired != c.repaired {
				t.Errorf("repaired: %v", p.Repaired)
			}
		})
	}
}

func TestFieldsLeftToOthersAreNeitherAppliedNorRemoved(t *testing.T) {
	text := deployment + "  {replicas: 3, paused: true}"
	p := begin(t, text, managers{"helm Apply": text}, deployment+"  {replicas: 1, paused: true}")
	replicas := fieldpath.MakePathOrDie("spec", "replicas")
	p.RelinquishField(replicas)
	compute(t, p, ownership.Terms{})
	if v, ok := fields.Value(p.Predicted.Object, replicas); !ok || !fields.Equal(v, 3) {
		t.Errorf("replicas became %v", v)
	}
	if p.DesiredFields.Has(replicas) || p.Migrated.Ours.Has(replicas) {
		t.Error("the number is still ours")
	}
}

func TestConflictsAreOfOtherValues(t *testing.T) {
	wrote := managers{"helm Apply": deployment + "  {paused: true}", "controller Update": deployment + "  {replicas: 3, minReadySeconds: 5}"}
	p := begin(t, deployment+"  {replicas: 3, minReadySeconds: 5, paused: true}", wrote, deployment+"  {replicas: 1, minReadySeconds: 5, paused: false}", deployment+"  {replicas: 1}")
	found, err := p.Conflicts()
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || fields.String(found[0].Path) != "spec.replicas" || found[0].By.Manager != "controller" {
		t.Fatalf("%+v", found)
	}
	if !found[0].Repeated {
		t.Error("an earlier revision had set the chart's value, and the controller has changed it since")
	}
}

func TestItemsThatCannotCoexist(t *testing.T) {
	for name, c := range map[string]struct {
		theirs, ours string
		want         string // what collides with what, and why
	}{
		"two names":          {"{name: http, port: 81, protocol: TCP}", "{name: http, port: 80, protocol: TCP}", `spec.ports[port=81,protocol="TCP"] has the name "http", as spec.ports[port=80,protocol="TCP"]`},
		"two node ports":     {"{name: a, port: 81, protocol: TCP, nodePort: 30000}", "{name: b, port: 80, protocol: TCP, nodePort: 30000}", "spec.ports[port=81,protocol=\"TCP\"] has the nodePort 30000, as spec.ports[port=80,protocol=\"TCP\"]"},
		"of other protocols": {"{name: a, port: 81, protocol: UDP, nodePort: 30000}", "{name: b, port: 80, protocol: TCP, nodePort: 30000}", ""},
		"nothing in common":  {"{name: a, port: 81, protocol: TCP}", "{name: b, port: 80, protocol: TCP}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			theirs := service + "  {ports: [" + c.theirs + "]}"
			p := begin(t, theirs, managers{"controller Update": theirs}, service+"  {ports: ["+c.ours+"]}")
			compute(t, p, ownership.Terms{})
			have := ""
			for _, col := range p.Collisions {
				have = strings.Join([]string{fields.String(col.Theirs), col.Why, fields.String(col.Ours)}, " ")
				if len(col.Owners) != 1 || col.Owners[0].Manager != "controller" {
					t.Errorf("owners: %v", col.Owners)
				}
				p.RemoveTheirs(col.Theirs)
			}
			if have != c.want {
				t.Errorf("have %q\nwant %q", have, c.want)
			}
			compute(t, p, ownership.Terms{})
			if rest := p.Collisions; len(rest) > 0 {
				t.Errorf("the removed item is still there: %+v", rest)
			}
		})
	}
}

// A union is left with what is the chart's, and what others own in the former member is told.
func TestUnions(t *testing.T) {
	container := func(rest string) string {
		return deployment + "  {template: {spec: {containers: [{name: c" + rest + "}]}}}"
	}
	for name, c := range map[string]struct {
		live, ours, others, desired, last string
		want                              string
		overridden, collides              string
	}{
		"nobody's default": {
			live: deployment + "  {template: {spec: {volumes: [{name: v, emptyDir: {}}]}}}", ours: deployment + "  {template: {spec: {volumes: [{name: v}]}}}",
			desired: deployment + "  {template: {spec: {volumes: [{name: v, secret: {secretName: x}}]}}}",
			want:    deployment + "  {template: {spec: {volumes: [{name: v, secret: {secretName: x}}]}}}",
		},
		"what others have in the former member": {
			live: container(", livenessProbe: {httpGet: {port: 80, path: /x}}"), ours: container(", livenessProbe: {httpGet: {port: 80}}"), others: container(", livenessProbe: {httpGet: {path: /x}}"),
			desired: container(", livenessProbe: {exec: {command: [x]}}"), want: container(", livenessProbe: {exec: {command: [x]}}"),
			overridden: `spec.template.spec.containers[name="c"].livenessProbe.httpGet`,
		},
		"what others have in a handler that is dropped": {
			live: container(", livenessProbe: {httpGet: {port: 80, path: /x}, periodSeconds: 3}"), ours: container(", livenessProbe: {httpGet: {port: 80}}"), others: container(", livenessProbe: {httpGet: {path: /x}, periodSeconds: 3}"),
			desired: container(""), want: container(""),
			overridden: `spec.template.spec.containers[name="c"].livenessProbe`,
		},
		"a member of others": {
			live: container(", livenessProbe: {httpGet: {port: 80}}"), ours: container(""), others: container(", livenessProbe: {httpGet: {port: 80}}"),
			desired: container(", livenessProbe: {exec: {command: [x]}}"), last: container(", livenessProbe: {exec: {command: [x]}}"),
			want:     container(", livenessProbe: {exec: {command: [x]}, httpGet: {port: 80}}"),
			collides: `spec.template.spec.containers[name="c"].livenessProbe.httpGet`,
		},
		"a strategy that is only implied": {
			live: deployment + "  {strategy: {type: Recreate}}", others: deployment + "  {strategy: {type: Recreate}}",
			desired: deployment + "  {strategy: {rollingUpdate: {maxSurge: 1}}}", want: deployment + "  {strategy: {type: Recreate, rollingUpdate: {maxSurge: 1}}}",
			collides: "spec.strategy.type",
		},
		"a discriminator that the chart drops": {
			live: service + "  {sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 5}}}", ours: service + "  {sessionAffinity: ClientIP}",
			others:  service + "  {sessionAffinityConfig: {clientIP: {timeoutSeconds: 5}}}",
			desired: service + "  {selector: {a: b}}", last: service + "  {sessionAffinity: ClientIP}",
			want:       service + "  {selector: {a: b}}",
			overridden: "spec.sessionAffinityConfig",
		},
		"a member that the chart leaves alone": {
			live: service + "  {type: LoadBalancer, loadBalancerSourceRanges: [10.0.0.0/8]}", others: service + "  {type: LoadBalancer, loadBalancerSourceRanges: [10.0.0.0/8]}",
			desired: service + "  {selector: {a: b}}", want: service + "  {selector: {a: b}, type: LoadBalancer, loadBalancerSourceRanges: [10.0.0.0/8]}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			wrote := managers{}
			if c.ours != "" {
				wrote["helm Apply"] = c.ours
			}
			if c.others != "" {
				wrote["operator Update"] = c.others
			}
			last := c.last
			if last == "" {
				last = c.desired
			}
			p := begin(t, c.live, wrote, c.desired, last)
			compute(t, p, ownership.Terms{})
			if want := kubetest.Object(t, c.want); !compare.SameContent(p.Predicted, want) {
				t.Errorf("have %v\nwant %v", p.Predicted.Object["spec"], want.Object["spec"])
			}
			paths := func(list []Collision) string {
				var out []string
				for _, col := range list {
					out = append(out, fields.String(col.Theirs))
				}
				return strings.Join(out, " ")
			}
			if got := paths(p.Overridden); got != c.overridden {
				t.Errorf("overridden: %s, want %s", got, c.overridden)
			}
			if got := paths(p.Collisions); got != c.collides {
				t.Errorf("collisions: %s, want %s", got, c.collides)
			}
		})
	}
}
