package track

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/kube"
	"deployer/track/finding"
	"deployer/track/rules"
)

const (
	// providedByControllerWithin is how long after an object became ready its controller may take to create what
	// belongs to it.
	providedByControllerWithin = 30 * time.Second
	// providedByAnyWithin is how long a Job, or an object of a custom kind that isn't in the table, may take to create
	// anything: nobody knows what.
	providedByAnyWithin = time.Minute
)

// A provider is a kind whose objects make ConfigMaps or Secrets appear. What one makes has the name that a field of the object
// states or, without such a field, the object's own.
type provider struct {
	group, kind string // group may begin with "*." and kind be "*"
	makes       string // kind of what it makes, or nothing; empty for both

	nameIn              []string // paths of fields; "[]" after a field goes through a list
	prefixedWithOwnName bool     // it makes several, NAME-…, besides those that fields name
}

const nothing = "nothing"

// providers are the kinds of which it is known what they make. The first row of a kind counts.
var providers = []provider{
	{group: "cert-manager.io", kind: "Certificate", makes: "Secret", nameIn: []string{"spec.secretName"}},
	{group: "trust.cert-manager.io", kind: "Bundle"},
	{group: "external-secrets.io", kind: "ExternalSecret", makes: "Secret", nameIn: []string{"spec.target.name"}},
	{group: "external-secrets.io", kind: "ClusterExternalSecret", makes: "Secret", nameIn: []string{"spec.externalSecretName"}},
	{group: "bitnami.com", kind: "SealedSecret", makes: "Secret", nameIn: []string{"spec.template.metadata.name"}},
	{group: "secrets.hashicorp.com", kind: "VaultStaticSecret", makes: "Secret", nameIn: []string{"spec.destination.name"}},
	{group: "secrets.hashicorp.com", kind: "VaultDynamicSecret", makes: "Secret", nameIn: []string{"spec.destination.name"}},
	{group: "secrets.hashicorp.com", kind: "VaultPKISecret", makes: "Secret", nameIn: []string{"spec.destination.name"}},
	{group: "secrets.hashicorp.com", kind: "HCPVaultSecretsApp", makes: "Secret", nameIn: []string{"spec.destination.name"}},
	{group: "ricoberger.de", kind: "VaultSecret", makes: "Secret"},
	{group: "redhatcop.redhat.io", kind: "VaultSecret", makes: "Secret", nameIn: []string{"spec.output.name"}},
	{group: "onepassword.com", kind: "OnePasswordItem", makes: "Secret"},
	{
		group: "secrets.infisical.com", kind: "InfisicalSecret", makes: "Secret",
		nameIn: []string{"spec.managedKubeSecretReferences[].secretName", "spec.managedSecretReference.secretName"},
	},
	{group: "secrets.doppler.com", kind: "DopplerSecret", makes: "Secret", nameIn: []string{"spec.managedSecret.name"}},
	{group: "spv.no", kind: "AzureKeyVaultSecret", makes: "Secret", nameIn: []string{"spec.output.secret.name"}},
	{group: "secretgenerator.mittwald.de", kind: "*", makes: "Secret"},
	{group: "services.cloud.sap.com", kind: "ServiceBinding", makes: "Secret", nameIn: []string{"spec.secretName"}},
	{group: "objectbucket.io", kind: "ObjectBucketClaim"},
	{group: "postgresql.cnpg.io", kind: "Cluster", makes: "Secret", prefixedWithOwnName: true},
	{group: "postgres-operator.crunchydata.com", kind: "*", prefixedWithOwnName: true},
	{group: "mongodbcommunity.mongodb.com", kind: "*", nameIn: []string{"spec.users[].connectionStringSecretName"}, prefixedWithOwnName: true},
	{group: "rabbitmq.com", kind: "*", prefixedWithOwnName: true},
	{group: "*.k8s.elastic.co", kind: "*", prefixedWithOwnName: true},
	{group: "kafka.strimzi.io", kind: "KafkaUser", makes: "Secret"},
	{group: "kafka.strimzi.io", kind: "Kafka", prefixedWithOwnName: true},
	{group: "kafka.strimzi.io", kind: "KafkaBridge", prefixedWithOwnName: true},
	{group: "kafka.strimzi.io", kind: "KafkaConnect", prefixedWithOwnName: true},
	{group: "kafka.strimzi.io", kind: "KafkaMirrorMaker", prefixedWithOwnName: true},
	{group: "kafka.strimzi.io", kind: "KafkaMirrorMaker2", prefixedWithOwnName: true},
	{group: "k8s.keycloak.org", kind: "*", prefixedWithOwnName: true},
	{group: "mysql.oracle.com", kind: "InnoDBCluster", makes: "Secret", prefixedWithOwnName: true},
	{group: "*.percona.com", kind: "*", nameIn: []string{"spec.secretsName", "spec.secrets.users"}, prefixedWithOwnName: true},
	{group: "k8s.mariadb.com", kind: "MariaDB", nameIn: []string{"spec.rootPasswordSecretKeyRef.name", "spec.passwordSecretKeyRef.name"}, prefixedWithOwnName: true},
	{group: "grafana.integreatly.org", kind: "Grafana", prefixedWithOwnName: true},
	{group: "argoproj.io", kind: "Rollout", makes: nothing},
	{group: "autoscaling.k8s.io", kind: "*", makes: nothing},
	{group: "cert-manager.io", kind: "*", makes: nothing},
	{group: "cilium.io", kind: "*", makes: nothing},
	{group: "cloud.google.com", kind: "*", makes: nothing},
	{group: "configuration.konghq.com", kind: "*", makes: nothing},
	{group: "elbv2.k8s.aws", kind: "*", makes: nothing},
	{group: "external-secrets.io", kind: "*", makes: nothing},
	{group: "gateway.networking.k8s.io", kind: "*", makes: nothing},
	{group: "*.gatekeeper.sh", kind: "*", makes: nothing},
	{group: "*.istio.io", kind: "*", makes: nothing},
	{group: "kafka.strimzi.io", kind: "*", makes: nothing},
	{group: "karpenter.sh", kind: "*", makes: nothing},
	{group: "keda.sh", kind: "*", makes: nothing},
	{group: "k8s.nginx.org", kind: "*", makes: nothing},
	{group: "kyverno.io", kind: "*", makes: nothing},
	{group: "*.linkerd.io", kind: "*", makes: nothing},
	{group: "metallb.io", kind: "*", makes: nothing},
	{group: "monitoring.coreos.com", kind: "*", makes: nothing},
	{group: "networking.gke.io", kind: "*", makes: nothing},
	{group: "opentelemetry.io", kind: "*", makes: nothing},
	{group: "policies.kyverno.io", kind: "*", makes: nothing},
	{group: "projectcontour.io", kind: "*", makes: nothing},
	{group: "route.openshift.io", kind: "*", makes: nothing},
	{group: "secrets.hashicorp.com", kind: "*", makes: nothing},
	{group: "*snapshot.storage.k8s.io", kind: "*", makes: nothing},
	{group: "traefik.io", kind: "*", makes: nothing},
}

// providerOf returns the row of a kind.
func providerOf(gk schema.GroupKind) (provider, bool) {
	i := slices.IndexFunc(providers, func(p provider) bool { return rules.IsOfKind(gk, p.group, p.kind) })
	if i < 0 {
		return provider{}, false
	}
	return providers[i], true
}

// makesFor reports whether an object of the kind makes something.
func (p provider) makesFor(o *unstructured.Unstructured, what finding.Missing) bool {
	if p.makes != "" && p.makes != what.Kind {
		return false
	}
	var names []string
	for _, path := range p.nameIn {
		names = append(names, textsAt(o.Object, path)...)
	}
	if p.prefixedWithOwnName {
		return slices.Contains(names, what.Name) || strings.HasPrefix(what.Name, o.GetName()+"-")
	}
	return slices.Contains(names, what.Name) || len(names) == 0 && what.Name == o.GetName()
}

// textsAt returns the texts at a path of fields that aren't empty.
func textsAt(value any, path string) []string {
	if path == "" {
		if text, _ := value.(string); text != "" {
			return []string{text}
		}
		return nil
	}
	step, rest, _ := strings.Cut(path, ".")
	name, isList := strings.CutSuffix(step, "[]")
	fields, _ := value.(map[string]any)
	if !isList {
		return textsAt(fields[name], rest)
	}
	items, _ := fields[name].([]any)
	var texts []string
	for _, item := range items {
		texts = append(texts, textsAt(item, rest)...)
	}
	return texts
}

// isOrMakes reports whether something is an object, or by the table made for it by its controller.
func isOrMakes(o *unstructured.Unstructured, what finding.Missing) bool {
	p, isProvider := providerOf(o.GroupVersionKind().GroupKind())
	return what.Kind == o.GetKind() && what.Name == o.GetName() || isProvider && p.makesFor(o, what) || what.Kind == "Secret" && what.Name == connectionSecretOf(o)
}

// connectionSecretOf is the Secret in which an object of Crossplane, or of a kind made with it, has what one needs to
// connect to it; empty when it has none.
// https://docs.crossplane.io/latest/managed-resources/managed-resources/#writeconnectionsecrettoref
func connectionSecretOf(o *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(o.Object, "spec", "writeConnectionSecretToRef", "name")
	return name
}

// mayMakeAnything reports whether nobody knows what a namespaced object makes: it is a Job, or of a custom kind that isn't in
// the table.
func mayMakeAnything(o *unstructured.Unstructured) bool {
	gk := o.GroupVersionKind().GroupKind()
	_, isProvider := providerOf(gk)
	return gk == kube.JobKind || rules.IsCustom(gk) && !isProvider
}

// willAppear reports whether what is missing is expected to be created soon: another tracked object is that or its controller
// creates it, or there is one of which nobody knows what it creates, and which was applied not long ago.
func (w *wait) willAppear(namespace string, what finding.Missing) bool {
	now := w.opts.Now()
	return slices.ContainsFunc(w.objects, func(obj *trackedObject) bool {
		o := obj.observed.object
		switch {
		case o == nil || obj.target.ID.Namespace != namespace && obj.target.ID.Namespace != "":
			return false
		case !isOrMakes(o, what):
			misses := obj.status.Finding != nil && obj.status.Finding.Missing != nil // a Job that can't start creates nothing
			return mayMakeAnything(o) && obj.target.ID.Namespace == namespace && !misses && obj.status.State != Failed && obj.clock.at(now).Sub(obj.timers.appliedAt) < providedByAnyWithin
		}
		limit := providedByControllerWithin
		if obj.target.ID.Kind == what.Kind {
			limit = noticedByKubeletWithin
		}
		isRecent := obj.status.State == Ready && obj.clock.at(now).Sub(obj.timers.appliedAt)-obj.status.Waited < limit
		return isRecent || !obj.status.State.IsFinal()
	})
}
