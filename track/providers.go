package track

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/kube"
	"deployer/track/pods"
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

// A provider is a kind whose objects make ConfigMaps or Secrets appear.
type provider struct {
	group, kind string // group may begin with "*." and kind be "*"
	makes       string // kind of what it makes; empty for both
	// named is the path of the field that names what it makes; without such a field, or if that is empty, it has the
	// object's own name.
	named []string
	// begins says that it makes several, whose names begin with the object's name and this.
	begins string
	none   bool // it makes none: its objects are configuration
}

func path(dotted string) []string { return strings.Split(dotted, ".") }

// providers are the kinds of which it is known what they make. The first row of a kind counts.
var providers = []provider{
	{group: "cert-manager.io", kind: "Certificate", makes: "Secret", named: path("spec.secretName")},
	{group: "cert-manager.io", kind: "*", none: true},
	{group: "trust.cert-manager.io", kind: "Bundle"},
	{group: "external-secrets.io", kind: "ExternalSecret", makes: "Secret", named: path("spec.target.name")},
	{group: "external-secrets.io", kind: "ClusterExternalSecret", makes: "Secret", named: path("spec.externalSecretName")},
	{group: "external-secrets.io", kind: "*", none: true},
	{group: "bitnami.com", kind: "SealedSecret", makes: "Secret", named: path("spec.template.metadata.name")},
	{group: "secrets.hashicorp.com", kind: "*", makes: "Secret", named: path("spec.destination.name")},
	{group: "ricoberger.de", kind: "VaultSecret", makes: "Secret"},
	{group: "redhatcop.redhat.io", kind: "VaultSecret", makes: "Secret", named: path("spec.output.name")},
	{group: "onepassword.com", kind: "OnePasswordItem", makes: "Secret"},
	{group: "secrets.infisical.com", kind: "InfisicalSecret", makes: "Secret", named: path("spec.managedSecretReference.secretName")},
	{group: "secrets.doppler.com", kind: "DopplerSecret", makes: "Secret", named: path("spec.managedSecret.name")},
	{group: "spv.no", kind: "AzureKeyVaultSecret", makes: "Secret", named: path("spec.output.secret.name")},
	{group: "secretgenerator.mittwald.de", kind: "*", makes: "Secret"},
	{group: "services.cloud.sap.com", kind: "ServiceBinding", makes: "Secret", named: path("spec.secretName")},
	{group: "objectbucket.io", kind: "ObjectBucketClaim"},
	{group: "postgresql.cnpg.io", kind: "Cluster", makes: "Secret", begins: "-"},
	{group: "postgres-operator.crunchydata.com", kind: "*", begins: "-"},
	{group: "mongodbcommunity.mongodb.com", kind: "*", begins: "-"},
	{group: "rabbitmq.com", kind: "*", begins: "-"},
	{group: "*.k8s.elastic.co", kind: "*", begins: "-"},
	{group: "kafka.strimzi.io", kind: "KafkaUser", makes: "Secret"},
	{group: "kafka.strimzi.io", kind: "KafkaTopic", none: true},
	{group: "kafka.strimzi.io", kind: "*", begins: "-"},
	{group: "k8s.keycloak.org", kind: "*", begins: "-"},
	{group: "argoproj.io", kind: "Rollout", none: true},
	{group: "autoscaling.k8s.io", kind: "*", none: true},
	{group: "cilium.io", kind: "*", none: true},
	{group: "gateway.networking.k8s.io", kind: "*", none: true},
	{group: "*.istio.io", kind: "*", none: true},
	{group: "keda.sh", kind: "*", none: true},
	{group: "kyverno.io", kind: "*", none: true},
	{group: "monitoring.coreos.com", kind: "*", none: true},
	{group: "*.linkerd.io", kind: "*", none: true},
	{group: "projectcontour.io", kind: "*", none: true},
	{group: "snapshot.storage.k8s.io", kind: "*", none: true},
	{group: "traefik.io", kind: "*", none: true},
}

// providerOf returns the row of a kind.
func providerOf(gk schema.GroupKind) (provider, bool) {
	i := slices.IndexFunc(providers, func(p provider) bool {
		suffix, wild := strings.CutPrefix(p.group, "*")
		return (p.kind == "*" || p.kind == gk.Kind) && (gk.Group == p.group || wild && strings.HasSuffix(gk.Group, suffix))
	})
	if i < 0 {
		return provider{}, false
	}
	return providers[i], true
}

// makesFor reports whether an object of the kind makes something.
func (p provider) makesFor(o *unstructured.Unstructured, what ref) bool {
	switch {
	case p.none || p.makes != "" && p.makes != what.Kind:
		return false
	case p.begins != "":
		return strings.HasPrefix(what.Name, o.GetName()+p.begins)
	}
	name, _, _ := unstructured.NestedString(o.Object, p.named...)
	return what.Name == cmp.Or(name, o.GetName())
}

// isOrMakes reports whether something is an object, or by the table made for it by its controller.
func isOrMakes(o *unstructured.Unstructured, what ref) bool {
	p, known := providerOf(o.GroupVersionKind().GroupKind())
	return what == ref{o.GetKind(), o.GetName()} || known && p.makesFor(o, what) || what.Kind == "Secret" && what.Name == connectionSecretOf(o)
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
	_, known := providerOf(gk)
	return gk == kube.JobKind || !known && rules.IsCustom(gk)
}

// willAppear reports whether what is missing is expected to be created soon: another tracked object is that or its controller
// creates it, or there is one of which nobody knows what it creates, and which was applied not long ago.
func (w *wait) willAppear(namespace string, what pods.Missing) bool {
	now := w.opts.Now()
	return slices.ContainsFunc(w.objects, func(obj *trackedObject) bool {
		o := obj.observed.object
		missed := ref{what.Kind, what.Name}
		switch {
		case o == nil || obj.target.ID.Namespace != namespace && obj.target.ID.Namespace != "":
			return false
		case !isOrMakes(o, missed):
			misses := obj.status.Finding != nil && obj.status.Finding.Missing != nil // a Job that can't start creates nothing
			return mayMakeAnything(o) && obj.target.ID.Namespace == namespace && !misses && obj.status.State != Failed && now.Sub(obj.timers.appliedAt) < providedByAnyWithin
		}
		limit := providedByControllerWithin
		if obj.target.ID.Kind == what.Kind {
			limit = noticedByKubeletWithin
		}
		isRecent := obj.status.State == Ready && now.Sub(obj.timers.appliedAt)-obj.status.Waited < limit
		return isRecent || !obj.status.State.IsFinal()
	})
}
