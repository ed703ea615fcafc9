package rules

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWellKnownRulesCompile(t *testing.T) {
	set, err := Parse(wellKnownData)
	if err != nil {
		t.Fatal(err)
	}
	if len(set.rules) < 20 {
		t.Errorf("%d rules, want more", len(set.rules))
	}
}

func TestParseTellsAllThatIsWrong(t *testing.T) {
	_, err := Parse([]byte("rules:\n- {group: a, kind: B, ready: 'self.'}\n- {group: a, kind: C, ready: '1 + 1'}\n- {group: a}\n"))
	if err == nil {
		t.Fatal("it was taken")
	}
	for _, want := range []string{"rule 1, B.a", "rule 2, C.a", "gives int, not bool", "rule 3"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want %q in it", err, want)
		}
	}
	if _, err := Parse([]byte("rules: [{kind: A, redy: x}]")); err == nil {
		t.Error("a misspelt field was taken")
	}
	for _, text := range []string{"rules", "rules: {kind: A}", "- kind: A"} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), `not a file of rules: it needs a list "rules:"`) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestUsersRuleGoesFirst(t *testing.T) {
	set, err := Parse([]byte(`
rules:
- {group: apps, kind: Deployment, ready: 'self.status.readyReplicas > 1', message: '"only " + string(self.status.readyReplicas)'}
- {group: '*.example.com', kind: '*', ready: '"Ready" in yes'}
`))
	if err != nil {
		t.Fatal(err)
	}
	object := func(apiVersion, kind string, status map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "status": status}}
	}
	one := set.Evaluate(Input{Object: object("apps/v1", "Deployment", map[string]any{"readyReplicas": int64(1)})})
	if one.Phase != Progressing || one.Message != "only 1" {
		t.Errorf("one ready = %+v", one)
	}
	if two := set.Evaluate(Input{Object: object("apps/v1", "Deployment", map[string]any{"readyReplicas": int64(2)})}); two.Phase != Ready {
		t.Errorf("two ready = %+v", two)
	}
	wild := object("a.example.com/v1", "Any", map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}})
	if v := set.Evaluate(Input{Object: wild}); v.Phase != Ready || v.Unverified {
		t.Errorf("wild = %+v", v)
	}
}

// TestObjectsWithoutController: without a status an object is ready, unverified,
// some time after the workloads are, of which one may be its controller.
func TestObjectsWithoutController(t *testing.T) {
	begin := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		apiVersion, kind string
		after, calm      time.Duration
		busy             bool
		want             Phase
	}{
		"any kind, soon":                {"example.com/v1", "Thing", 19 * time.Second, 0, false, Progressing},
		"any kind":                      {"example.com/v1", "Thing", 20 * time.Second, 0, false, Ready},
		"its operator starts":           {"example.com/v1", "Thing", 10 * time.Minute, 0, true, Progressing},
		"its operator has just started": {"example.com/v1", "Thing", 70 * time.Second, time.Minute, false, Progressing},
		"its operator does nothing":     {"example.com/v1", "Thing", 80 * time.Second, time.Minute, false, Ready},
		"a known kind, soon":            {"cert-manager.io/v1", "Certificate", 59 * time.Second, 0, false, Progressing},
		"a known kind":                  {"cert-manager.io/v1", "Certificate", time.Minute, 0, false, Ready},
	} {
		in := Input{Object: &unstructured.Unstructured{Object: map[string]any{"apiVersion": test.apiVersion, "kind": test.kind}},
			Changed: true, AppliedAt: begin, Now: begin.Add(test.after), Workloads: Workloads{Busy: test.busy}}
		if test.calm > 0 {
			in.Workloads.ReadySince = begin.Add(test.calm)
		}
		if v := (*Set)(nil).Evaluate(in); v.Phase != test.want || v.Unverified != (test.want == Ready) {
			t.Errorf("%s: %+v, want phase %d", name, v, test.want)
		}
	}
}

// TestReadinessOfKinds: the words of an object's own controller decide, also where there are few of them.
func TestReadinessOfKinds(t *testing.T) {
	const month = 30 * 24 * time.Hour
	applied := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		object     string
		unchanged  bool
		before     bool          // its status is the one of before the change
		quiet      time.Duration // since the last progress; a second if 0
		want       Phase
		unverified bool
		endless    bool // it may be without progress for ever
		note       string
	}{
		"Kibana":                             {object: "{apiVersion: kibana.k8s.elastic.co/v1, kind: Kibana, status: {health: green}}", want: Ready},
		"Kibana that is down":                {object: "{apiVersion: kibana.k8s.elastic.co/v1, kind: Kibana, status: {health: red}}", quiet: month},
		"queue of Volcano":                   {object: "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, status: {state: Open}}", want: Ready},
		"cluster of Rook outside":            {object: "{apiVersion: ceph.rook.io/v1, kind: CephCluster, status: {phase: Connected}}", want: Ready},
		"analysis of Argo":                   {object: "{apiVersion: argoproj.io/v1alpha1, kind: AnalysisRun, status: {phase: Successful}}", want: Ready},
		"server of NGINX":                    {object: "{apiVersion: k8s.nginx.org/v1, kind: VirtualServer, status: {state: Valid}}", want: Ready},
		"unknown word, soon":                 {object: "{apiVersion: example.com/v1, kind: Thing, metadata: {generation: 2}, status: {observedGeneration: 2, phase: Basked}}", quiet: 19 * time.Second},
		"unknown word":                       {object: "{apiVersion: example.com/v1, kind: Thing, metadata: {generation: 2}, status: {observedGeneration: 2, phase: Basked}}", quiet: 20 * time.Second, want: Ready, unverified: true, note: "Basked"},
		"unknown word of before":             {object: "{apiVersion: example.com/v1, kind: Thing, metadata: {generation: 2}, status: {observedGeneration: 1, phase: Basked}}", quiet: month},
		"word of motion":                     {object: "{apiVersion: example.com/v1, kind: Thing, status: {phase: ProvisioningDisks}}", quiet: month},
		"word of denial":                     {object: "{apiVersion: example.com/v1, kind: Thing, status: {phase: NotReady}}", quiet: month},
		"extension":                          {object: "{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, metadata: {generation: 1}, status: {conditions: [{type: Progressing, status: 'True', reason: Succeeded, observedGeneration: 1}, {type: Installed, status: 'True', reason: Succeeded, observedGeneration: 1}]}}", want: Ready},
		"extension that tries again":         {object: "{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, metadata: {generation: 1}, status: {conditions: [{type: Progressing, status: 'True', reason: Retrying, observedGeneration: 1}, {type: Installed, status: 'True', reason: Succeeded, observedGeneration: 1}]}}"},
		"extension that is blocked":          {object: "{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, metadata: {generation: 1}, status: {conditions: [{type: Progressing, status: 'False', reason: Blocked, observedGeneration: 1}, {type: Installed, status: 'False', reason: Failed, observedGeneration: 1}]}}", want: Failed},
		"catalog":                            {object: "{apiVersion: olm.operatorframework.io/v1, kind: ClusterCatalog, status: {conditions: [{type: Progressing, status: 'True', reason: Succeeded}, {type: Serving, status: 'True', reason: Available}]}}", want: Ready},
		"catalog that isn't wanted":          {object: "{apiVersion: olm.operatorframework.io/v1, kind: ClusterCatalog, spec: {availabilityMode: Unavailable}, status: {conditions: [{type: Progressing, status: 'True', reason: Succeeded}, {type: Serving, status: 'False', reason: UserSpecifiedUnavailable}]}}", want: Ready},
		"any kind that has arrived":          {object: "{apiVersion: example.com/v1, kind: Thing, status: {conditions: [{type: Progressing, status: 'True', reason: Succeeded}]}}", want: Ready},
		"any kind on its way":                {object: "{apiVersion: example.com/v1, kind: Thing, status: {conditions: [{type: Progressing, status: 'True', reason: RollingOut}]}}"},
		"usage of Crossplane":                {object: "{apiVersion: protection.crossplane.io/v1beta1, kind: ClusterUsage, status: {conditions: [{type: Ready, status: 'True'}]}}", want: Ready},
		"scheduled operation":                {object: "{apiVersion: ops.crossplane.io/v1alpha1, kind: CronOperation, status: {conditions: [{type: Scheduling, status: 'True'}, {type: Synced, status: 'True'}]}}", want: Ready},
		"scheduled operation that never ran": {object: "{apiVersion: ops.crossplane.io/v1alpha1, kind: CronOperation, status: {conditions: [{type: Scheduling, status: 'True'}]}}", want: Ready},
		"operation that runs":                {object: "{apiVersion: ops.crossplane.io/v1alpha1, kind: Operation, status: {conditions: [{type: Synced, status: 'True'}]}}", endless: true},
		"operation":                          {object: "{apiVersion: ops.crossplane.io/v1alpha1, kind: Operation, status: {conditions: [{type: Synced, status: 'True'}, {type: Succeeded, status: 'True'}]}}", want: Ready, endless: true},
		"account of a provider":              {object: "{apiVersion: aws.upbound.io/v1beta1, kind: ProviderConfig}", want: Ready},
		"account of a cluster's provider":    {object: "{apiVersion: aws.m.upbound.io/v1beta1, kind: ClusterProviderConfig, status: {users: 2}}", want: Ready},
		"account of a community provider":    {object: "{apiVersion: kubernetes.crossplane.io/v1alpha1, kind: ProviderConfig}", want: Ready},
		"how a provider runs":                {object: "{apiVersion: pkg.crossplane.io/v1beta1, kind: DeploymentRuntimeConfig}", want: Ready},
		"certificate that isn't renewed":     {object: "{apiVersion: cert-manager.io/v1, kind: Certificate, status: {conditions: [{type: Ready, status: 'True'}, {type: Issuing, status: 'False', reason: Failed, message: rate limited}]}}", unchanged: true, want: Ready, note: "rate limited"},
		"certificate that isn't issued":      {object: "{apiVersion: cert-manager.io/v1, kind: Certificate, status: {conditions: [{type: Ready, status: 'False'}, {type: Issuing, status: 'False', reason: Failed, message: rate limited}]}}", want: Failed},
		"backup that hasn't begun":           {object: "{apiVersion: postgresql.cnpg.io/v1, kind: Backup}", endless: true},
		"backup":                             {object: "{apiVersion: postgresql.cnpg.io/v1, kind: Backup, status: {phase: completed}}", want: Ready, endless: true},
		"backup that failed":                 {object: "{apiVersion: postgresql.cnpg.io/v1, kind: Backup, status: {phase: failed}}", want: Failed, endless: true},
		"database that isn't made":           {object: "{apiVersion: postgresql.cnpg.io/v1, kind: Database, metadata: {generation: 1}, status: {observedGeneration: 1, applied: false, message: no owner}}", want: Failed},
		"database":                           {object: "{apiVersion: postgresql.cnpg.io/v1, kind: Database, metadata: {generation: 1}, status: {observedGeneration: 1, applied: true}}", want: Ready},
		"Velero's backup, not begun":         {object: "{apiVersion: velero.io/v1, kind: Backup}", endless: true},
		"Velero's backup":                    {object: "{apiVersion: velero.io/v1, kind: Backup, status: {phase: Completed}}", want: Ready, endless: true},
		"Velero's backup, half of it":        {object: "{apiVersion: velero.io/v1, kind: Backup, status: {phase: PartiallyFailed}}", want: Failed, endless: true},
		"Velero's restore":                   {object: "{apiVersion: velero.io/v1, kind: Restore, status: {phase: InProgress}}", endless: true},
		"image on its way":                   {object: "{apiVersion: cdi.kubevirt.io/v1beta1, kind: DataVolume, status: {phase: ImportInProgress}}", endless: true},
		"workflow":                           {object: "{apiVersion: argoproj.io/v1alpha1, kind: Workflow, status: {phase: Running}}", endless: true},
		"run of a pipeline":                  {object: "{apiVersion: tekton.dev/v1, kind: PipelineRun, status: {conditions: [{type: Succeeded, status: Unknown, reason: Running}]}}", endless: true},
		"backup of Longhorn":                 {object: "{apiVersion: longhorn.io/v1beta2, kind: Backup, status: {state: InProgress}}", endless: true},
		"route of Istio":                     {object: "{apiVersion: networking.istio.io/v1, kind: VirtualService, spec: {hosts: [a]}}", want: Ready},
		"grant":                              {object: "{apiVersion: gateway.networking.k8s.io/v1beta1, kind: ReferenceGrant, spec: {from: []}}", want: Ready},
		"primary that waits for somebody":    {object: "{apiVersion: postgresql.cnpg.io/v1, kind: Cluster, spec: {instances: 1, primaryUpdateStrategy: supervised}, status: {phase: Waiting for user action, readyInstances: 1, conditions: [{type: Ready, status: 'True'}]}}", want: Ready, note: "waits"},
		"halted database":                    {object: "{apiVersion: kubedb.com/v1, kind: Postgres, spec: {halted: true}, status: {phase: NotReady}}", want: Ready, note: "stopped"},
		"database that was halted":           {object: "{apiVersion: kubedb.com/v1, kind: Postgres, status: {phase: Halted}}", want: Ready, note: "halted"},
		"Elastic, paused":                    {object: "{apiVersion: elasticsearch.k8s.elastic.co/v1, kind: Elasticsearch, metadata: {annotations: {eck.k8s.elastic.co/pause-orchestration: 'true'}}, status: {phase: ApplyingChanges}}", want: Ready, note: "paused"},
		"cluster of RabbitMQ, forming":       {object: "{apiVersion: rabbitmq.com/v1beta1, kind: RabbitmqCluster, metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: AllReplicasReady, status: 'False'}, {type: ClusterAvailable, status: 'True'}]}}", quiet: month},
		"cluster of RabbitMQ":                {object: "{apiVersion: rabbitmq.com/v1beta1, kind: RabbitmqCluster, metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: AllReplicasReady, status: 'True'}, {type: ClusterAvailable, status: 'True'}, {type: NoWarnings, status: 'False', message: 'cpu request'}]}}", want: Ready, note: "cpu request"},
		"tenant of MinIO that waits":         {object: "{apiVersion: minio.min.io/v2, kind: Tenant, status: {currentState: Waiting for Pods to be ready}}", quiet: month},
		"tenant of MinIO":                    {object: "{apiVersion: minio.min.io/v2, kind: Tenant, status: {currentState: Initialized}}", want: Ready},
		"tenant of MinIO without password":   {object: "{apiVersion: minio.min.io/v2, kind: Tenant, status: {currentState: Tenant credentials are not set properly}}", want: Failed},
		"VictoriaMetrics on its way":         {object: "{apiVersion: operator.victoriametrics.com/v1beta1, kind: VMSingle, metadata: {generation: 2}, status: {observedGeneration: 2, updateStatus: expanding}}", quiet: month},
		"VictoriaMetrics":                    {object: "{apiVersion: operator.victoriametrics.com/v1beta1, kind: VMSingle, metadata: {generation: 2}, status: {observedGeneration: 2, updateStatus: operational}}", want: Ready},
		"VictoriaMetrics that fails":         {object: "{apiVersion: operator.victoriametrics.com/v1beta1, kind: VMAgent, metadata: {generation: 2}, status: {observedGeneration: 2, updateStatus: failed, reason: no secret}}", want: Failed},
		"VictoriaMetrics, paused":            {object: "{apiVersion: operator.victoriametrics.com/v1beta1, kind: VMAgent, spec: {paused: true}, status: {updateStatus: paused}}", want: Ready, note: "paused"},
		"collector that starts":              {object: "{apiVersion: opentelemetry.io/v1beta1, kind: OpenTelemetryCollector, spec: {replicas: 2}, status: {scale: {replicas: 2, statusReplicas: 1/2}}}", quiet: month},
		"collector":                          {object: "{apiVersion: opentelemetry.io/v1beta1, kind: OpenTelemetryCollector, spec: {replicas: 2}, status: {scale: {replicas: 2, statusReplicas: 2/2}}}", want: Ready},
		"collector of each pod":              {object: "{apiVersion: opentelemetry.io/v1beta1, kind: OpenTelemetryCollector, spec: {mode: sidecar}, status: {version: 1.0.0}}", want: Ready},
		"collector of no node":               {object: "{apiVersion: opentelemetry.io/v1beta1, kind: OpenTelemetryCollector, spec: {mode: daemonset}, status: {scale: {statusReplicas: 0/0}}}", want: Ready},
		"dashboard that can't be applied":    {object: "{apiVersion: grafana.integreatly.org/v1beta1, kind: GrafanaDashboard, status: {conditions: [{type: DashboardSynchronized, status: 'False', message: bad JSON}]}}", want: Failed},
		"dashboard":                          {object: "{apiVersion: grafana.integreatly.org/v1beta1, kind: GrafanaDashboard, status: {conditions: [{type: DashboardSynchronized, status: 'True'}]}}", want: Ready},
		"Grafana that deploys":               {object: "{apiVersion: grafana.integreatly.org/v1beta1, kind: Grafana, status: {stage: deployment, stageStatus: in progress}}", quiet: month},
		"Grafana":                            {object: "{apiVersion: grafana.integreatly.org/v1beta1, kind: Grafana, status: {stage: complete, stageStatus: success}}", want: Ready},
		"proxy of Contour that is invalid":   {object: "{apiVersion: projectcontour.io/v1, kind: HTTPProxy, metadata: {generation: 1}, status: {currentStatus: invalid, description: no service, conditions: [{type: Valid, status: 'False', observedGeneration: 1}]}}", want: Failed},
		"proxy of Contour without a root":    {object: "{apiVersion: projectcontour.io/v1, kind: HTTPProxy, metadata: {generation: 1}, status: {currentStatus: orphaned, description: no root, conditions: [{type: Valid, status: 'False', observedGeneration: 1, errors: [{type: Orphaned, reason: Orphaned}]}]}}", want: Ready, note: "no proxy includes it yet"},
		"root of Contour, soon":              {object: "{apiVersion: projectcontour.io/v1, kind: HTTPProxy, metadata: {generation: 1}, spec: {includes: [{name: a}]}, status: {currentStatus: invalid, description: see Errors, conditions: [{type: Valid, status: 'False', observedGeneration: 1, errors: [{type: IncludeError, reason: IncludeNotFound}]}]}}", quiet: 59 * time.Second},
		"root of Contour without its child":  {object: "{apiVersion: projectcontour.io/v1, kind: HTTPProxy, metadata: {generation: 1}, spec: {includes: [{name: a}]}, status: {currentStatus: invalid, description: see Errors, conditions: [{type: Valid, status: 'False', observedGeneration: 1, errors: [{type: IncludeError, reason: IncludeNotFound}]}]}}", quiet: time.Minute, want: Ready, unverified: true, note: "isn't there yet"},
		"root of Contour of before":          {object: "{apiVersion: projectcontour.io/v1, kind: HTTPProxy, metadata: {generation: 2}, spec: {includes: [{name: a}]}, status: {currentStatus: invalid, description: see Errors, conditions: [{type: Valid, status: 'False', observedGeneration: 1, errors: [{type: IncludeError, reason: IncludeNotFound}]}]}}", quiet: month},
		"root of Contour that is invalid":    {object: "{apiVersion: projectcontour.io/v1, kind: HTTPProxy, metadata: {generation: 1}, spec: {includes: [{name: a}]}, status: {currentStatus: invalid, description: see Errors, conditions: [{type: Valid, status: 'False', observedGeneration: 1, errors: [{type: IncludeError, reason: IncludeNotFound}, {type: TLSError, reason: SecretNotValid}]}]}}", want: Failed},
		"proxy of Contour of before":         {object: "{apiVersion: projectcontour.io/v1, kind: HTTPProxy, metadata: {generation: 2}, status: {currentStatus: valid, conditions: [{type: Valid, status: 'True', observedGeneration: 1}]}}", quiet: month},
		"proxy of Contour":                   {object: "{apiVersion: projectcontour.io/v1, kind: HTTPProxy, metadata: {generation: 1}, status: {currentStatus: valid, conditions: [{type: Valid, status: 'True', observedGeneration: 1}]}}", want: Ready},
		"route that isn't admitted":          {object: "{apiVersion: route.openshift.io/v1, kind: Route, status: {ingress: [{conditions: [{type: Admitted, status: 'False', reason: HostAlreadyClaimed}]}]}}", want: Failed},
		"route":                              {object: "{apiVersion: route.openshift.io/v1, kind: Route, status: {ingress: [{conditions: [{type: Admitted, status: 'True'}]}]}}", want: Ready},
		"rollout of OpenShift, old pods":     {object: "{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, metadata: {generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, availableReplicas: 2, conditions: [{type: Available, status: 'True'}, {type: Progressing, status: 'True', reason: ReplicationControllerUpdated}]}}", quiet: month},
		"rollout of OpenShift":               {object: "{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, metadata: {generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2, conditions: [{type: Available, status: 'True'}, {type: Progressing, status: 'True', reason: NewReplicationControllerAvailable}]}}", want: Ready},
		"Elastic that is red":                {object: "{apiVersion: elasticsearch.k8s.elastic.co/v1, kind: Elasticsearch, status: {phase: Ready, health: red}}", quiet: month, endless: true},
		"Elastic of one node":                {object: "{apiVersion: elasticsearch.k8s.elastic.co/v1, kind: Elasticsearch, status: {phase: Ready, health: yellow}}", want: Ready, endless: true, note: "yellow"},
		"cluster of Rook":                    {object: "{apiVersion: ceph.rook.io/v1, kind: CephCluster, status: {phase: Ready, ceph: {health: HEALTH_WARN}, conditions: [{type: Ready, status: 'True'}, {type: Progressing, status: 'True', reason: ClusterProgressing}]}}", want: Ready, note: "HEALTH_WARN"},
		"cluster of Crunchy, half of it":     {object: "{apiVersion: postgres-operator.crunchydata.com/v1beta1, kind: PostgresCluster, metadata: {generation: 1}, spec: {instances: [{name: a, replicas: 2}]}, status: {observedGeneration: 1, instances: [{name: a, replicas: 1, readyReplicas: 1, updatedReplicas: 1}]}}", quiet: month},
		"cluster of Crunchy":                 {object: "{apiVersion: postgres-operator.crunchydata.com/v1beta1, kind: PostgresCluster, metadata: {generation: 1}, spec: {instances: [{replicas: 2}]}, status: {observedGeneration: 1, instances: [{name: '00', replicas: 2, readyReplicas: 2, updatedReplicas: 2}]}}", want: Ready},
		"cluster of Crunchy, by its default": {object: "{apiVersion: postgres-operator.crunchydata.com/v1beta1, kind: PostgresCluster, metadata: {generation: 1}, spec: {instances: [{name: '', replicas: 1}]}, status: {observedGeneration: 1, instances: [{name: '00', replicas: 1, readyReplicas: 1, updatedReplicas: 1}]}}", want: Ready},
		"cluster of MySQL, half of it":       {object: "{apiVersion: mysql.oracle.com/v2, kind: InnoDBCluster, spec: {instances: 3}, status: {cluster: {status: ONLINE_PARTIAL, onlineInstances: 2}}}", quiet: month},
		"cluster of MySQL":                   {object: "{apiVersion: mysql.oracle.com/v2, kind: InnoDBCluster, spec: {instances: 3}, status: {cluster: {status: ONLINE, onlineInstances: 3}}}", want: Ready},
		"Percona on its way again":           {object: "{apiVersion: pxc.percona.com/v1, kind: PerconaXtraDBCluster, metadata: {generation: 2}, status: {observedGeneration: 2, state: initializing, conditions: [{type: ready, status: 'True'}, {type: initializing, status: 'True'}]}}", quiet: month},
		"Percona that is resumed":            {object: "{apiVersion: pxc.percona.com/v1, kind: PerconaXtraDBCluster, metadata: {generation: 2}, spec: {pause: false}, status: {observedGeneration: 1, state: paused}}", quiet: month},
		"Percona's MongoDB that is resumed":  {object: "{apiVersion: psmdb.percona.com/v1, kind: PerconaServerMongoDB, metadata: {generation: 2}, spec: {pause: false}, status: {observedGeneration: 1, state: paused}}", quiet: month},
		"Percona, paused":                    {object: "{apiVersion: pxc.percona.com/v1, kind: PerconaXtraDBCluster, metadata: {generation: 2}, spec: {pause: true}, status: {observedGeneration: 2, state: paused}}", want: Ready, note: "paused"},
		"VictoriaMetrics that is resumed":    {object: "{apiVersion: operator.victoriametrics.com/v1beta1, kind: VMSingle, metadata: {generation: 2}, spec: {paused: false}, status: {observedGeneration: 1, updateStatus: paused}}", quiet: month},
		"machines that are paused no more":   {object: "{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstanceReplicaSet, spec: {replicas: 2, paused: false}, status: {readyReplicas: 1, conditions: [{type: Paused, status: 'True'}]}}", before: true, quiet: month},
		"machines that are paused":           {object: "{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstanceReplicaSet, spec: {replicas: 2, paused: true}, status: {readyReplicas: 1}}", want: Ready, note: "paused"},
		"Percona":                            {object: "{apiVersion: pxc.percona.com/v1, kind: PerconaXtraDBCluster, metadata: {generation: 2}, status: {observedGeneration: 2, state: ready, conditions: [{type: initializing, status: 'True'}, {type: ready, status: 'True'}]}}", want: Ready},
		"Keycloak that can't start":          {object: "{apiVersion: k8s.keycloak.org/v2alpha1, kind: Keycloak, status: {conditions: [{type: Ready, status: 'False'}, {type: HasErrors, status: 'True', message: CrashLoopBackOff}]}}", want: Failed},
		"realm that isn't imported yet":      {object: "{apiVersion: k8s.keycloak.org/v2alpha1, kind: KeycloakRealmImport, status: {conditions: [{type: Started, status: 'True'}, {type: Done, status: 'False'}]}}", quiet: month, endless: true},
		"Spark that is submitted":            {object: "{apiVersion: sparkoperator.k8s.io/v1beta2, kind: SparkApplication, status: {applicationState: {state: SUBMITTED}}}", quiet: month},
		"Spark that failed":                  {object: "{apiVersion: sparkoperator.k8s.io/v1beta2, kind: SparkApplication, status: {applicationState: {state: FAILED, errorMessage: exit code 1}}}", want: Failed},
		"Flink that isn't stable yet":        {object: "{apiVersion: flink.apache.org/v1beta1, kind: FlinkDeployment, spec: {job: {jarURI: a}}, status: {lifecycleState: DEPLOYED, jobManagerDeploymentStatus: READY}}", quiet: month},
		"Flink without a job":                {object: "{apiVersion: flink.apache.org/v1beta1, kind: FlinkDeployment, spec: {flinkVersion: v1}, status: {lifecycleState: DEPLOYED, jobManagerDeploymentStatus: READY}}", want: Ready},
		"constraint that nobody tells of":    {object: "{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: K8sLabels, metadata: {generation: 2}, status: {auditTimestamp: now}}", quiet: month, want: Ready, unverified: true},
		"template that Gatekeeper can't use": {object: "{apiVersion: templates.gatekeeper.sh/v1, kind: ConstraintTemplate, metadata: {generation: 1}, status: {created: false, byPod: [{observedGeneration: 1, errors: [{message: bad rego}]}]}}", want: Failed},
		"template of Gatekeeper":             {object: "{apiVersion: templates.gatekeeper.sh/v1, kind: ConstraintTemplate, metadata: {generation: 1}, status: {created: true, byPod: [{observedGeneration: 1}]}}", want: Ready},
		"constraint that no pod has read":    {object: "{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: K8sLabels, metadata: {generation: 2}, status: {byPod: [{observedGeneration: 1, enforced: true}]}}", quiet: month},
		"policy that Cilium can't read":      {object: "{apiVersion: cilium.io/v2, kind: CiliumNetworkPolicy, status: {conditions: [{type: Valid, status: 'False', message: bad CIDR}]}}", want: Failed},
		"Kyverno's policy, not loaded":       {object: "{apiVersion: policies.kyverno.io/v1alpha1, kind: ValidatingPolicy, status: {conditionStatus: {ready: false, message: compiling}}}", quiet: month},
		"Kyverno's policy that has run":      {object: "{apiVersion: policies.kyverno.io/v1beta1, kind: DeletingPolicy, metadata: {generation: 1}, status: {conditionStatus: {message: ''}, lastExecutionTime: '2026-01-01T00:00:00Z'}}", quiet: 20 * time.Second, want: Ready, unverified: true},
		"Kyverno's policy, conditions only":  {object: "{apiVersion: policies.kyverno.io/v1beta1, kind: DeletingPolicy, metadata: {generation: 1}, status: {lastExecutionTime: '2026-01-01T00:00:00Z'}}", quiet: 20 * time.Second, want: Ready, unverified: true},
		"database in a cloud":                {object: "{apiVersion: rds.aws.upbound.io/v1beta1, kind: Instance, status: {conditions: [{type: Synced, status: 'True'}, {type: Ready, status: 'False', reason: Creating}]}}", quiet: month, endless: true},
		"cloud that won't try again":         {object: "{apiVersion: s3.services.k8s.aws/v1alpha1, kind: Bucket, status: {conditions: [{type: ACK.Terminal, status: 'True', message: exists}, {type: ACK.ResourceSynced, status: 'False'}]}}", want: Failed, endless: true},
		"cloud that has it":                  {object: "{apiVersion: s3.services.k8s.aws/v1alpha1, kind: Bucket, status: {conditions: [{type: ACK.ResourceSynced, status: 'True'}]}}", want: Ready, endless: true},
		"Azure, for good":                    {object: "{apiVersion: storage.azure.com/v1api20230101, kind: StorageAccount, status: {conditions: [{type: Ready, status: 'False', severity: Error, reason: NameTaken}]}}", want: Failed, endless: true},
		"Azure, on its way":                  {object: "{apiVersion: storage.azure.com/v1api20230101, kind: StorageAccount, status: {conditions: [{type: Ready, status: 'False', severity: Info, reason: Reconciling}]}}", quiet: month, endless: true},
		"Google, on its way":                 {object: "{apiVersion: sql.cnrm.cloud.google.com/v1beta1, kind: SQLInstance, status: {conditions: [{type: Ready, status: 'False', reason: Updating}]}}", quiet: month, endless: true},
		"large snapshot":                     {object: "{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, status: {readyToUse: false}}", quiet: month, endless: true},
		"content of a snapshot":              {object: "{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshotContent, status: {readyToUse: true}}", want: Ready, endless: true},
		"sets that roll out step by step":    {object: "{apiVersion: argoproj.io/v1alpha1, kind: ApplicationSet, status: {conditions: [{type: ResourcesUpToDate, status: 'True'}, {type: RolloutProgressing, status: 'True'}]}}", quiet: month},
		"rollout of a Deployment's pods":     {object: "{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {generation: 1, annotations: {rollout.argoproj.io/workload-generation: '2'}}, spec: {workloadRef: {kind: Deployment}}, status: {observedGeneration: '1', workloadObservedGeneration: '1', phase: Healthy}}", quiet: month},
		"rollout of a Deployment's new pods": {object: "{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {generation: 1, annotations: {rollout.argoproj.io/workload-generation: '2'}}, spec: {workloadRef: {kind: Deployment}}, status: {observedGeneration: '1', workloadObservedGeneration: '2', phase: Healthy}}", want: Ready},
		"scaler of what isn't there yet":     {object: "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, status: {conditions: [{type: Ready, status: 'False', reason: ScaledObjectCheckFailed}]}}", quiet: month},
		"rollout that lost its annotation":   {object: "{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {generation: 1}, spec: {workloadRef: {kind: Deployment}}, status: {observedGeneration: '1', workloadObservedGeneration: '2', phase: Healthy}}", want: Ready},
		"rollout without a number":           {object: "{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {generation: 1, annotations: {rollout.argoproj.io/workload-generation: '2'}}, spec: {workloadRef: {kind: Deployment}}, status: {observedGeneration: '1', phase: Healthy}}", want: Ready},
		"gateway with a bad listener":        {object: "{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, status: {conditions: [{type: Accepted, status: 'True'}, {type: Programmed, status: 'True'}], listeners: [{name: http, conditions: [{type: Programmed, status: 'True'}]}, {name: https, conditions: [{type: ResolvedRefs, status: 'False', message: no Secret}]}]}}", want: Ready, note: "listener https isn't ResolvedRefs: no Secret"},
		"TLS policy without its CA":          {object: "{apiVersion: gateway.networking.k8s.io/v1, kind: BackendTLSPolicy, metadata: {generation: 1}, status: {ancestors: [{conditions: [{type: Accepted, status: 'True', observedGeneration: 1}, {type: ResolvedRefs, status: 'False', observedGeneration: 1}]}]}}", want: Failed},
		"TLS policy of before":               {object: "{apiVersion: gateway.networking.k8s.io/v1, kind: BackendTLSPolicy, metadata: {generation: 2}, status: {ancestors: [{conditions: [{type: Accepted, status: 'True', observedGeneration: 1}]}]}}", quiet: month},
		"pods of another controller":         {object: "{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {generation: 2}, spec: {replicas: 3}, status: {observedGeneration: 2, readyReplicas: 3, updatedReplicas: 1}}", quiet: month},
		"all pods of another controller":     {object: "{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {generation: 2}, spec: {replicas: 3}, status: {observedGeneration: 2, readyReplicas: 3, updatedReplicas: 3}}", want: Ready},
		"pods kept old by a partition":       {object: "{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {generation: 2}, spec: {replicas: 3, updateStrategy: {partition: 2}}, status: {observedGeneration: 2, readyReplicas: 3, updatedReplicas: 1}}", want: Ready},
		"pods of CloneSet's default":         {object: "{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {generation: 2}, spec: {replicas: 3, updateStrategy: {type: ReCreate, partition: 0}}, status: {observedGeneration: 2, readyReplicas: 3, updatedReplicas: 1}}", quiet: month},
		"pods of StatefulSet's default":      {object: "{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {generation: 2}, spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}}, status: {observedGeneration: 2, readyReplicas: 3, updatedReplicas: 1}}", quiet: month},
		"pods that no partition keeps old":   {object: "{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {generation: 2}, spec: {replicas: 3, updateStrategy: {partition: 1}}, status: {observedGeneration: 2, readyReplicas: 3, updatedReplicas: 1}}", quiet: month},
		"pods kept old by a percentage":      {object: "{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {generation: 2}, spec: {replicas: 3, updateStrategy: {partition: 40%}}, status: {observedGeneration: 2, readyReplicas: 3, updatedReplicas: 1}}", want: Ready},
		"pods that somebody deletes":         {object: "{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {generation: 2}, spec: {replicas: 3, updateStrategy: {type: OnDelete}}, status: {observedGeneration: 2, readyReplicas: 3, updatedReplicas: 1}}", want: Ready, note: "2 pods of the old revision"},
		"pods that aren't ready on deletion": {object: "{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {generation: 2}, spec: {replicas: 3, updateStrategy: {type: OnDelete}}, status: {observedGeneration: 2, readyReplicas: 2, updatedReplicas: 0}}", quiet: month},
		"pods kept old in one part":          {object: "{apiVersion: apps.kruise.io/v1alpha1, kind: UnitedDeployment, metadata: {generation: 2}, spec: {replicas: 3, updateStrategy: {type: Manual, manualUpdate: {partitions: {a: 2}}}}, status: {observedGeneration: 2, readyReplicas: 3, updatedReplicas: 1, conditions: [{type: SubsetUpdated, status: 'True'}]}}", want: Ready},
		"pods of parts, by default":          {object: "{apiVersion: apps.kruise.io/v1alpha1, kind: UnitedDeployment, metadata: {generation: 2}, spec: {replicas: 3, updateStrategy: {type: Manual, manualUpdate: {}}}, status: {observedGeneration: 2, readyReplicas: 3, updatedReplicas: 1}}", quiet: month},
		"fleet with players":                 {object: "{apiVersion: agones.dev/v1, kind: Fleet, metadata: {generation: 2}, spec: {replicas: 10}, status: {replicas: 10, readyReplicas: 6, allocatedReplicas: 4, reservedReplicas: 0}}", want: Ready},
		"fleet that starts":                  {object: "{apiVersion: agones.dev/v1, kind: Fleet, metadata: {generation: 2}, spec: {replicas: 10}, status: {replicas: 10, readyReplicas: 5, allocatedReplicas: 3, reservedReplicas: 1}}", quiet: month},
		"servers with players":               {object: "{apiVersion: agones.dev/v1, kind: GameServerSet, metadata: {generation: 2}, spec: {replicas: 3}, status: {replicas: 3, readyReplicas: 1, allocatedReplicas: 1, reservedReplicas: 1, shutdownReplicas: 0}}", want: Ready},
		"made of a Deployment, too late":     {object: "{apiVersion: core.spinkube.dev/v1alpha1, kind: SpinApp, status: {conditions: [{type: Available, status: 'True'}, {type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}}", want: Failed},
		"made of a Deployment, new pods":     {object: "{apiVersion: core.spinkube.dev/v1alpha1, kind: SpinApp, status: {conditions: [{type: Available, status: 'True'}, {type: Progressing, status: 'True', reason: ReplicaSetUpdated}]}}", quiet: month},
		"complete, but failed":               {object: "{apiVersion: k8s.mariadb.com/v1alpha1, kind: SqlJob, status: {conditions: [{type: Complete, status: 'True', reason: JobFailed}]}}", want: Failed},
		"backup of any kind that runs":       {object: "{apiVersion: example.com/v1, kind: EtcdBackup, status: {phase: Running}}", quiet: month, endless: true},
		"experiment without an end":          {object: "{apiVersion: argoproj.io/v1alpha1, kind: Experiment, metadata: {generation: 1}, spec: {templates: [{name: a}], analyses: [{name: b}]}, status: {phase: Running}}", want: Ready, endless: true, note: "until somebody ends it"},
		"experiment with a duration":         {object: "{apiVersion: argoproj.io/v1alpha1, kind: Experiment, metadata: {generation: 1}, spec: {duration: 20m, templates: [{name: a}]}, status: {phase: Running}}", quiet: month, endless: true},
		"experiment that an analysis ends":   {object: "{apiVersion: argoproj.io/v1alpha1, kind: Experiment, metadata: {generation: 1}, spec: {templates: [{name: a}], analyses: [{name: b, requiredForCompletion: true}]}, status: {phase: Running}}", quiet: month, endless: true},
		"experiment that tells nothing":      {object: "{apiVersion: argoproj.io/v1alpha1, kind: Experiment, metadata: {generation: 1}, spec: {templates: [{name: a}]}, status: {phase: Inconclusive}}", want: Failed, endless: true},
		"backup of TiDB's log":               {object: "{apiVersion: pingcap.com/v1alpha1, kind: Backup, spec: {backupMode: log}, status: {phase: Running, conditions: [{type: Running, status: 'True'}]}}", want: Ready, endless: true, note: "until somebody stops it"},
		"backup of TiDB that runs":           {object: "{apiVersion: pingcap.com/v1alpha1, kind: Backup, spec: {backupMode: snapshot}, status: {phase: Running, conditions: [{type: Running, status: 'True'}]}}", quiet: month, endless: true},
		"backup of TiDB":                     {object: "{apiVersion: pingcap.com/v1alpha1, kind: Backup, spec: {}, status: {phase: Complete, conditions: [{type: Running, status: 'True'}, {type: Complete, status: 'True'}]}}", want: Ready, endless: true},
		"backup of TiDB that failed":         {object: "{apiVersion: pingcap.com/v1alpha1, kind: Backup, status: {phase: Failed, conditions: [{type: Failed, status: 'True'}]}}", want: Failed, endless: true},
		"analysis that runs":                 {object: "{apiVersion: argoproj.io/v1alpha1, kind: AnalysisRun, status: {phase: Running}}", quiet: month, endless: true},
	} {
		obj := objectOf(t, test.object)
		if test.quiet == 0 {
			test.quiet = time.Second
		}
		in := Input{Object: obj, Baseline: obj, Changed: !test.unchanged, AppliedAt: applied, ProgressedAt: applied, Now: applied.Add(test.quiet), HasStatus: new(true)}
		if hasStatus(obj) && !test.before { // written by its controller since the apply
			in.Baseline = obj.DeepCopy()
			delete(in.Baseline.Object, "status")
		}
		v := (*Set)(nil).Evaluate(in)
		if v.Phase != test.want || v.Unverified != test.unverified || (v.NoProgress < 0) != test.endless || !strings.Contains(strings.Join(v.Notes, "; "), test.note) {
			t.Errorf("%s: %+v, want phase %d, unverified %t, endless %t and a note %q", name, v, test.want, test.unverified, test.endless, test.note)
		}
	}
}
