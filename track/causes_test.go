package track

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/kube"
	"deployer/track/class"
	"deployer/track/finding"
)

// stage is a wait without a cluster, whose objects the test moves.
func stage(t *testing.T, manifests ...string) (*wait, func(time.Duration)) {
	t.Helper()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var targets []Target
	for _, m := range manifests {
		o := normalisedYAML(t, m)
		targets = append(targets, Target{ID: kube.IDOf(o), Baseline: o, Changed: true})
	}
	s := newWait(New(nil, Options{Now: func() time.Time { return now }}), targets, nil)
	return s, func(d time.Duration) {
		for range int(d / time.Second) {
			now = now.Add(time.Second)
			s.health.answeredAt = now // the API server is fine
			for _, known := range s.missing.known {
				known.askedAt = now
			}
			for _, obj := range s.objects {
				if obj.schedule.computedAt.IsZero() || !obj.schedule.recheckAt.IsZero() && !now.Before(obj.schedule.recheckAt) {
					s.updateStatus(obj, now)
				}
			}
		}
	}
}

const (
	deploymentYAML = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, namespace: prod, uid: %s, generation: 1},
  spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1}}`
	externalYAML = `{apiVersion: external-secrets.io/v1, kind: ExternalSecret, metadata: {name: db, namespace: prod, uid: es},
  status: {conditions: [{type: Ready, status: "False", reason: SecretSyncedError, message: no such key in the vault}]}}`
)

// answer has the API server say what there is of something that pods miss: an object, or none.
func answer(t *testing.T, s *wait, what finding.Missing, manifest string) {
	t.Helper()
	var object *unstructured.Unstructured
	if manifest != "" {
		object = normalisedYAML(t, manifest)
	}
	id := missingID{"prod", what}
	known := s.missing.ensureReference(id)
	known.askedAt = s.opts.Now()
	known.update(object, what.Key, s.declares(kube.ID{Kind: what.Kind, Namespace: "prod", Name: what.Name}), s.opts.Now())
	for _, obj := range s.objects {
		s.updateStatus(obj, s.opts.Now())
	}
}

func TestSameReasonIsOneCause(t *testing.T) {
	s, run := stage(t, fmt.Sprintf(deploymentYAML, "a", "a"), fmt.Sprintf(deploymentYAML, "b", "b"), fmt.Sprintf(deploymentYAML, "c", "c"))
	for i, obj := range s.objects {
		bad := actor{Name: obj.target.ID.Name + "-1", Node: fmt.Sprintf("node-%d", i), Phase: "Pending", Waiting: []string{"ErrImagePull", "r/x:1: not found"}}
		if i == 2 {
			bad.Waiting[1] = "unauthorized"
		}
		obj.updatePod(bad.pod(s.startedAt))
	}
	run(40 * time.Second)
	causes := diagnosis{session: s.session}.causes()
	if len(causes) != 2 || len(causes[0].Objects) != 2 || !causes[0].Fatal || causes[0].Class != class.ImagePullPermanent {
		t.Errorf("causes = %+v, want one of two objects and one of one", causes)
	}
	err := &FailedError{Causes: causes}
	if text := err.Error(); !strings.Contains(text, "Deployment/prod/a and 1 more: Image can't be pulled: r/x:1: not found") {
		t.Errorf("text = %q", text)
	}
}

func TestRootOfAMissingSecret(t *testing.T) {
	s, run := stage(t, fmt.Sprintf(deploymentYAML, "web", "web"), externalYAML)
	bad := actor{Name: "web-1", Node: "node-1", Phase: "Pending", Waiting: []string{"CreateContainerConfigError", `secret "db" not found`}}
	s.objects[0].updatePod(bad.pod(s.startedAt))
	answer(t, s, finding.Missing{Kind: "Secret", Name: "db"}, "")
	run(30 * time.Second)
	if got := s.objects[0].status.State; got != Progressing {
		t.Errorf("the Deployment is %s while its Secret is on its way", got)
	}
	run(40 * time.Second)
	causes := diagnosis{session: s.session}.causes()
	if len(causes) != 1 || causes[0].Objects[0].Kind != "ExternalSecret" || len(causes[0].Blocks) != 1 || causes[0].Blocks[0].Name != "web" {
		t.Errorf("causes = %+v, want the ExternalSecret, which blocks the Deployment", causes)
	}
}

// TestCauseBehindWhatNobodyWaitsFor: what is only watched in the background is no cause, so
// that what lacks it must be one itself.
func TestCauseBehindWhatNobodyWaitsFor(t *testing.T) {
	background := strings.Replace(externalYAML, "uid: es}", "uid: es, annotations: {deployer.io/track: background}}", 1)
	s, run := stage(t, fmt.Sprintf(deploymentYAML, "web", "web"), background)
	bad := actor{Name: "web-1", Node: "node-1", Phase: "Pending", Waiting: []string{"CreateContainerConfigError", `secret "db" not found`}}
	s.objects[0].updatePod(bad.pod(s.startedAt))
	answer(t, s, finding.Missing{Kind: "Secret", Name: "db"}, "")
	run(2 * time.Minute)
	causes := diagnosis{session: s.session}.causes()
	if s.objects[1].status.Finding == nil || len(causes) != 1 || !causes[0].Fatal || causes[0].Objects[0].Name != "web" {
		t.Errorf("causes = %+v, want the Deployment, which lacks a Secret", causes)
	}
}

// TestNothingIsMissing: a problem that isn't about anything missing is not looked at again and
// again because of a custom resource with an empty field.
func TestNothingIsMissing(t *testing.T) {
	s, run := stage(t, fmt.Sprintf(deploymentYAML, "web", "web"),
		`{apiVersion: example.com/v1, kind: Database, metadata: {name: orders, namespace: prod, uid: a}, spec: {note: ""}, status: {conditions: [{type: Ready, status: "False"}]}}`)
	web := s.objects[0]
	bad := actor{Name: "web-1", Node: "node-1", Phase: "Pending", Waiting: []string{"ErrImagePull", "r/x:1: not found"}}
	web.updatePod(bad.pod(s.startedAt))
	run(time.Second)
	if p := web.status.Finding; p == nil || !web.schedule.recheckAt.Equal(p.FinalAt) {
		t.Errorf("the Deployment is looked at again at %s, want when its problem is final: %+v", web.schedule.recheckAt, p)
	}
}

func TestRootOfAClaimWithoutVolume(t *testing.T) {
	s, run := stage(t, fmt.Sprintf(deploymentYAML, "web", "web"),
		"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: prod, uid: data}, status: {phase: Pending}}")
	waits := actor{Name: "web-1", Phase: "Pending", Pending: []string{"Unschedulable", "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."}}
	pod := waits.pod(s.startedAt)
	pod.Volumes.Claims = []string{"other", "data"}
	s.objects[0].updatePod(pod)
	s.objects[1].addEvent(finding.Event{Reason: "ProvisioningFailed", Message: "no such class", Count: 3}, "", s.startedAt)
	run(70 * time.Second)
	causes := diagnosis{session: s.session}.causes()
	if len(causes) != 1 || causes[0].Class != class.ProvisioningFailed || len(causes[0].Blocks) != 1 || causes[0].Blocks[0].Name != "web" {
		t.Errorf("causes = %+v, want the claim, which blocks the Deployment", causes)
	}
}

// TestMissingKeyOfAnObjectThatIsThere: how long a key is waited for follows from who may
// still write it.
func TestMissingKeyOfAnObjectThatIsThere(t *testing.T) {
	const empty, other, full = "{apiVersion: v1, kind: Secret, metadata: {name: db, namespace: prod, uid: db}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: db, namespace: prod, uid: db}, data: {USER: eA==}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: db, namespace: prod, uid: db}, data: {USER: eA==, PASS: eA==}}"
	for name, test := range map[string]struct {
		declared, there string
		from            time.Duration // when it is called failed
	}{
		"declared by the release without it":             {declared: other, there: other},
		"declared by the release, to be filled":          {declared: empty, there: empty, from: 20 * time.Second},
		"declared by the release, and added by somebody": {declared: other, there: full, from: 20 * time.Second}, // the kubelet may have looked too early
		"made by somebody else without it":               {there: other, from: 10 * time.Second},
		"made by somebody else, and just now":            {there: full, from: 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			manifests := []string{fmt.Sprintf(deploymentYAML, "web", "web")}
			if test.declared != "" {
				manifests = append(manifests, test.declared)
			}
			s, run := stage(t, manifests...)
			bad := actor{Name: "web-1", Node: "node-1", Phase: "Pending", Waiting: []string{"CreateContainerConfigError", "couldn't find key PASS in Secret prod/db"}}
			s.objects[0].updatePod(bad.pod(s.startedAt))
			answer(t, s, finding.Missing{Kind: "Secret", Name: "db", Key: "PASS"}, test.there)
			if test.from > 0 {
				run(test.from - time.Second)
				if got := s.objects[0].status.State; got != Progressing {
					t.Errorf("the Deployment is %s before its time", got)
				}
				run(2 * time.Second)
			}
			if got := s.objects[0].status.State; got != Failed {
				t.Errorf("the Deployment is %s, want it failed by the missing key", got)
			}
		})
	}
}

// TestSecretThatSomebodyWrites: one that wasn't there when the kubelet looked is there when
// time would make that a failure.
func TestSecretThatSomebodyWrites(t *testing.T) {
	s, run := stage(t, fmt.Sprintf(deploymentYAML, "web", "web"))
	bad := actor{Name: "web-1", Node: "node-1", Phase: "Pending", Waiting: []string{"CreateContainerConfigError", `secret "db" not found`}}
	s.objects[0].updatePod(bad.pod(s.startedAt))
	answer(t, s, finding.Missing{Kind: "Secret", Name: "db"}, "")
	run(9 * time.Second)
	answer(t, s, finding.Missing{Kind: "Secret", Name: "db"}, "{apiVersion: v1, kind: Secret, metadata: {name: db, namespace: prod, uid: db}}")
	run(19 * time.Second)
	if got := s.objects[0].status.State; got != Progressing {
		t.Errorf("the Deployment is %s before the kubelet has looked again", got)
	}
	run(2 * time.Second)
	if got := s.objects[0].status.State; got != Failed {
		t.Errorf("the Deployment is %s, want it failed: the kubelet has looked again", got)
	}
}

// TestVolumeOfASecretThatSomebodyWrites: if the kubelet hasn't missed the Secret since somebody wrote it, it has
// mounted it and is pulling the image, which may take long.
func TestVolumeOfASecretThatSomebodyWrites(t *testing.T) {
	for name, test := range map[string]struct {
		missedAgain bool
		want        State
	}{
		"an image that takes long":    {want: Progressing},
		"a kubelet that can't see it": {missedAgain: true, want: Failed},
	} {
		t.Run(name, func(t *testing.T) {
			s, run := stage(t, fmt.Sprintf(deploymentYAML, "web", "web"))
			web := s.objects[0]
			missed := func(count int) {
				web.addEvent(finding.Event{Reason: "FailedMount", Object: "Pod/web-1", Count: count, Message: `MountVolume.SetUp failed for volume "c" : secret "db" not found`}, "web-1", s.opts.Now())
			}
			web.updatePod((&actor{Name: "web-1", Node: "node-1", Phase: "Pending", Waiting: []string{"ContainerCreating"}}).pod(s.startedAt))
			missed(1)
			answer(t, s, finding.Missing{Kind: "Secret", Name: "db"}, "")
			run(16 * time.Second)
			missed(2)
			answer(t, s, finding.Missing{Kind: "Secret", Name: "db"}, "{apiVersion: v1, kind: Secret, metadata: {name: db, namespace: prod, uid: db}}")
			run(64 * time.Second)
			if test.missedAgain {
				missed(3)
				s.updateStatus(web, s.opts.Now())
			}
			run(5 * time.Minute)
			if got := web.status; got.State != test.want {
				t.Errorf("the Deployment is %s, want %s: %s", got.State, test.want, got.Message)
			}
		})
	}
}

// TestSecretOfACustomResource: an operator is given the time to write what the table of providers says, and one that isn't in
// it a minute to write anything.
func TestSecretOfACustomResource(t *testing.T) {
	for name, test := range map[string]struct {
		object string
		after  time.Duration
		want   State
	}{
		"by a field":                {"{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: web, namespace: prod, uid: a}, spec: {secretName: db-app}}", 75 * time.Second, Progressing},
		"by another name":           {"{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: db-app, namespace: prod, uid: a}, spec: {secretName: tls}}", 28 * time.Second, Failed},
		"by its own name":           {"{apiVersion: bitnami.com/v1alpha1, kind: SealedSecret, metadata: {name: db-app, namespace: prod, uid: a}, spec: {encryptedData: {}}}", 45 * time.Second, Progressing},
		"one of many":               {"{apiVersion: postgresql.cnpg.io/v1, kind: Cluster, metadata: {name: db, namespace: prod, uid: a}, spec: {instances: 1}, status: {phase: Setting up primary}}", 2 * time.Minute, Progressing},
		"of the whole cluster":      {"{apiVersion: external-secrets.io/v1, kind: ClusterExternalSecret, metadata: {name: db-app, uid: a}, spec: {}, status: {conditions: [{type: Ready, status: Unknown}]}}", 2 * time.Minute, Progressing},
		"a connection":              {"{apiVersion: rds.aws.upbound.io/v1, kind: Instance, metadata: {name: orders, namespace: prod, uid: a}, spec: {writeConnectionSecretToRef: {name: db-app}}, status: {conditions: [{type: Ready, status: Unknown}]}}", 2 * time.Minute, Progressing},
		"one of a list":             {"{apiVersion: secrets.infisical.com/v1alpha1, kind: InfisicalSecret, metadata: {name: orders, namespace: prod, uid: a}, spec: {managedKubeSecretReferences: [{secretName: other}, {secretName: db-app}]}, status: {conditions: [{type: Ready, status: Unknown}]}}", 2 * time.Minute, Progressing},
		"none of a list":            {"{apiVersion: secrets.infisical.com/v1alpha1, kind: InfisicalSecret, metadata: {name: db-app, namespace: prod, uid: a}, spec: {managedKubeSecretReferences: [{secretName: other}]}, status: {conditions: [{type: Ready, status: Unknown}]}}", 28 * time.Second, Failed},
		"by a field of the past":    {"{apiVersion: secrets.infisical.com/v1alpha1, kind: InfisicalSecret, metadata: {name: orders, namespace: prod, uid: a}, spec: {managedSecretReference: {secretName: db-app}}, status: {conditions: [{type: Ready, status: Unknown}]}}", 2 * time.Minute, Progressing},
		"of a user":                 {"{apiVersion: mongodbcommunity.mongodb.com/v1, kind: MongoDBCommunity, metadata: {name: orders, namespace: prod, uid: a}, spec: {users: [{name: root}, {name: app, connectionStringSecretName: db-app}]}, status: {phase: Pending}}", 2 * time.Minute, Progressing},
		"of a user without a field": {"{apiVersion: mongodbcommunity.mongodb.com/v1, kind: MongoDBCommunity, metadata: {name: db, namespace: prod, uid: a}, spec: {users: [{name: app}, {name: root, connectionStringSecretName: other}]}, status: {phase: Pending}}", 2 * time.Minute, Progressing},
		"from a vault":              {"{apiVersion: secrets.hashicorp.com/v1beta1, kind: VaultStaticSecret, metadata: {name: orders, namespace: prod, uid: a}, spec: {destination: {name: db-app}}, status: {conditions: [{type: Ready, status: Unknown}]}}", 2 * time.Minute, Progressing},
		"configuration of a vault":  {"{apiVersion: secrets.hashicorp.com/v1beta1, kind: VaultAuth, metadata: {name: db-app, namespace: prod, uid: a}, spec: {method: kubernetes}, status: {conditions: [{type: Ready, status: Unknown}]}}", 28 * time.Second, Failed},
		"from a vault of HCP":       {"{apiVersion: secrets.hashicorp.com/v1beta1, kind: HCPVaultSecretsApp, metadata: {name: orders, namespace: prod, uid: a}, spec: {destination: {name: db-app}}, status: {conditions: [{type: Ready, status: Unknown}]}}", 2 * time.Minute, Progressing},
		"of Strimzi":                {"{apiVersion: kafka.strimzi.io/v1beta2, kind: Kafka, metadata: {name: db, namespace: prod, uid: a}, spec: {}, status: {conditions: [{type: Ready, status: Unknown}]}}", 75 * time.Second, Progressing},
		"a topic":                   {"{apiVersion: kafka.strimzi.io/v1beta2, kind: KafkaTopic, metadata: {name: db, namespace: prod, uid: a}, spec: {}, status: {conditions: [{type: Ready, status: Unknown}]}}", 28 * time.Second, Failed},
		"configuration":             {"{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: {name: db, namespace: prod, uid: a}, spec: {selector: {name: db-app}}}", 28 * time.Second, Failed},
		"configuration of Istio":    {"{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: db, namespace: prod, uid: a}, spec: {}}", 28 * time.Second, Failed},
		"an unknown kind":           {"{apiVersion: example.com/v1, kind: Database, metadata: {name: orders, namespace: prod, uid: a}, spec: {size: 1}}", 59 * time.Second, Progressing},
		"an unknown kind, for long": {"{apiVersion: example.com/v1, kind: Database, metadata: {name: db-app, namespace: prod, uid: a}, spec: {size: 1}, status: {phase: Creating}}", 85 * time.Second, Failed},
		"of another namespace":      {"{apiVersion: example.com/v1, kind: Database, metadata: {name: db, namespace: other, uid: a}, spec: {size: 1}}", 28 * time.Second, Failed},
		"an unknown cluster's kind": {"{apiVersion: example.com/v1, kind: DatabaseClass, metadata: {name: db, uid: a}, spec: {size: 1}}", 28 * time.Second, Failed},
		"a kind of Kubernetes":      {"{apiVersion: v1, kind: Service, metadata: {name: db, namespace: prod, uid: a}, spec: {type: ExternalName}}", 28 * time.Second, Failed},
	} {
		t.Run(name, func(t *testing.T) {
			s, run := stage(t, fmt.Sprintf(deploymentYAML, "web", "web"), test.object)
			bad := actor{Name: "web-1", Node: "node-1", Phase: "Pending", Waiting: []string{"CreateContainerConfigError", `secret "db-app" not found`}}
			s.objects[0].updatePod(bad.pod(s.startedAt))
			answer(t, s, finding.Missing{Kind: "Secret", Name: "db-app"}, "")
			run(test.after)
			if got := s.objects[0].status.State; got != test.want {
				t.Errorf("the Deployment is %s after %s, want %s", got, test.after, test.want)
			}
			run(10 * time.Minute)
			if got := s.objects[0].status.State; got != Failed {
				t.Errorf("the Deployment is %s in the end, want it failed", got)
			}
		})
	}
}

// TestSecretOfAJob: a Job of the release may write what is missing, in its first minute, unless it can't start.
func TestSecretOfAJob(t *testing.T) {
	const job = "{apiVersion: batch/v1, kind: Job, metadata: {name: keys, namespace: prod, uid: job}, spec: {template: {spec: {containers: [{name: a}]}}}, status: {active: 1}}"
	for name, test := range map[string]struct {
		waits bool // for a Secret, too
		after time.Duration
		want  State
	}{
		"a Job that runs":                {after: 59 * time.Second, want: Progressing},
		"a Job that runs for long":       {after: 75 * time.Second, want: Failed},
		"a Job that misses a Secret too": {waits: true, after: 40 * time.Second, want: Failed},
	} {
		t.Run(name, func(t *testing.T) {
			s, run := stage(t, fmt.Sprintf(deploymentYAML, "web", "web"), job)
			bad := actor{Name: "web-1", Node: "node-1", Phase: "Pending", Waiting: []string{"CreateContainerConfigError", `secret "web-tls" not found`}}
			s.objects[0].updatePod(bad.pod(s.startedAt))
			if test.waits {
				s.objects[1].updatePod((&actor{Name: "keys-1", Node: "node-1", Phase: "Pending", Waiting: bad.Waiting}).pod(s.startedAt))
			}
			answer(t, s, finding.Missing{Kind: "Secret", Name: "web-tls"}, "")
			run(test.after)
			if got := s.objects[0].status.State; got != test.want {
				t.Errorf("the Deployment is %s after %s, want %s", got, test.after, test.want)
			}
		})
	}
}

// TestPullSecretThatAnOperatorWrites: a registry that denies an image is tried again with the pull secret that an object
// of the release makes.
func TestPullSecretThatAnOperatorWrites(t *testing.T) {
	for name, test := range map[string]struct {
		missing string // which pull secret the kubelet misses; empty for none
		want    State  // while the ExternalSecret isn't ready
	}{
		"made by the ExternalSecret": {missing: "db", want: Progressing},
		"made by nobody":             {missing: "other", want: Failed},
		"there, and no good":         {want: Failed},
	} {
		t.Run(name, func(t *testing.T) {
			s, run := stage(t, fmt.Sprintf(deploymentYAML, "web", "web"), externalYAML)
			web, external := s.objects[0], s.objects[1]
			pull := func(count int) {
				web.updatePod((&actor{Name: "web-1", Node: "node-1", Phase: "Pending", Waiting: []string{"ErrImagePull", "pull access denied, repository does not exist or may require authorization"}}).pod(s.startedAt))
				web.addEvent(finding.Event{Reason: "Failed", Object: "Pod/web-1", Count: count, Message: `Failed to pull image "r/x:1": pull access denied, repository does not exist or may require authorization`}, "web-1", s.opts.Now())
				if test.missing != "" {
					web.addEvent(finding.Event{Reason: "FailedToRetrieveImagePullSecret", Object: "Pod/web-1", Count: count,
						Message: "Unable to retrieve some image pull secrets (" + test.missing + "); attempting to pull the image may not succeed."}, "web-1", s.opts.Now())
				}
				s.updateStatus(web, s.opts.Now())
			}
			pull(1)
			run(10 * time.Second)
			pull(2)
			run(30 * time.Second)
			if web.status.State != test.want {
				t.Fatalf("the Deployment is %s after 40 s, want %s: %s", web.status.State, test.want, web.status.Message)
			}
			external.update(normalisedYAML(t, strings.Replace(externalYAML, `"False"`, `"True"`, 1)), s.opts.Now())
			s.updateStatus(external, s.opts.Now())
			run(40 * time.Second)
			if test.want == Progressing && web.status.State != Progressing {
				t.Errorf("the Deployment is %s before the kubelet pulls with the new Secret", web.status.State)
			}
			run(10 * time.Second)
			if web.status.State != Failed {
				t.Errorf("the Deployment is %s in the end, want it failed", web.status.State)
			}
		})
	}
}
