package decide

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/ownership"
	"deployer/apply/provenance"
	"deployer/internal/kube"
)

var (
	us     = provenance.Owner{Release: "web", Namespace: "shop"}
	others = provenance.Owner{Release: "other", Namespace: "shop"}
	nobody = provenance.Owner{}
)

// live returns an object of a release, changed by edits.
func live(id kube.ID, owner provenance.Owner, edits ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(id.GroupKind().WithVersion("v1"))
	obj.SetName(id.Name)
	obj.SetNamespace(id.Namespace)
	obj.SetUID("1")
	if owner != nobody {
		owner.SetOn(obj)
	}
	for _, edit := range edits {
		edit(obj)
	}
	return obj
}

func annotated(key, value string) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		all := obj.GetAnnotations()
		if all == nil {
			all = map[string]string{}
		}
		all[key] = value
		obj.SetAnnotations(all)
	}
}

func deleting(obj *unstructured.Unstructured) {
	now := metav1.Now()
	obj.SetDeletionTimestamp(&now)
}

func recreated(obj *unstructured.Unstructured) { obj.SetUID("2") }

func controlled(obj *unstructured.Unstructured) {
	yes := true
	obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Deployment", Name: "web", UID: "9", Controller: &yes}})
}

func managedBy(managers ...string) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		var entries []metav1.ManagedFieldsEntry
		for _, name := range managers {
			entries = append(entries, metav1.ManagedFieldsEntry{Manager: name, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`)})
		}
		obj.SetManagedFields(entries)
	}
}

// adoptedBy is the provenance of an object that a failed revision adopted from another owner.
func adoptedBy(revision int, from provenance.Owner) *provenance.Provenance {
	out := provenance.NewAdoption(live(config, from), us)
	out.Adopted.Revision = revision
	return out
}

var (
	config    = kube.ID{Kind: "ConfigMap", Namespace: "shop", Name: "settings"}
	claim     = kube.ID{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data"}
	namespace = kube.ID{Kind: "Namespace", Name: "shop"}
	role      = kube.ID{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "all"}
	crd       = kube.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "things.example.com"}
	job       = kube.ID{Group: "batch", Kind: "Job", Namespace: "shop", Name: "migrate"}
)

func check(t *testing.T, got Decision, action Action, reason string) {
	t.Helper()
	if got.Action != action || !strings.Contains(got.Reason, reason) {
		t.Errorf("got %q because %q, expected %q because %q", got.Action, got.Reason, action, reason)
	}
}

func TestOrphan(t *testing.T) {
	removed := Pruning{Owner: us}
	uninstall, undo := Pruning{Owner: us, Uninstall: true}, Pruning{Owner: us, Undo: true}
	unlisted := Pruning{Owner: us, UnlistedGroupVersions: []string{"metrics.k8s.io/v1"}}
	of := func(id kube.ID, owner provenance.Owner, edits ...func(*unstructured.Unstructured)) Orphan {
		return Orphan{ID: id, Live: live(id, owner, edits...), Declared: live(id, nobody), Revision: 3, Status: "deployed"}
	}
	with := func(o Orphan, edit func(*Orphan)) Orphan { edit(&o); return o }
	onRecord := func(o *Orphan) { o.OnRecord = true }
	byUpdate := func(manager string) func(*unstructured.Unstructured) {
		return func(obj *unstructured.Unstructured) {
			obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate}})
		}
	}
	labelled := func(key, value string) func(*unstructured.Unstructured) {
		return func(obj *unstructured.Unstructured) {
			labels := obj.GetLabels()
			if labels == nil {
				labels = map[string]string{}
			}
			labels[key] = value
			obj.SetLabels(labels)
		}
	}
	ownedBySomething := func(obj *unstructured.Unstructured) {
		obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Shop", Name: "web", UID: "9"}})
	}
	for name, test := range map[string]struct {
		pruning Pruning
		orphan  Orphan
		action  Action
		reason  string
		revisit bool
	}{
		"our object":                        {removed, of(config, us), Delete, "removed from the chart", false},
		"of a failed revision":              {removed, with(of(config, us), func(o *Orphan) { o.Status = "failed" }), Delete, "left by failed revision 3", false},
		"of a hook":                         {removed, with(of(job, us), func(o *Orphan) { o.Origin = FromHook }), Delete, "left by a hook of revision 3", false},
		"kept before":                       {removed, with(of(config, us), func(o *Orphan) { o.Origin, o.Declared = KeptEarlier, nil }), Delete, "for a reason that no longer applies", false},
		"of an uninstall":                   {uninstall, of(config, us), Delete, "uninstalled", false},
		"of no release":                     {removed, of(config, nobody), Keep, "no longer belongs to a release", false},
		"made anew by hand":                 {removed, with(of(config, nobody, byUpdate("kubectl-create")), onRecord), Delete, "removed from the chart", false},
		"made anew for another tool":        {removed, with(of(config, nobody, byUpdate("tool"), labelled(kube.ManagedByLabel, "tool")), onRecord), Keep, "no longer belongs to a release", false},
		"made anew by Argo CD, as of Helm":  {removed, with(of(config, nobody, byUpdate("argocd-controller"), labelled(kube.ManagedByLabel, "Helm"), labelled("argocd.argoproj.io/instance", "shop")), onRecord), Keep, "no longer belongs to a release", false},
		"made anew by what applies its own": {removed, with(of(config, nobody, managedBy("kustomize-controller")), onRecord), Keep, "no longer belongs to a release", false},
		"made anew for another object":      {removed, with(of(config, nobody, byUpdate("operator"), ownedBySomething), onRecord), Keep, "no longer belongs to a release", false},
		"taken out by hand":                 {removed, with(of(config, nobody, managedBy("helm")), onRecord), Keep, "no longer belongs to a release", false},
		"taken out, of an embedder":         {removed, with(of(config, nobody, byUpdate("terraform-provider-helm_v3")), onRecord), Keep, "no longer belongs to a release", false},
		"nobody knows who made it":          {removed, with(of(config, nobody), onRecord), Keep, "no longer belongs to a release", false},
		"of a hook of Helm":                 {removed, with(of(job, nobody), func(o *Orphan) { o.Origin = FromHook }), Keep, "deployer didn't run", false},
		"of another release":                {uninstall, of(config, others), Keep, "belongs to release shop/other now", false},
		"kept by annotation":                {uninstall, of(config, us, annotated(KeepAnnotation, "Keep ")), Keep, "resource-policy: keep", false},
		"kept by the chart":                 {uninstall, with(of(config, us), func(o *Orphan) { annotated(KeepAnnotation, "keep")(o.Declared) }), Keep, "resource-policy: keep", false},
		"misspelt policy":                   {removed, of(config, us, annotated(KeepAnnotation, "kep")), Keep, "unknown value", false},
		"policy delete":                     {removed, of(config, us, annotated(KeepAnnotation, "delete")), Delete, "removed", false},
		"namespace of the records":          {Pruning{Owner: us, Uninstall: true, Kinds: ProtectedKinds()}, of(namespace, us), Keep, "holds the release records", false},
		"claim":                             {removed, of(claim, us), Keep, "--prune-kind", true},
		"claim of an undone run":            {undo, of(claim, us), Keep, "delete it yourself", true},
		"claim that may be deleted":         {Pruning{Owner: us, Kinds: []string{"PersistentVolumeClaim"}}, of(claim, us), Delete, "removed", false},
		"namespace of the chart":            {Pruning{Owner: us, Kinds: ProtectedKinds()}, with(of(kube.ID{Kind: "Namespace", Name: "more"}, us), func(o *Orphan) { o.NeededBy = config }), Keep, "ConfigMap/shop/settings of the chart needs it", true},
		"claim kept before, uninstall":      {Pruning{Owner: us, Uninstall: true, Kinds: ProtectedKinds()}, with(of(claim, us), func(o *Orphan) { o.Origin = KeptEarlier }), Keep, "was kept when the chart dropped it", false},
		"controlled object":                 {removed, of(config, us, controlled), Keep, "controlled by Deployment/web", true},
		"groups can't be listed":            {unlisted, of(config, us), Keep, "--allow-partial-discovery", true},
		"adopted by a failed run":           {removed, with(of(config, us), func(o *Orphan) { o.Provenance = adoptedBy(2, others) }), GiveBack, "given back to release shop/other", false},
		"adopted, uninstall":                {uninstall, with(of(config, us), func(o *Orphan) { o.Provenance = adoptedBy(2, others) }), GiveBack, "given back", false},
		"adopted, groups can't be listed":   {unlisted, with(of(config, us), func(o *Orphan) { o.Provenance = adoptedBy(2, others) }), Keep, "may have rendered less", true},
		"adopted, then recreated":           {removed, with(of(config, us, recreated), func(o *Orphan) { o.Provenance = adoptedBy(2, others) }), Keep, "recreated by another client", false},
		"adopted, being deleted":            {undo, with(of(config, us, deleting), func(o *Orphan) { o.Provenance = adoptedBy(2, others) }), Keep, "is being deleted already", false},
		"adopted, being deleted by then":    {undo, with(of(config, others, deleting), func(o *Orphan) { o.Provenance = adoptedBy(2, others) }), Keep, "belongs to release shop/other", false},
		"adopted, back with its owner":      {removed, with(of(config, others), func(o *Orphan) { o.Provenance = adoptedBy(2, others) }), Keep, "belongs to release shop/other", false},
		"adopted halfway":                   {removed, with(of(config, others, managedBy(ownership.Manager)), func(o *Orphan) { o.Provenance = adoptedBy(2, others) }), GiveBack, "given back", false},
		"adopted for good": {removed, with(of(config, us), func(o *Orphan) {
			o.Provenance = adoptedBy(2, others)
			o.Provenance.Adopted.Final = true
		}), Delete, "removed", false},
		"aggregated role, recreated by its controller": {removed, with(of(role, nobody, managedBy(aggregator)), func(o *Orphan) { aggregates(o.Declared) }), Delete, "removed", false},
		"aggregated role of somebody else":             {removed, with(of(role, nobody, managedBy(aggregator, "kubectl")), func(o *Orphan) { aggregates(o.Declared) }), Keep, "no longer belongs", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.pruning.DecideOrphan(test.orphan)
			check(t, got, test.action, test.reason)
			if got.Revisit != test.revisit {
				t.Errorf("revisit: %t", got.Revisit)
			}
		})
	}
}

// aggregates makes a ClusterRole an aggregated one.
func aggregates(obj *unstructured.Unstructured) {
	obj.Object["aggregationRule"] = map[string]any{"clusterRoleSelectors": []any{map[string]any{"matchLabels": map[string]any{"part": "yes"}}}}
}

func TestExisting(t *testing.T) {
	upgrade := Claims{Owner: us}
	back := Claims{Owner: us, BackTo: 1}
	undo := Claims{Owner: us, BackTo: 1, Undo: true}
	of := func(owner provenance.Owner, edits ...func(*unstructured.Unstructured)) Existing {
		return Existing{ID: config, Live: live(config, owner, edits...)}
	}
	with := func(e Existing, edit func(*Existing)) Existing { edit(&e); return e }
	adopted := func(e Existing) Existing { e.Provenance = adoptedBy(2, others); return e }
	for name, test := range map[string]struct {
		claims   Claims
		existing Existing
		action   Action
		reason   string
		adopts   bool
	}{
		"ours":                            {upgrade, of(us), Update, "", false},
		"ours, being deleted":             {upgrade, of(us, deleting), Create, "being deleted", false},
		"of no release":                   {upgrade, of(nobody), "", "", false},
		"of no release, by name":          {Claims{Owner: us, Adopt: []string{"configmap/settings"}}, of(nobody), Update, "adopted: it belonged to no release", true},
		"of no release, all":              {Claims{Owner: us, TakeOwnership: true}, of(nobody), Update, "", true},
		"of another release":              {Claims{Owner: us, TakeOwnership: true}, of(others), "", "", false},
		"of another release, by name":     {Claims{Owner: us, Adopt: []string{"ConfigMap/shop/settings"}}, of(others), Update, "", true},
		"of another namespace's name":     {Claims{Owner: us, Adopt: []string{"ConfigMap/test/settings"}}, of(others), "", "", false},
		"of a release that may be taken":  {Claims{Owner: us, TakeOwnershipFrom: []string{"shop/other"}}, of(others), Update, "taken over from release shop/other", true},
		"of any release":                  {Claims{Owner: us, TakeOwnershipFrom: []string{"*"}}, of(others), Update, "", true},
		"of no release, from any release": {Claims{Owner: us, TakeOwnershipFrom: []string{"*"}}, of(nobody), "", "", false},
		"another's, being deleted":        {upgrade, of(others, deleting), "", "", false},
		"adoption begun by hand":          {Claims{Owner: us, TakeOwnership: true}, of(nobody, annotated("meta.helm.sh/release-name", "web")), Update, "", true},
		"of crds/":                        {upgrade, with(of(nobody), func(e *Existing) { e.FromCRDs = true }), Keep, "exists already and belongs to no release", false},
		"of crds/, which may be replaced": {Claims{Owner: us, ReplaceInCRDs: true}, with(of(nobody), func(e *Existing) { e.FromCRDs = true }), Update, "", false},
		"a definition, of crds/":          {upgrade, with(of(nobody), func(e *Existing) { e.FromCRDs, e.ID = true, crd }), Update, "", false},
		"another's, of crds/":             {upgrade, with(of(others), func(e *Existing) { e.FromCRDs = true }), Keep, "belongs to release shop/other", false},
		"another's definition, of crds/":  {upgrade, with(of(others), func(e *Existing) { e.FromCRDs, e.ID = true, crd }), Update, "", false},
		"ours without ownership":          {upgrade, with(of(nobody), func(e *Existing) { e.OursUnowned, e.WhyOurs = true, "made anew" }), Update, "made anew", false},
		"ours once, another's now":        {upgrade, with(of(others), func(e *Existing) { e.OursUnowned = true }), "", "", false},
		"former hook":                     {upgrade, with(of(nobody, annotated("helm.sh/hook", "pre-install")), func(e *Existing) { e.WasHook = true }), Update, "", false},
		"a hook's name only":              {upgrade, with(of(nobody), func(e *Existing) { e.WasHook = true }), "", "", false},
		"adopted, upgrade":                {upgrade, adopted(of(us)), Update, "", false},
		"adopted, rollback before it":     {back, adopted(of(us)), GiveBack, "given back to release shop/other", false},
		"adopted, rollback to it":         {Claims{Owner: us, BackTo: 2}, adopted(of(us)), Update, "", false},
		"adopted, then recreated":         {back, adopted(of(us, recreated)), Update, "", false},
		"adopted halfway, rollback":       {back, adopted(of(others, managedBy(ownership.Manager))), GiveBack, "given back", false},
		"given back already, rollback":    {back, adopted(of(others)), Keep, "belongs to release shop/other", false},
		"given back, then taken":          {back, adopted(of(provenance.Owner{Release: "third", Namespace: "shop"})), "", "", false},
		"given back, may be taken":        {Claims{Owner: us, BackTo: 1, TakeOwnershipFrom: []string{"*"}}, adopted(of(others)), Update, "", true},
		"given back already, undo":        {undo, adopted(of(others)), Keep, "belongs to release shop/other", false},
		"of no release, undo":             {Claims{Owner: us, BackTo: 1, Undo: true, TakeOwnership: true}, of(nobody), Keep, "belongs to no release", false},
		"ours, undo":                      {undo, of(us), Update, "", false},
		"another's, being deleted, undo":  {undo, of(others, deleting), "", "", false},
		"of crds/, undo":                  {undo, with(of(nobody), func(e *Existing) { e.FromCRDs = true }), Keep, "exists already and belongs to no release", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.claims.DecideExisting(test.existing)
			check(t, got, test.action, test.reason)
			if got.Adopts != test.adopts {
				t.Errorf("adopts: %t", got.Adopts)
			}
		})
	}
}

func TestUnusedAdoptions(t *testing.T) {
	claims := Claims{Adopt: []string{"configmap/settings", "configmap/setings", "Job/shop/migrate", "Job/test/migrate", "migrate"}}
	got := claims.UnusedAdoptions([]kube.ID{config, job})
	if expected := []string{"configmap/setings", "Job/test/migrate", "migrate"}; !slices.Equal(got, expected) {
		t.Errorf("unused: %q, expected %q", got, expected)
	}
}

func TestWhyInTheWay(t *testing.T) {
	hook := annotated("helm.sh/hook", "pre-install")
	policy := func(text string) map[string]string { return map[string]string{"helm.sh/hook-delete-policy": text} }
	onFailure := policy("hook-failed")
	for name, test := range map[string]struct {
		existing Existing
		reason   string // empty: it may be deleted
	}{
		"our object":              {Existing{ID: job, Live: live(job, us)}, ""},
		"our hook of before":      {Existing{ID: job, Live: live(job, nobody, hook), WasHook: true}, ""},
		"somebody's hook":         {Existing{ID: job, Live: live(job, nobody, hook)}, "not a hook of this release"},
		"not a hook":              {Existing{ID: job, Live: live(job, nobody), WasHook: true}, "not a hook of this release"},
		"of another release":      {Existing{ID: job, Live: live(job, others, hook), WasHook: true}, "belongs to release shop/other"},
		"adopted by a failed run": {Existing{ID: config, Live: live(config, us), Provenance: adoptedBy(2, others)}, "only revision 2, which failed, had adopted it"},
		"a definition":            {Existing{ID: crd, Live: live(crd, us)}, "never deleted for a hook"},
		"a claim of the chart":    {Existing{ID: claim, Live: live(claim, us)}, "may hold data: delete it yourself"},
		"a kept object":           {Existing{ID: config, Live: live(config, us, annotated(KeepAnnotation, "keep"))}, "may hold data"},
		"an object of the chart":  {Existing{ID: config, Live: live(config, us)}, ""},
		"one that Helm leaves":    {Existing{ID: config, Live: live(config, us), Desired: onFailure}, "use the delete policy before-hook-creation"},
		"a job that Helm leaves":  {Existing{ID: job, Live: live(job, us), Desired: onFailure}, ""},
		"a hook that holds data":  {Existing{ID: claim, Live: live(claim, us, hook)}, ""},
		"a hook that keeps data":  {Existing{ID: claim, Live: live(claim, us, hook), Desired: onFailure}, "the hook's delete policy keeps it"},
		"what was to be deleted":  {Existing{ID: claim, Live: live(claim, us, hook), Desired: policy("hook-succeeded")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Claims{Owner: us}.WhyInTheWay(test.existing)
			if (got == "") != (test.reason == "") || !strings.Contains(got, test.reason) {
				t.Errorf("%q, expected %q", got, test.reason)
			}
		})
	}
}

func TestRecreation(t *testing.T) {
	recreate := map[string]string{"deployer.io/recreate": "true"}
	keep := map[string]string{KeepAnnotation: "keep"}
	deployment := kube.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	for name, test := range map[string]struct {
		recreation Recreation
		expected   RecreationPermission
	}{
		"by default":                       {Recreation{ID: deployment}, NeedsPermission},
		"permitted":                        {Recreation{ID: deployment, Allowed: true}, Permitted},
		"annotated":                        {Recreation{ID: deployment, Desired: recreate}, Permitted},
		"annotated in the cluster only":    {Recreation{ID: deployment, Live: recreate}, NeedsPermission},
		"a Job":                            {Recreation{ID: job}, Permitted},
		"a Job of somebody else":           {Recreation{ID: job, Adopted: true}, NeedsPermission},
		"somebody else's, annotated":       {Recreation{ID: deployment, Desired: recreate, Adopted: true}, NeedsPermission},
		"somebody else's, permitted":       {Recreation{ID: deployment, Allowed: true, Adopted: true}, Permitted},
		"a claim, permitted":               {Recreation{ID: claim, Allowed: true}, NeedsPermission},
		"a claim, annotated":               {Recreation{ID: claim, Desired: recreate}, NeedsPermission},
		"a claim, permitted and annotated": {Recreation{ID: claim, Desired: recreate, Allowed: true}, Permitted},
		"a namespace":                      {Recreation{ID: namespace, Desired: recreate, Allowed: true}, NeverPermitted},
		"a definition":                     {Recreation{ID: crd, Desired: recreate, Allowed: true}, NeverPermitted},
		"kept in the cluster":              {Recreation{ID: job, Live: keep, Allowed: true}, NeverPermitted},
		"kept by the chart":                {Recreation{ID: job, Desired: keep, Allowed: true}, NeverPermitted},
		"perhaps kept":                     {Recreation{ID: job, Desired: map[string]string{KeepAnnotation: "keeep"}}, NeverPermitted},
	} {
		if got := test.recreation.Permission(); got != test.expected {
			t.Errorf("%s: %d, expected %d", name, got, test.expected)
		}
	}
}

// Helm reads the annotation without regard to case and blanks.
// helm.sh/helm/v3/pkg/releaseutil/manifest_sorter.go
func TestHookDeletePolicies(t *testing.T) {
	for _, c := range []struct {
		annotation, policy string
		want               bool
	}{
		{"", "before-hook-creation", true}, // Helm's default
		{"", "hook-succeeded", false},
		{"hook-succeeded", "before-hook-creation", false},
		{"hook-succeeded, Hook-Failed", "hook-failed", true},
		{"never-hook-failed", "hook-failed", false},
	} {
		named := DeletePolicies(map[string]string{"helm.sh/hook-delete-policy": c.annotation})
		if got := HasDeletePolicy(named, c.policy); got != c.want {
			t.Errorf("%q has %s: %v, want %v", c.annotation, c.policy, got, c.want)
		}
	}
}
