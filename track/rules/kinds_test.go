package rules

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestStatesOfKinds: states of the field's common kinds, as their operators write them: what an operator expects to be told, and
// whether it ends the wait. Each is looked at half a minute after it was written.
func TestStatesOfKinds(t *testing.T) {
	applied := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var all []struct {
		Name, Group, Kind  string
		Spec, Meta, Status map[string]any
		Want               string // waiting, ready, failed
		Says               string // in the message or the notes
		Unverified         bool
	}
	if err := yaml.UnmarshalStrict([]byte(statesOfKinds), &all); err != nil {
		t.Fatal(err)
	}
	for _, state := range all {
		t.Run(state.Kind+"/"+state.Name, func(t *testing.T) {
			object := map[string]any{"apiVersion": state.Group + "/v1", "kind": state.Kind, "metadata": map[string]any{"name": "web", "namespace": "prod", "generation": 1}}
			for key, value := range map[string]map[string]any{"spec": state.Spec, "status": state.Status} {
				if value != nil {
					object[key] = value
				}
			}
			for key, value := range state.Meta {
				object["metadata"].(map[string]any)[key] = value
			}
			data, err := yaml.Marshal(object)
			if err == nil {
				data, err = yaml.YAMLToJSON(data)
			}
			var obj, was unstructured.Unstructured
			if err == nil {
				err = obj.UnmarshalJSON(data)
			}
			if err != nil {
				t.Fatal(err)
			}
			was = *obj.DeepCopy()
			delete(was.Object, "status")
			v := (*Set)(nil).Evaluate(Input{Object: &obj, Baseline: &was, Changed: true, AppliedAt: applied, ProgressedAt: applied, Now: applied.Add(30 * time.Second)})
			want := map[string]Phase{"waiting": Progressing, "ready": Ready, "failed": Failed}[state.Want]
			if said := v.Message + " " + strings.Join(v.Notes, "; "); v.Phase != want || v.Unverified != state.Unverified || !strings.Contains(said, state.Says) {
				t.Errorf("phase %d, unverified %t, %q after %s; want %s, %q", v.Phase, v.Unverified, said, v.Grace, state.Want, state.Says)
			}
		})
	}
}

const statesOfKinds = `
# Kubernetes
- {group: apps, kind: Deployment, name: only the old pod is there, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 2, updatedReplicas: 1, availableReplicas: 1}, want: waiting, says: "1 of 1 pods updated, 1 of 2 available, 1 old"}
# cert-manager
- {group: cert-manager.io, kind: Certificate, name: being issued, status: {conditions: [{type: Issuing, status: "True", reason: DoesNotExist, message: Issuing certificate as Secret does not exist}, {type: Ready, status: "False", reason: DoesNotExist, message: Issuing certificate as Secret does not exist}]}, want: waiting, says: Issuing certificate}
- {group: cert-manager.io, kind: ClusterIssuer, name: wrong mail, status: {conditions: [{type: Ready, status: "False", reason: ErrRegisterACMEAccount, message: "Failed to register ACME account: 400 urn:ietf:params:acme:error:invalidContact"}]}, want: failed, says: invalidContact}
- {group: cert-manager.io, kind: CertificateRequest, name: denied, status: {conditions: [{type: Denied, status: "True", reason: Policy, message: no policy approved this}, {type: Ready, status: "False", reason: Denied, message: The CertificateRequest was denied}]}, want: failed, says: denied}
- {group: cert-manager.io, kind: CertificateRequest, name: waits for approval, status: {conditions: [{type: Ready, status: "False", reason: Pending, message: Waiting for approval}]}, want: waiting, says: Waiting for approval}
- {group: acme.cert-manager.io, kind: Order, name: pending, status: {state: pending}, want: waiting, says: pending}
- {group: acme.cert-manager.io, kind: Order, name: invalid, status: {state: invalid, reason: no such domain}, want: failed, says: no such domain}
- {group: acme.cert-manager.io, kind: Challenge, name: checked by itself, status: {state: pending, presented: true, processing: true, reason: "Waiting for HTTP-01 challenge propagation: wrong status code '404', expected '200'"}, want: waiting, says: wrong status code}
- {group: trust.cert-manager.io, kind: Bundle, name: synced, status: {conditions: [{type: Synced, status: "True", reason: Synced, observedGeneration: 1}]}, want: ready}
- {group: trust.cert-manager.io, kind: Bundle, name: source missing, status: {conditions: [{type: Synced, status: "False", reason: SourceNotFound, message: 'Bundle source was not found: configmaps "ca" not found', observedGeneration: 1}]}, want: failed, says: source was not found}
# Flux
- {group: source.toolkit.fluxcd.io, kind: GitRepository, name: no credentials, status: {observedGeneration: -1, conditions: [{type: Reconciling, status: "True", reason: ProgressingWithRetry, message: building artifact, observedGeneration: 1}, {type: Ready, status: "False", reason: GitOperationFailed, message: "failed to checkout and determine revision: unable to list remote for 'https://git.example.com/a': authentication required", observedGeneration: 1}, {type: FetchFailed, status: "True", reason: GitOperationFailed, message: "failed to checkout and determine revision: unable to list remote for 'https://git.example.com/a': authentication required", observedGeneration: 1}]}, want: failed, says: authentication required}
- {group: source.toolkit.fluxcd.io, kind: GitRepository, name: server that doesn't answer, status: {conditions: [{type: Reconciling, status: "True", reason: ProgressingWithRetry}, {type: Ready, status: "False", reason: GitOperationFailed, message: "failed to checkout: unable to clone: dial tcp 10.0.0.1:443: connect: connection refused"}, {type: FetchFailed, status: "True", reason: GitOperationFailed, message: "failed to checkout: unable to clone: dial tcp 10.0.0.1:443: connect: connection refused"}]}, want: waiting, says: connection refused}
- {group: source.toolkit.fluxcd.io, kind: GitRepository, name: no such branch, status: {conditions: [{type: Ready, status: "False", reason: GitOperationFailed, message: "failed to checkout and determine revision: unable to clone: couldn't find remote ref refs/heads/man"}, {type: FetchFailed, status: "True", reason: GitOperationFailed, message: "couldn't find remote ref refs/heads/man"}]}, want: failed, says: remote ref}
- {group: source.toolkit.fluxcd.io, kind: HelmRepository, name: wrong address, status: {conditions: [{type: Reconciling, status: "True", reason: ProgressingWithRetry}, {type: Ready, status: "False", reason: Failed, message: "failed to fetch Helm repository index: failed to fetch https://charts.example.com/index.yaml : 404 Not Found"}, {type: FetchFailed, status: "True", reason: Failed, message: "failed to fetch https://charts.example.com/index.yaml : 404 Not Found"}]}, want: failed, says: 404 Not Found}
- {group: source.toolkit.fluxcd.io, kind: HelmRepository, name: server in trouble, status: {conditions: [{type: Ready, status: "False", reason: Failed, message: "failed to fetch https://charts.example.com/index.yaml : 503 Service Unavailable"}, {type: FetchFailed, status: "True", reason: Failed, message: "failed to fetch https://charts.example.com/index.yaml : 503 Service Unavailable"}]}, want: waiting, says: "503"}
- {group: source.toolkit.fluxcd.io, kind: HelmChart, name: no such version, status: {observedChartName: a, conditions: [{type: Ready, status: "False", reason: InvalidChartReference, message: "invalid chart reference: failed to get chart version for remote reference: no 'podinfo' chart with version matching '99.*' found"}, {type: FetchFailed, status: "True", reason: InvalidChartReference, message: "no 'podinfo' chart with version matching '99.*' found"}]}, want: failed, says: version matching}
- {group: source.toolkit.fluxcd.io, kind: OCIRepository, name: no such tag, status: {conditions: [{type: Ready, status: "False", reason: OCIArtifactPullFailed, message: "failed to determine artifact digest: GET https://ghcr.io/v2/a/manifests/b: MANIFEST_UNKNOWN: manifest unknown"}, {type: FetchFailed, status: "True", reason: OCIArtifactPullFailed, message: "MANIFEST_UNKNOWN: manifest unknown"}]}, want: failed, says: manifest unknown}
- {group: kustomize.toolkit.fluxcd.io, kind: Kustomization, name: its source isn't there yet, status: {conditions: [{type: Ready, status: "False", reason: ArtifactFailed, message: "Source artifact not found, retrying in 30s"}]}, want: waiting, says: Source artifact}
- {group: kustomize.toolkit.fluxcd.io, kind: Kustomization, name: waits for another, status: {conditions: [{type: Ready, status: "False", reason: DependencyNotReady, message: "dependency 'flux-system/infra' is not ready"}]}, want: waiting, says: dependency}
- {group: kustomize.toolkit.fluxcd.io, kind: Kustomization, name: wrong path, status: {conditions: [{type: Ready, status: "False", reason: ArtifactFailed, message: "kustomization path not found: stat /tmp/kustomization-1/nosuch: no such file or directory"}]}, want: failed, says: path not found}
- {group: kustomize.toolkit.fluxcd.io, kind: Kustomization, name: its objects don't get ready, status: {observedGeneration: 1, conditions: [{type: Ready, status: "False", reason: HealthCheckFailed, message: "timeout waiting for: [Deployment/prod/web status: 'InProgress']"}, {type: Healthy, status: "False", reason: HealthCheckFailed, message: x}]}, want: failed, says: timeout waiting}
- {group: helm.toolkit.fluxcd.io, kind: HelmRelease, name: its chart isn't there yet, status: {conditions: [{type: Ready, status: "False", reason: SourceNotReady, message: "HelmChart 'flux-system/prod-web' is not ready: latest generation of object has not been reconciled"}]}, want: waiting, says: HelmChart}
- {group: helm.toolkit.fluxcd.io, kind: HelmRelease, name: out of retries, status: {observedGeneration: 1, failures: 1, conditions: [{type: Stalled, status: "True", reason: RetriesExceeded, message: Failed to install after 1 attempt(s)}, {type: Ready, status: "False", reason: InstallFailed, message: "Helm install failed"}]}, want: failed, says: after 1 attempt}
- {group: image.toolkit.fluxcd.io, kind: ImageRepository, name: no permission, status: {conditions: [{type: Ready, status: "False", reason: ReadOperationFailed, message: "scan failed: GET https://ghcr.io/v2/a/tags/list: UNAUTHORIZED: authentication required"}]}, want: failed, says: UNAUTHORIZED}
# Argo
- {group: argoproj.io, kind: Application, name: no access to its repository, spec: {syncPolicy: {automated: {}}}, status: {health: {status: Healthy}, sync: {status: Unknown}, conditions: [{type: ComparisonError, message: "Failed to load target state: failed to generate manifest for source 1 of 1: rpc error: code = Unknown desc = authentication required: Repository not found."}]}, want: failed, says: authentication required}
- {group: argoproj.io, kind: Application, name: its repository server starts, spec: {syncPolicy: {automated: {}}}, status: {health: {status: Healthy}, sync: {status: Unknown}, conditions: [{type: ComparisonError, message: "Failed to load target state: rpc error: code = Unavailable desc = connection error: dial tcp 10.0.0.1:8081: connect: connection refused"}]}, want: waiting, says: connection refused}
- {group: argoproj.io, kind: Application, name: no such project, spec: {project: nosuch, syncPolicy: {automated: {}}}, status: {health: {status: Unknown}, sync: {status: Unknown}, conditions: [{type: InvalidSpecError, message: Application referencing project nosuch which does not exist}]}, want: failed, says: nosuch}
- {group: argoproj.io, kind: Application, name: synced by hand and without a path, spec: {source: {}}, status: {health: {status: Healthy}, sync: {status: Unknown}, conditions: [{type: ComparisonError, message: "app path does not exist"}]}, want: ready, says: app path does not exist}
- {group: argoproj.io, kind: Application, name: warned, spec: {source: {repoURL: a}, syncPolicy: {automated: {}}}, status: {reconciledAt: "2026-01-01T12:00:10Z", health: {status: Healthy}, sync: {status: Synced}, conditions: [{type: OrphanedResourceWarning, message: 1 orphaned}]}, want: ready}
- {group: argoproj.io, kind: ApplicationSet, name: broken generator, status: {conditions: [{type: ErrorOccurred, status: "True", reason: ApplicationParamsGenerationError, message: unable to generate}, {type: ParametersGenerated, status: "False", reason: ErrorOccurred, message: unable to generate}, {type: ResourcesUpToDate, status: "False", reason: ApplicationParamsGenerationError, message: unable to generate}]}, want: failed, says: unable to generate}
- {group: argoproj.io, kind: Rollout, name: waits for promotion, status: {observedGeneration: "1", phase: Paused, message: CanaryPauseStep}, want: ready, says: paused}
- {group: argoproj.io, kind: Rollout, name: aborted, status: {observedGeneration: "1", phase: Degraded, message: "RolloutAborted: Rollout aborted update to revision 2"}, want: failed, says: aborted}
- {group: argoproj.io, kind: AnalysisTemplate, name: has no status, want: ready}
- {group: argoproj.io, kind: Sensor, name: deployed, status: {conditions: [{type: DependenciesProvided, status: "True"}, {type: Deployed, status: "True"}, {type: TriggersProvided, status: "True"}]}, want: ready}
- {group: argoproj.io, kind: EventSource, name: not deployed, status: {conditions: [{type: SourcesProvided, status: "True"}, {type: Deployed, status: "False", reason: EventBusNotReady, message: eventbus not ready}]}, want: waiting, says: eventbus not ready}
# Crossplane
- {group: s3.aws.upbound.io, kind: Bucket, name: refused by the cloud, status: {conditions: [{type: Synced, status: "False", reason: ReconcileError, message: "create failed: async create failed: AccessDenied"}, {type: Ready, status: "False", reason: Creating}]}, want: failed, says: AccessDenied}
- {group: s3.aws.upbound.io, kind: Bucket, name: being made, status: {conditions: [{type: Synced, status: "True", reason: ReconcileSuccess}, {type: Ready, status: "False", reason: Creating}]}, want: waiting, says: Creating}
- {group: pkg.crossplane.io, kind: Provider, name: no such package, status: {conditions: [{type: Installed, status: "False", reason: UnpackingPackage, message: "cannot unpack package: failed to fetch package digest from remote: MANIFEST_UNKNOWN"}]}, want: failed, says: MANIFEST_UNKNOWN}
- {group: db.example.org, kind: XDatabase, name: composite that waits, status: {conditions: [{type: Synced, status: "True", reason: ReconcileSuccess}, {type: Ready, status: "False", reason: Creating, message: "Unready resources: db"}, {type: Responsive, status: "True"}]}, want: waiting, says: Unready resources}
- {group: db.example.org, kind: XDatabase, name: composite whose function fails, status: {conditions: [{type: Synced, status: "False", reason: ReconcileError, message: "cannot compose resources: pipeline step render returned a fatal result"}, {type: Ready, status: "False", reason: Creating}]}, want: failed, says: fatal result}
# Strimzi
- {group: kafka.strimzi.io, kind: Kafka, name: being made, status: {observedGeneration: 1, conditions: [{type: NotReady, status: "True", reason: Creating, message: Kafka cluster is being deployed}]}, want: waiting, says: being deployed}
- {group: kafka.strimzi.io, kind: Kafka, name: invalid, status: {observedGeneration: 1, conditions: [{type: NotReady, status: "True", reason: InvalidResourceException, message: No listeners}]}, want: failed, says: No listeners}
- {group: kafka.strimzi.io, kind: KafkaTopic, name: more copies than brokers, status: {observedGeneration: 1, conditions: [{type: Ready, status: "False", reason: KafkaError, message: "Replication factor: 3 larger than available brokers: 1."}]}, want: failed, says: Replication factor}
- {group: kafka.strimzi.io, kind: KafkaUser, name: there, status: {observedGeneration: 1, conditions: [{type: Ready, status: "True"}]}, want: ready}
- {group: kafka.strimzi.io, kind: KafkaConnector, name: its task fails, status: {observedGeneration: 1, conditions: [{type: NotReady, status: "True", reason: Throwable, message: "The following tasks have failed: 0"}]}, want: failed, says: tasks have failed}
# KEDA
- {group: keda.sh, kind: ScaledObject, name: misspelt trigger, status: {conditions: [{type: Ready, status: "False", reason: ScaledObjectCheckFailed, message: ScaledObject doesn't have correct triggers specification}, {type: Active, status: Unknown}]}, want: failed, says: triggers specification}
- {group: keda.sh, kind: ScaledObject, name: not active, status: {conditions: [{type: Ready, status: "True", reason: ScaledObjectReady}, {type: Active, status: "False", reason: ScalerNotActive}, {type: Fallback, status: "False"}]}, want: ready}
- {group: keda.sh, kind: ScaledJob, name: queue that doesn't answer, status: {conditions: [{type: Ready, status: "False", reason: ScaledJobCheckFailed, message: "error creating scaler: dial tcp: i/o timeout"}]}, want: waiting, says: i/o timeout}
# Gateway API and what attaches to it
- {group: gateway.networking.k8s.io, kind: Gateway, name: without address, status: {conditions: [{type: Accepted, status: "True"}, {type: Programmed, status: "False", reason: AddressNotAssigned, message: No addresses have been assigned to the Gateway}]}, want: waiting, says: No addresses}
- {group: gateway.networking.k8s.io, kind: HTTPRoute, name: no such Service, spec: {parentRefs: [{name: gw}]}, status: {parents: [{parentRef: {name: gw}, conditions: [{type: Accepted, status: "True", observedGeneration: 1}, {type: ResolvedRefs, status: "False", reason: BackendNotFound, message: service prod/wbe not found, observedGeneration: 1}]}]}, want: failed, says: "gw: BackendNotFound: service prod/wbe not found"}
- {group: gateway.networking.k8s.io, kind: GRPCRoute, name: not allowed, spec: {parentRefs: [{name: gw}]}, status: {parents: [{parentRef: {name: gw}, conditions: [{type: Accepted, status: "False", reason: NotAllowedByListeners, message: no listener allows it, observedGeneration: 1}]}]}, want: failed, says: no listener allows it}
- {group: gateway.envoyproxy.io, kind: BackendTrafficPolicy, name: invalid, status: {ancestors: [{ancestorRef: {name: gw}, conditions: [{type: Accepted, status: "False", reason: Invalid, message: retry must be at least 1, observedGeneration: 1}]}]}, want: failed, says: "gw: Invalid: retry must"}
- {group: gateway.envoyproxy.io, kind: SecurityPolicy, name: accepted, status: {ancestors: [{ancestorRef: {name: gw}, conditions: [{type: Accepted, status: "True", reason: Accepted, observedGeneration: 1}]}]}, want: ready}
- {group: gateway.envoyproxy.io, kind: ClientTrafficPolicy, name: of before, meta: {generation: 2}, status: {ancestors: [{ancestorRef: {name: gw}, conditions: [{type: Accepted, status: "True", reason: Accepted, observedGeneration: 1}]}]}, want: waiting, says: has not seen the change}
- {group: gateway.kgateway.dev, kind: TrafficPolicy, name: target isn't there, status: {ancestors: [{ancestorRef: {name: gw}, conditions: [{type: Accepted, status: "False", reason: TargetNotFound, message: the route does not exist, observedGeneration: 1}]}]}, want: failed, says: does not exist}
# Istio, Knative, Linkerd, Traefik
- {group: networking.istio.io, kind: DestinationRule, name: no status, want: ready}
- {group: serving.knative.dev, kind: Service, name: revision fails, status: {observedGeneration: 1, conditions: [{type: ConfigurationsReady, status: "False", reason: RevisionFailed, message: 'Revision "web-1" failed with message: Unable to fetch image'}, {type: Ready, status: "False", reason: RevisionFailed, message: 'Configuration "web" does not have any ready Revision.'}, {type: RoutesReady, status: Unknown}]}, want: failed, says: Revision}
- {group: eventing.knative.dev, kind: Broker, name: its channel isn't ready, status: {observedGeneration: 1, conditions: [{type: Addressable, status: Unknown}, {type: Ready, status: Unknown, reason: ChannelNotReady, message: waiting for the channel}]}, want: waiting, says: waiting for the channel}
- {group: traefik.io, kind: IngressRoute, name: no status, want: ready}
# Databases
- {group: postgresql.cnpg.io, kind: Cluster, name: waits for its first node, spec: {instances: 3}, status: {phase: Setting up primary, phaseReason: Creating primary instance web-1, readyInstances: 0, conditions: [{type: Ready, status: "False", reason: ClusterIsNotReady, message: Cluster Is Not Ready}]}, want: waiting, says: Setting up primary}
- {group: postgresql.cnpg.io, kind: Cluster, name: no such plugin, spec: {instances: 1}, status: {phase: Unknown plugin being required, readyInstances: 0}, want: waiting, says: Unknown plugin}
- {group: postgresql.cnpg.io, kind: Pooler, name: has no conditions, status: {instances: 2}, want: ready}
- {group: acid.zalan.do, kind: postgresql, name: being made, status: {PostgresClusterStatus: Creating}, want: waiting, says: Creating}
- {group: acid.zalan.do, kind: postgresql, name: invalid, status: {PostgresClusterStatus: Invalid}, want: failed, says: Invalid}
- {group: acid.zalan.do, kind: postgresql, name: its update fails, status: {PostgresClusterStatus: UpdateFailed}, want: failed, says: UpdateFailed}
- {group: k8s.mariadb.com, kind: MariaDB, name: restores, status: {conditions: [{type: Ready, status: "False", reason: RestoreBackup, message: Restoring backup}, {type: BackupRestored, status: "False", reason: RestoreBackup, message: Restoring backup}]}, want: waiting, says: Restoring backup}
- {group: planetscale.com, kind: VitessCluster, name: no status of readiness, status: {observedGeneration: 1, cells: {a: {gatewayAvailable: "True"}}, keyspaces: {main: {readyShards: 1}}}, want: ready, unverified: true, says: says nothing}
- {group: mongodbcommunity.mongodb.com, kind: MongoDBCommunity, name: pending, status: {phase: Pending, message: "ReplicaSet is not yet ready, retrying in 10 seconds"}, want: waiting, says: not yet ready}
- {group: mongodbcommunity.mongodb.com, kind: MongoDBCommunity, name: failed, status: {phase: Failed, message: "error validating new Spec: number of arbiters"}, want: failed, says: arbiters}
- {group: cassandra.datastax.com, kind: CassandraDatacenter, name: stopped, spec: {stopped: true}, status: {cassandraOperatorProgress: Ready, conditions: [{type: Ready, status: "False"}, {type: Stopped, status: "True"}]}, want: ready, says: stopped}
- {group: redis.redis.opstreelabs.in, kind: RedisCluster, name: bootstraps, status: {state: Bootstrap, reason: Redis cluster is bootstrapping, readyLeaderReplicas: 1}, want: waiting, says: bootstrapping}
- {group: clickhouse.altinity.com, kind: ClickHouseInstallation, name: in progress, status: {status: InProgress, hosts: 2, hostsUpdated: 1}, want: waiting, says: InProgress}
- {group: clickhouse.altinity.com, kind: ClickHouseInstallation, name: aborted, status: {status: Aborted, error: "unable to complete"}, want: failed, says: unable to complete}
- {group: rabbitmq.com, kind: Queue, name: refused, status: {observedGeneration: 1, conditions: [{type: Ready, status: "False", reason: FailedCreateOrUpdate, message: "inequivalent arg 'durable'"}]}, want: failed, says: inequivalent}
- {group: rabbitmq.com, kind: RabbitmqCluster, name: not reconciled, status: {observedGeneration: 1, conditions: [{type: AllReplicasReady, status: Unknown}, {type: ReconcileSuccess, status: "False", reason: Error, message: invalid override}]}, want: failed, says: invalid override}
# Monitoring, secrets, backups
- {group: monitoring.coreos.com, kind: Prometheus, name: one pod of two, status: {conditions: [{type: Available, status: "False", reason: SomePodsNotReady, message: "shard 0: pod prometheus-0: 0/1 nodes are available"}, {type: Reconciled, status: "True"}]}, want: waiting, says: shard 0}
- {group: monitoring.coreos.com, kind: ServiceMonitor, name: no status, want: ready}
- {group: external-secrets.io, kind: ExternalSecret, name: no such key, status: {conditions: [{type: Ready, status: "False", reason: SecretSyncedError, message: "could not get secret data from provider: Secret does not exist"}]}, want: failed, says: does not exist}
- {group: external-secrets.io, kind: PushSecret, name: synced, status: {conditions: [{type: Ready, status: "True", reason: Synced}]}, want: ready}
- {group: secrets.hashicorp.com, kind: VaultStaticSecret, name: synced, status: {lastGeneration: 1, secretMAC: a, conditions: [{type: SecretSynced, status: "True", reason: SecretSynced}, {type: Healthy, status: "True"}, {type: Ready, status: "True"}]}, want: ready}
- {group: secrets.hashicorp.com, kind: VaultConnection, name: invalid, status: {valid: false}, want: waiting, says: ""}
- {group: velero.io, kind: BackupStorageLocation, name: unavailable, status: {phase: Unavailable, message: "BackupStorageLocation is unavailable: rpc error: AccessDenied"}, want: waiting, says: AccessDenied}
- {group: velero.io, kind: BackupStorageLocation, name: available, status: {phase: Available}, want: ready}
- {group: velero.io, kind: Schedule, name: invalid, status: {phase: FailedValidation, validationErrors: [invalid schedule]}, want: failed, says: invalid schedule}
- {group: velero.io, kind: BackupRepository, name: not ready, status: {phase: NotReady, message: no such bucket}, want: waiting, says: no such bucket}
# Elastic, OLM, Cluster API, KubeVirt, Tekton, k3s, Rook, Kueue
- {group: kibana.k8s.elastic.co, kind: Kibana, name: waits for Elasticsearch, status: {observedGeneration: 1, health: red, associationStatus: Pending}, want: waiting, says: red}
- {group: elasticsearch.k8s.elastic.co, kind: Elasticsearch, name: grows, status: {observedGeneration: 1, phase: ApplyingChanges, health: yellow, conditions: [{type: ReconciliationComplete, status: "False", message: "Cannot get compute and storage resources from Elasticsearch resource generation 1"}, {type: ElasticsearchIsReachable, status: "False"}]}, want: waiting, says: ApplyingChanges}
- {group: operators.coreos.com, kind: ClusterServiceVersion, name: fails, status: {phase: Failed, reason: UnsupportedOperatorGroup, message: AllNamespaces InstallModeType not supported}, want: failed, says: not supported}
- {group: operators.coreos.com, kind: ClusterServiceVersion, name: installs, status: {phase: InstallReady, message: all requirements found}, want: waiting, says: InstallReady}
- {group: operators.coreos.com, kind: Subscription, name: no such package, status: {conditions: [{type: CatalogSourcesUnhealthy, status: "False"}, {type: ResolutionFailed, status: "True", reason: ConstraintsNotSatisfiable, message: no operators found in package nosuch}]}, want: failed, says: nosuch}
- {group: operators.coreos.com, kind: OperatorGroup, name: has a list, status: {lastUpdated: "2026-01-01T12:00:00Z", namespaces: [""]}, want: ready, unverified: true}
- {group: cluster.x-k8s.io, kind: Cluster, name: provisions, status: {observedGeneration: 1, phase: Provisioning, conditions: [{type: Available, status: "False", reason: NotAvailable, message: "* RemoteConnectionProbe: Remote connection not established yet"}]}, want: waiting, says: RemoteConnectionProbe}
- {group: cluster.x-k8s.io, kind: MachineDeployment, name: scales, status: {observedGeneration: 1, phase: ScalingUp, replicas: 3, readyReplicas: 1, conditions: [{type: Available, status: "False", reason: NotAvailable, message: "1 available replicas"}, {type: ScalingUp, status: "True"}]}, want: waiting, says: 1 available}
- {group: kubevirt.io, kind: VirtualMachine, name: no node for it, spec: {runStrategy: Always}, status: {observedGeneration: 1, printableStatus: ErrorUnschedulable, conditions: [{type: Ready, status: "False", reason: PodNotExists, message: x}]}, want: waiting, says: ErrorUnschedulable}
- {group: kubevirt.io, kind: VirtualMachine, name: halted, spec: {runStrategy: Halted}, status: {printableStatus: Stopped}, want: ready, says: stopped}
- {group: tekton.dev, kind: PipelineRun, name: fails, status: {conditions: [{type: Succeeded, status: "False", reason: CouldntGetPipeline, message: 'Error retrieving pipeline: pipelines.tekton.dev "nosuch" not found'}]}, want: failed, says: nosuch}
- {group: tekton.dev, kind: Task, name: no status, want: ready}
- {group: triggers.tekton.dev, kind: EventListener, name: not available, status: {conditions: [{type: Available, status: "False", reason: MinimumReplicasUnavailable}, {type: Deployment, status: "True"}, {type: Ready, status: "False", reason: MinimumReplicasUnavailable}]}, want: waiting, says: MinimumReplicas}
- {group: helm.cattle.io, kind: HelmChart, name: installs, status: {jobName: helm-install-web}, want: ready, unverified: true, says: says nothing}
- {group: helm.cattle.io, kind: HelmChart, name: fails, status: {jobName: helm-install-web, conditions: [{type: JobCreated, status: "True"}, {type: Failed, status: "True", reason: Job has reached the specified backoff limit}]}, want: failed, says: backoff limit}
- {group: ceph.rook.io, kind: CephCluster, name: waits for monitors, status: {phase: Progressing, state: Creating, message: "Configuring Ceph Mons", conditions: [{type: Progressing, status: "True", reason: ClusterProgressing, message: Configuring Ceph Mons}]}, want: waiting, says: Configuring}
- {group: ceph.rook.io, kind: CephBlockPool, name: fails, status: {phase: Failure}, want: failed, says: Failure}
- {group: kueue.x-k8s.io, kind: ClusterQueue, name: no such flavor, status: {conditions: [{type: Active, status: "False", reason: FlavorNotFound, message: "Can't admit new workloads: references missing ResourceFlavor(s): gpu."}]}, want: failed, says: missing ResourceFlavor}
- {group: kueue.x-k8s.io, kind: LocalQueue, name: active, status: {conditions: [{type: Active, status: "True", reason: Ready}]}, want: ready}
- {group: kueue.x-k8s.io, kind: ResourceFlavor, name: no status, want: ready}
- {group: karpenter.sh, kind: NodePool, name: its class isn't there, status: {conditions: [{type: NodeClassReady, status: "False", reason: NodeClassNotFound, message: NodeClass not found on cluster}, {type: Ready, status: "False", reason: UnhealthyDependents, message: NodeClassReady=False}, {type: ValidationSucceeded, status: "True"}]}, want: waiting, says: NodeClass}
- {group: karpenter.k8s.aws, kind: EC2NodeClass, name: no subnets, status: {conditions: [{type: AMIsReady, status: "True"}, {type: SubnetsReady, status: "False", reason: SubnetsNotFound, message: SubnetSelector did not match any Subnets}, {type: Ready, status: "False", reason: UnreadyDependents, message: "SubnetsReady=False"}]}, want: waiting, says: SubnetsReady}
- {group: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: refused, status: {readyToUse: false, error: {message: "failed to take snapshot: no such volume"}}, want: failed, says: no such volume}
- {group: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: being taken, status: {readyToUse: false}, want: waiting}
- {group: kyverno.io, kind: ClusterPolicy, name: not ready, status: {ready: false, conditions: [{type: Ready, status: "False", reason: Failed, message: webhook isn't configured}]}, want: waiting, says: webhook}
- {group: jaegertracing.io, kind: Jaeger, name: runs, status: {phase: Running, version: 1.60.0}, want: ready}
- {group: nats.io, kind: Stream, name: errors, status: {observedGeneration: 1, conditions: [{type: Ready, status: "False", reason: Errored, message: "failed to create stream: insufficient resources"}]}, want: failed, says: insufficient resources}
- {group: temporal.io, kind: Schedule, name: conditions of its own, status: {conditions: [{type: Accepted, status: "True"}, {type: Configured, status: "False", reason: ServerRefused, message: namespace isn't there}]}, want: waiting, says: namespace isn't there}
# Any kind
- {group: example.com, kind: Thing, name: nested conditions, status: {shards: [{name: a, conditions: [{type: Ready, status: "True"}]}, {name: b, conditions: [{type: Ready, status: "False", reason: DiskFull, message: no room}]}]}, want: waiting, says: "b: DiskFull: no room"}
- {group: example.com, kind: Thing, name: conditions by another name, status: {states: [{type: Ready, status: "True"}, {type: Degraded, status: "False"}]}, want: ready}
- {group: example.com, kind: Thing, name: a failure that others have, status: {conditions: [{type: Degraded, status: "True", reason: Broken, message: two replicas are lost}]}, want: failed, says: two replicas}
- {group: example.com, kind: Thing, name: a status that says nothing, status: {observedGeneration: 1, hosts: [{name: a}]}, want: ready, unverified: true, says: says nothing}
- {group: example.com, kind: Thing, name: a status of text, want: ready, unverified: true, says: no controller}
- {group: example.com, kind: Thing, name: a word in a list, status: {conditions: [{type: Foo, status: "False"}]}, want: ready, unverified: true}
- {group: example.com, kind: Thing, name: ready by a field, status: {ready: true}, want: ready}
- {group: example.com, kind: Thing, name: not ready by a field, status: {ready: false, message: waiting for disks}, want: waiting, says: waiting for disks}
`
