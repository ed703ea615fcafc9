package rules

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func objectOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var obj unstructured.Unstructured
	if err := obj.UnmarshalJSON(data); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return &obj
}

// TestIntendedStates: what somebody intends is waited for neither until the timeout nor until it fails. A note says
// what it is.
func TestIntendedStates(t *testing.T) {
	const unready = "status: {conditions: [{type: Ready, status: 'False', reason: ReconcileError}, {type: Synced, status: 'False', reason: ReconcileError}]}"
	for name, test := range map[string]struct {
		object string
		note   string // empty: it is waited for, or has failed
	}{
		"Crossplane":                {"{apiVersion: s3.aws.upbound.io/v1beta1, kind: Bucket, metadata: {annotations: {crossplane.io/paused: 'true'}}, " + unready + "}", "paused"},
		"Crossplane, not paused":    {"{apiVersion: s3.aws.upbound.io/v1beta1, kind: Bucket, metadata: {annotations: {crossplane.io/paused: 'false'}}, " + unready + "}", ""},
		"composite of Crossplane":   {"{apiVersion: example.com/v1, kind: XNetwork, metadata: {annotations: {crossplane.io/paused: 'true'}}}", "paused"},
		"nothing to manage":         {"{apiVersion: s3.aws.crossplane.io/v1beta1, kind: Bucket, spec: {managementPolicies: []}, " + unready + "}", "paused"},
		"package of Crossplane":     {"{apiVersion: pkg.crossplane.io/v1, kind: Provider, spec: {revisionActivationPolicy: Manual}, status: {conditions: [{type: Installed, status: 'False', reason: InactivePackageRevision}]}}", "activated by hand"},
		"Flux":                      {"{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {generation: 2}, spec: {suspend: true}, status: {observedGeneration: 1}}", "suspended"},
		"Flux, not suspended":       {"{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {generation: 2}, spec: {suspend: false}, status: {observedGeneration: 1}}", ""},
		"HelmRelease":               {"{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, spec: {suspend: true}}", "suspended"},
		"Strimzi":                   {"{apiVersion: kafka.strimzi.io/v1beta2, kind: Kafka, metadata: {annotations: {strimzi.io/pause-reconciliation: 'true'}}, status: {conditions: [{type: ReconciliationPaused, status: 'True'}]}}", "paused"},
		"unmanaged topic":           {"{apiVersion: kafka.strimzi.io/v1beta2, kind: KafkaTopic, metadata: {annotations: {strimzi.io/managed: 'false'}}, status: {conditions: [{type: Unmanaged, status: 'True'}]}}", "not managed"},
		"pool of no nodes":          {"{apiVersion: kafka.strimzi.io/v1beta2, kind: KafkaNodePool, spec: {replicas: 0}, status: {nodeIds: []}}", "scaled to zero"},
		"CloudNativePG":             {"{apiVersion: postgresql.cnpg.io/v1, kind: Cluster, metadata: {annotations: {cnpg.io/hibernation: 'on'}}, spec: {instances: 3}, status: {phase: Cluster in healthy state, readyInstances: 0}}", "hibernated"},
		"KEDA":                      {"{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {annotations: {autoscaling.keda.sh/paused-replicas: '0'}}}", "paused"},
		"Cluster API":               {"{apiVersion: cluster.x-k8s.io/v1beta1, kind: Machine, metadata: {annotations: {cluster.x-k8s.io/paused: ''}}}", "paused"},
		"Prometheus":                {"{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, spec: {paused: true}, status: {conditions: [{type: Reconciled, status: Unknown, reason: ReconciliationPaused}]}}", "paused"},
		"RabbitMQ":                  {"{apiVersion: rabbitmq.com/v1beta1, kind: RabbitmqCluster, metadata: {labels: {rabbitmq.com/pauseReconciliation: 'true'}}, " + unready + "}", "paused"},
		"any other operator":        {"{apiVersion: db.example.com/v1, kind: Database, metadata: {annotations: {db.example.com/skip-reconcile: 'true'}}, " + unready + "}", "paused"},
		"any kind with a field":     {"{apiVersion: db.example.com/v1, kind: Database, spec: {suspend: true}, " + unready + "}", "suspended"},
		"any kind without status":   {"{apiVersion: db.example.com/v1, kind: Database, spec: {paused: true}}", "paused"},
		"told by a condition":       {"{apiVersion: db.example.com/v1, kind: Database, status: {conditions: [{type: Paused, status: 'True'}, {type: Ready, status: 'False'}]}}", "paused"},
		"told by a reason":          {"{apiVersion: db.example.com/v1, kind: Database, status: {conditions: [{type: Ready, status: Unknown, reason: ReconciliationPaused}]}}", "paused"},
		"shut down":                 {"{apiVersion: postgres-operator.crunchydata.com/v1beta1, kind: PostgresCluster, spec: {shutdown: true}, " + unready + "}", "stopped"},
		"not paused by condition":   {"{apiVersion: db.example.com/v1, kind: Database, status: {conditions: [{type: Paused, status: 'False'}, {type: Ready, status: 'False'}]}}", ""},
		"queued by Kueue":           {"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {labels: {kueue.x-k8s.io/queue-name: a}}, spec: {suspend: true}, " + unready + "}", ""},
		"scaled to zero":            {"{apiVersion: db.example.com/v1, kind: Database, spec: {replicas: 0}, status: {replicas: 0, conditions: [{type: Ready, status: 'False', reason: NoReplicas}]}}", "scaled to zero"},
		"not scaled to zero yet":    {"{apiVersion: db.example.com/v1, kind: Database, spec: {replicas: 0}, status: {replicas: 1, conditions: [{type: Ready, status: 'False', reason: ScalingDown}]}}", ""},
		"synced by hand":            {"{apiVersion: argoproj.io/v1alpha1, kind: Application, spec: {source: {path: .}}, status: {health: {status: Missing}, sync: {status: OutOfSync}}}", "health Missing, sync OutOfSync"},
		"automation switched off":   {"{apiVersion: argoproj.io/v1alpha1, kind: Application, spec: {syncPolicy: {automated: {enabled: false}}}, status: {health: {status: Missing}, sync: {status: OutOfSync}}}", "not synced automatically"},
		"never looked at":           {"{apiVersion: argoproj.io/v1alpha1, kind: Application, spec: {syncPolicy: {syncOptions: []}}}", "not synced automatically"},
		"synced automatically":      {"{apiVersion: argoproj.io/v1alpha1, kind: Application, spec: {syncPolicy: {automated: {}}}, status: {health: {status: Missing}, sync: {status: OutOfSync}}}", ""},
		"being synced":              {"{apiVersion: argoproj.io/v1alpha1, kind: Application, operation: {sync: {}}, spec: {}, status: {health: {status: Missing}, sync: {status: OutOfSync}}}", ""},
		"Argo CD looks away":        {"{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {annotations: {argocd.argoproj.io/skip-reconcile: 'true'}}, spec: {syncPolicy: {automated: {}}}}", "paused"},
		"machine":                   {"{apiVersion: kubevirt.io/v1, kind: VirtualMachine, spec: {runStrategy: Halted}, status: {printableStatus: Stopped, conditions: [{type: Ready, status: 'False', reason: VMINotExists}]}}", "stopped"},
		"machine of old":            {"{apiVersion: kubevirt.io/v1, kind: VirtualMachine, spec: {running: false}}", "stopped"},
		"machine by hand":           {"{apiVersion: kubevirt.io/v1, kind: VirtualMachine, spec: {runStrategy: Manual}, status: {printableStatus: Stopped}}", "by hand"},
		"machine that ran":          {"{apiVersion: kubevirt.io/v1, kind: VirtualMachine, spec: {runStrategy: Once}, status: {printableStatus: Stopped}}", "it has ended"},
		"machine that starts":       {"{apiVersion: kubevirt.io/v1, kind: VirtualMachine, spec: {runStrategy: Always}, status: {printableStatus: Starting}}", ""},
		"disk":                      {"{apiVersion: cdi.kubevirt.io/v1beta1, kind: DataVolume, status: {phase: WaitForFirstConsumer, conditions: [{type: Ready, status: 'False'}]}}", "first pod"},
		"Tekton":                    {"{apiVersion: tekton.dev/v1, kind: PipelineRun, spec: {status: PipelineRunPending}, status: {conditions: [{type: Succeeded, status: Unknown}]}}", "pending"},
		"Flux of a parent":          {"{apiVersion: db.example.com/v1, kind: Database, metadata: {annotations: {kustomize.toolkit.fluxcd.io/reconcile: disabled}}, " + unready + "}", ""},
		"KEDA by an empty value":    {"{apiVersion: keda.sh/v1alpha1, kind: ScaledJob, metadata: {annotations: {autoscaling.keda.sh/paused: ''}}}", "paused"},
		"KEDA, not paused":          {"{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {annotations: {autoscaling.keda.sh/paused: 'false'}}}", ""},
		"Flux operator":             {"{apiVersion: fluxcd.controlplane.io/v1, kind: FluxInstance, metadata: {annotations: {fluxcd.controlplane.io/reconcile: disabled}}, " + unready + "}", "paused"},
		"Azure":                     {"{apiVersion: storage.azure.com/v1, kind: StorageAccount, metadata: {annotations: {serviceoperator.azure.com/reconcile-policy: skip}}, " + unready + "}", "paused"},
		"Elastic":                   {"{apiVersion: elasticsearch.k8s.elastic.co/v1, kind: Elasticsearch, metadata: {annotations: {eck.k8s.elastic.co/managed: 'false'}}, " + unready + "}", "not managed"},
		"Redpanda":                  {"{apiVersion: cluster.redpanda.com/v1alpha2, kind: Redpanda, metadata: {annotations: {cluster.redpanda.com/managed: 'false'}}, " + unready + "}", "not managed"},
		"managed":                   {"{apiVersion: cluster.redpanda.com/v1alpha2, kind: Redpanda, metadata: {annotations: {cluster.redpanda.com/managed: 'true'}}, " + unready + "}", ""},
		"metal":                     {"{apiVersion: metal3.io/v1alpha1, kind: BareMetalHost, metadata: {annotations: {baremetalhost.metal3.io/paused: metal3.io/capm3}}, " + unready + "}", "paused"},
		"chaos":                     {"{apiVersion: chaos-mesh.org/v1alpha1, kind: PodChaos, metadata: {annotations: {experiment.chaos-mesh.org/pause: 'true'}}, " + unready + "}", "paused"},
		"telemetry":                 {"{apiVersion: opentelemetry.io/v1beta1, kind: OpenTelemetryCollector, spec: {managementState: unmanaged}, " + unready + "}", "not managed"},
		"model that is stopped":     {"{apiVersion: serving.kserve.io/v1beta1, kind: InferenceService, metadata: {annotations: {serving.kserve.io/stop: 'true'}}, " + unready + "}", "paused"},
		"fenced":                    {"{apiVersion: postgresql.cnpg.io/v1, kind: Cluster, metadata: {annotations: {cnpg.io/fencedInstances: '[\"*\"]'}}, spec: {instances: 1}, " + unready + "}", "fenced"},
		"fenced no more":            {"{apiVersion: postgresql.cnpg.io/v1, kind: Cluster, metadata: {annotations: {cnpg.io/fencedInstances: '[]'}}, spec: {instances: 1}, " + unready + "}", ""},
		"detached host":             {"{apiVersion: metal3.io/v1alpha1, kind: BareMetalHost, metadata: {annotations: {baremetalhost.metal3.io/detached: ''}}, " + unready + "}", "detached"},
		"chart of k3s":              {"{apiVersion: helm.cattle.io/v1, kind: HelmChart, metadata: {annotations: {helmcharts.cattle.io/unmanaged: 'true'}}, " + unready + "}", "not managed"},
		"told by being stopped":     {"{apiVersion: db.example.com/v1, kind: Database, status: {conditions: [{type: Stopped, status: 'True'}, {type: Ready, status: 'False'}]}}", "stopped"},
		"plan to be approved":       {"{apiVersion: infra.contrib.fluxcd.io/v1alpha2, kind: Terraform, status: {conditions: [{type: Ready, status: Unknown, reason: TerraformPlannedWithChanges}]}}", "approved"},
		"approval":                  {"{apiVersion: db.example.com/v1, kind: Migration, status: {conditions: [{type: Ready, status: 'False', reason: AwaitingApproval}]}}", "approved"},
		"approval, by a phase":      {"{apiVersion: db.example.com/v1, kind: Migration, status: {phase: RequiresApproval}}", "requiresapproval"},
		"stopped with yes":          {"{apiVersion: clickhouse.altinity.com/v1, kind: ClickHouseInstallation, spec: {stop: 'yes'}, " + unready + "}", "stopped"},
		"stopped with no":           {"{apiVersion: clickhouse.altinity.com/v1, kind: ClickHouseInstallation, spec: {stop: 'no'}, " + unready + "}", ""},
		"not enabled":               {"{apiVersion: example.com/v1, kind: Thing, spec: {enabled: false}, " + unready + "}", "disabled"},
		"unmanaged by a field":      {"{apiVersion: psmdb.percona.com/v1, kind: PerconaServerMongoDB, spec: {unmanaged: true}, " + unready + "}", "not managed"},
		"shoot":                     {"{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, spec: {hibernation: {enabled: true}}, " + unready + "}", "hibernated"},
		"config connector":          {"{apiVersion: core.cnrm.cloud.google.com/v1beta1, kind: ConfigConnector, spec: {actuationMode: Paused}, " + unready + "}", "paused"},
		"job of Flink":              {"{apiVersion: flink.apache.org/v1beta1, kind: FlinkDeployment, spec: {job: {state: suspended}}, " + unready + "}", "stopped"},
		"workflow that asks":        {"{apiVersion: argoproj.io/v1alpha1, kind: Workflow, status: {phase: Running, nodes: {a: {type: Pod, phase: Succeeded}, b: {type: Suspend, phase: Running}}}}", "resumed"},
		"approval in a workflow":    {"{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {templates: [{name: delay, suspend: {duration: '20'}}, {name: pause, suspend: {}}]}, status: {phase: Running, nodes: {a: {type: Suspend, phase: Running, templateName: pause}}}}", "resumed"},
		"pause in a workflow":       {"{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {templates: [{name: pause, suspend: {duration: '20'}}]}, status: {phase: Running, nodes: {a: {type: Suspend, phase: Running, templateName: pause}}}}", ""},
		"approval by a template":    {"{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {workflowTemplateRef: {name: t}}, status: {phase: Running, storedWorkflowTemplateSpec: {templates: [{name: pause, suspend: {}}]}, nodes: {a: {type: Suspend, phase: Running, templateName: pause}}}}", "resumed"},
		"pause by a template":       {"{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {workflowTemplateRef: {name: t}}, status: {phase: Running, storedWorkflowTemplateSpec: {templates: [{name: pause, suspend: {duration: 2m}}]}, nodes: {a: {type: Suspend, phase: Running, templateName: pause}}}}", ""},
		"pause by another template": {"{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {templates: [{name: main, steps: []}]}, status: {phase: Running, storedTemplates: {namespaced/t/pause: {name: pause, suspend: {duration: 2m}}}, nodes: {a: {type: Suspend, phase: Running, templateRef: {name: t, template: pause}}}}}", ""},
		"pause and an approval":     {"{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {templates: [{name: delay, suspend: {duration: '20'}}, {name: pause, suspend: {}}]}, status: {phase: Running, nodes: {a: {type: Suspend, phase: Running, templateName: delay}, b: {type: Suspend, phase: Running, templateName: pause}}}}", "resumed"},
		"workflow that runs":        {"{apiVersion: argoproj.io/v1alpha1, kind: Workflow, status: {phase: Running, nodes: {a: {type: Pod, phase: Running}}}}", ""},
		"connector":                 {"{apiVersion: kafka.strimzi.io/v1beta2, kind: KafkaConnector, spec: {state: stopped}, status: {conditions: [{type: NotReady, status: 'True'}]}}", "stopped"},
		"hibernating cluster":       {"{apiVersion: hive.openshift.io/v1, kind: ClusterDeployment, spec: {powerState: Hibernating}, " + unready + "}", "stopped"},
		"running cluster":           {"{apiVersion: hive.openshift.io/v1, kind: ClusterDeployment, spec: {powerState: Running}, " + unready + "}", ""},
		"schedule":                  {"{apiVersion: snapscheduler.backube/v1, kind: SnapshotSchedule, spec: {disabled: true}, " + unready + "}", "disabled"},
		"told by a phase":           {"{apiVersion: db.example.com/v1, kind: Database, status: {phase: Hibernated, conditions: [{type: Ready, status: 'False'}]}}", "hibernated"},
		"told by a state":           {"{apiVersion: core.oam.dev/v1beta1, kind: Application, status: {status: workflowSuspending}}", "workflowsuspending"},
		"instances to zero":         {"{apiVersion: db.example.com/v1, kind: Database, spec: {size: 0}, status: {phase: Scaling, conditions: [{type: Ready, status: 'False', reason: NoReplicas}]}}", "scaled to zero"},
		"something in it suspended": {"{apiVersion: argoproj.io/v1alpha1, kind: Application, spec: {syncPolicy: {automated: {}}, source: {path: .}, destination: {}}, status: {health: {status: Suspended}, sync: {status: Synced, comparedTo: {source: {path: .}, destination: {}}}}}", "suspended or paused"},
		"Rollout":                   {"{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {generation: 2}, spec: {paused: true}, status: {observedGeneration: '1', phase: Progressing}}", "paused"},
		"canary that asks":          {"{apiVersion: flagger.app/v1beta1, kind: Canary, status: {phase: WaitingPromotion, conditions: [{type: Promoted, status: Unknown}]}}", "waits to be confirmed"},
		"subscription by hand":      {"{apiVersion: operators.coreos.com/v1alpha1, kind: Subscription, spec: {installPlanApproval: Manual}, status: {state: UpgradePending}}", "approved"},
		"subscription":              {"{apiVersion: operators.coreos.com/v1alpha1, kind: Subscription, spec: {}, status: {state: UpgradePending}}", ""},
		"machine to be migrated":    {"{apiVersion: kubevirt.io/v1, kind: VirtualMachine, spec: {runStrategy: WaitAsReceiver}}", "migrated"},
		"pool of machines":          {"{apiVersion: pool.kubevirt.io/v1beta1, kind: VirtualMachinePool, spec: {paused: true}}", "paused"},
		"job of Kubeflow":           {"{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {runPolicy: {suspend: true}}, " + unready + "}", "suspended"},
		"synced, with something left over": {"{apiVersion: argoproj.io/v1alpha1, kind: Application, spec: {destination: {name: here}, source: {path: .}, syncPolicy: {automated: {selfHeal: true}}}, " +
			"status: {health: {status: Healthy}, sync: {status: OutOfSync, revision: a, comparedTo: {destination: {name: here}}}, resources: [{status: Synced}, {status: OutOfSync, requiresPruning: true}], reconciledAt: '2026-01-01T00:00:09Z', operationState: {phase: Succeeded, finishedAt: '2026-01-01T00:00:05Z', syncResult: {revision: a, source: {path: .}}}}}", "OutOfSync"},
		"synced, and changed by somebody": {"{apiVersion: argoproj.io/v1alpha1, kind: Application, spec: {destination: {name: here}, source: {path: .}, syncPolicy: {automated: {}}}, " +
			"status: {health: {status: Healthy}, sync: {status: OutOfSync, revision: a, comparedTo: {destination: {name: here}}}, resources: [{status: OutOfSync}], reconciledAt: '2026-01-01T00:00:09Z', operationState: {phase: Succeeded, finishedAt: '2026-01-01T00:00:05Z', syncResult: {revision: a, source: {path: .}}}}}", "OutOfSync"},
		"synced, and not compared since": {"{apiVersion: argoproj.io/v1alpha1, kind: Application, spec: {destination: {name: here}, source: {path: .}, syncPolicy: {automated: {}}}, " +
			"status: {health: {status: Healthy}, sync: {status: OutOfSync, revision: a, comparedTo: {destination: {name: here}}}, resources: [{status: OutOfSync}], reconciledAt: '2026-01-01T00:00:04Z', operationState: {phase: Succeeded, finishedAt: '2026-01-01T00:00:05Z', syncResult: {revision: a, source: {path: .}}}}}", ""},
		"about to be healed": {"{apiVersion: argoproj.io/v1alpha1, kind: Application, spec: {destination: {name: here}, source: {path: .}, syncPolicy: {automated: {selfHeal: true}}}, " +
			"status: {health: {status: Healthy}, sync: {status: OutOfSync, revision: a, comparedTo: {destination: {name: here}}}, resources: [{status: OutOfSync}], reconciledAt: '2026-01-01T00:00:09Z', operationState: {phase: Succeeded, finishedAt: '2026-01-01T00:00:05Z', syncResult: {revision: a, source: {path: .}}}}}", ""},
		"about to be synced to another revision": {"{apiVersion: argoproj.io/v1alpha1, kind: Application, spec: {destination: {name: here}, source: {path: .}, syncPolicy: {automated: {}}}, " +
			"status: {health: {status: Healthy}, sync: {status: OutOfSync, revision: b, comparedTo: {destination: {name: here}}}, resources: [{status: OutOfSync}], reconciledAt: '2026-01-01T00:00:09Z', operationState: {phase: Succeeded, finishedAt: '2026-01-01T00:00:05Z', syncResult: {revision: a, source: {path: .}}}}}", ""},
		"about to be synced from another source": {"{apiVersion: argoproj.io/v1alpha1, kind: Application, spec: {destination: {name: here}, source: {path: new}, syncPolicy: {automated: {}}}, " +
			"status: {health: {status: Healthy}, sync: {status: OutOfSync, revision: a, comparedTo: {destination: {name: here}}}, resources: [{status: OutOfSync}], reconciledAt: '2026-01-01T00:00:09Z', operationState: {phase: Succeeded, finishedAt: '2026-01-01T00:00:05Z', syncResult: {revision: a, source: {path: .}}}}}", ""},
		"of two sources, changed by somebody": {"{apiVersion: argoproj.io/v1alpha1, kind: Application, spec: {destination: {name: here}, sources: [{path: .}, {path: b}], syncPolicy: {automated: {}}}, " +
			"status: {health: {status: Healthy}, sync: {status: OutOfSync, revisions: [a, b], comparedTo: {destination: {name: here}}}, resources: [{status: OutOfSync}], reconciledAt: '2026-01-01T00:00:09Z', operationState: {phase: Succeeded, finishedAt: '2026-01-01T00:00:05Z', syncResult: {revisions: [a, b], sources: [{path: .}, {path: b}]}}}}", "OutOfSync"},
		"two listeners of one Gateway": {"{apiVersion: gateway.networking.k8s.io/v1, kind: GRPCRoute, metadata: {generation: 1, namespace: a}, spec: {parentRefs: [{name: public, sectionName: one}, {name: public, sectionName: two}]}, " +
			"status: {parents: [{parentRef: {name: public, sectionName: one}, conditions: [{type: Accepted, status: 'True', observedGeneration: 1}]}]}}", "Gateway/public (two)"},
		"Gateways of two namespaces": {"{apiVersion: gateway.networking.k8s.io/v1, kind: TLSRoute, metadata: {generation: 1, namespace: a}, spec: {parentRefs: [{name: public}, {name: public, namespace: b}]}, " +
			"status: {parents: [{parentRef: {name: public, namespace: a, kind: Gateway}, conditions: [{type: Accepted, status: 'True', observedGeneration: 1}]}]}}", "Gateway/b/public"},
		"route of two": {"{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {generation: 1}, spec: {parentRefs: [{name: public}, {name: svc, kind: Service}]}, " +
			"status: {parents: [{parentRef: {name: public}, conditions: [{type: Accepted, status: 'True', observedGeneration: 1}]}]}}", "no controller answers for its parent Service/svc"},
		"route of two, refused": {"{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {generation: 1}, spec: {parentRefs: [{name: public}, {name: svc, kind: Service}]}, " +
			"status: {parents: [{parentRef: {name: public}, conditions: [{type: Accepted, status: 'False', observedGeneration: 1}]}]}}", ""},
	} {
		applied := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
		obj := objectOf(t, test.object)
		v := (*Set)(nil).Evaluate(Input{Object: obj, Changed: true, AppliedAt: applied, Now: applied.Add(40 * time.Second)})
		notes := strings.Join(v.Notes, "; ")
		if (v.Phase == Ready) != (test.note != "") || !strings.Contains(notes, test.note) {
			t.Errorf("%s: phase %d, notes %q, message %q; want a note %q", name, v.Phase, notes, v.Message, test.note)
		}
	}
}

// TestStatusOfBeforeTheChange: if workloads of the release are restarted, one of them may be the controller of an
// object, and what was written about the object before is no news.
func TestStatusOfBeforeTheChange(t *testing.T) {
	const before = "{apiVersion: example.com/v1, kind: Database, metadata: {generation: 2}, status: {conditions: [{type: Ready, status: 'True', reason: Ok}]}}"
	begin := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		now                 string        // empty: the status is as it was
		after, workloadsFor time.Duration // workloadsFor: after which the workloads were ready; negative before the change, in an earlier wave
		busy                bool
		want                Phase
		unverified          bool
	}{
		"nobody is restarted, soon":        {after: 4 * time.Second, want: Progressing},
		"nobody is restarted":              {after: 5 * time.Second, want: Ready},
		"it is being restarted":            {after: 10 * time.Minute, busy: true, want: Progressing},
		"it is, and the old one writes":    {now: "{type: Ready, status: 'True', reason: Again}", after: time.Minute, busy: true, want: Progressing},
		"it is ready and has said nothing": {after: 79 * time.Second, workloadsFor: time.Minute, want: Progressing},
		"it is ready and says nothing":     {after: 80 * time.Second, workloadsFor: time.Minute, want: Ready, unverified: true},
		"it is ready and writes":           {now: "{type: Ready, status: 'True', reason: Again}", after: 61 * time.Second, workloadsFor: time.Minute, want: Ready},
		"it was ready before the change":   {after: 6 * time.Second, workloadsFor: -time.Second, want: Progressing},
		"it was, and writes":               {now: "{type: Ready, status: 'True', reason: Again}", after: 6 * time.Second, workloadsFor: -time.Second, want: Ready},
		"it was, and says nothing":         {after: 20 * time.Second, workloadsFor: -time.Second, want: Ready, unverified: true},
		"it is ready and refuses":          {now: "{type: Ready, status: 'False', reason: UpgradeFailed}", after: 61 * time.Second, workloadsFor: time.Minute, want: Failed},
	} {
		in := Input{Baseline: objectOf(t, before), Object: objectOf(t, before), Changed: true, AppliedAt: begin, Now: begin.Add(test.after), Workloads: Workloads{Busy: test.busy}}
		if test.now != "" {
			in.Object = objectOf(t, "{apiVersion: example.com/v1, kind: Database, metadata: {generation: 2}, status: {conditions: ["+test.now+"]}}")
		}
		if test.workloadsFor != 0 {
			in.Workloads.ReadySince = begin.Add(test.workloadsFor)
		}
		v := (*Set)(nil).Evaluate(in)
		if v.Phase != test.want || v.Unverified != test.unverified || test.unverified && !strings.Contains(strings.Join(v.Notes, ""), "unverified") {
			t.Errorf("%s: %+v, want phase %d, unverified %t", name, v, test.want, test.unverified)
		}
	}
}

// TestFailureOfBeforeTheChange: an old failure is no news either while the controller is being restarted.
func TestFailureOfBeforeTheChange(t *testing.T) {
	obj := objectOf(t, "{apiVersion: example.com/v1, kind: Database, status: {conditions: [{type: Ready, status: 'False', reason: SyncError}]}}")
	begin := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	in := Input{Baseline: obj, Object: obj, AppliedAt: begin, Now: begin.Add(time.Hour), Workloads: Workloads{Busy: true}}
	if v := (*Set)(nil).Evaluate(in); v.Phase != Progressing {
		t.Errorf("while the workloads aren't ready: %+v, want progress", v)
	}
	if in.Workloads.Busy = false; (*Set)(nil).Evaluate(in).Phase != Failed {
		t.Error("it isn't failed when they are")
	}
}

// TestPausedNoMore: that it was paused before the change is no news.
func TestPausedNoMore(t *testing.T) {
	obj := objectOf(t, "{apiVersion: db.example.com/v1, kind: Database, status: {conditions: [{type: Paused, status: 'True'}, {type: Ready, status: 'False', reason: Paused}]}}")
	begin := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	if v := (*Set)(nil).Evaluate(Input{Baseline: obj, Object: obj, Changed: true, AppliedAt: begin, Now: begin.Add(time.Minute)}); v.Phase != Progressing {
		t.Errorf("%+v, want progress", v)
	}
}
