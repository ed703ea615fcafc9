package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"deployer/internal/kubetest"
)

// An explained is what explain says of one field.
type explained struct {
	Path     string
	Value    any
	Hidden   bool
	Owners   []struct{ Manager, Operation, Subresource, Since string }
	Revision int
	Earlier  bool `json:"or_earlier"`
	Source   string
	Upgrade  string
	Becomes  any
}

// explain asks for one field of an object.
func (p *plans) explain(object, field string, args ...string) explained {
	p.t.Helper()
	out := p.run(0, append([]string{"explain", "web", object, field, "-o", "json"}, args...)...)
	var d struct{ Fields []explained }
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		p.t.Fatalf("%v:\n%s", err, out)
	}
	if len(d.Fields) != 1 {
		p.t.Fatalf("%s %s: %d fields:\n%s", object, field, len(d.Fields), out)
	}
	return d.Fields[0]
}

// wantExplained asks for a field and compares what matters of it in one line:
// value, owners, revision, what an upgrade makes of it.
func (p *plans) wantExplained(object, field, want string, args ...string) {
	p.t.Helper()
	f := p.explain(object, field, args...)
	var owners []string
	for _, o := range f.Owners {
		if o.Since == "" && o.Subresource != "scale" { // of which servers keep no time
			p.t.Errorf("%s %s: nobody knows since when it is %s's", object, field, o.Manager)
		}
		owners = append(owners, strings.TrimSuffix(o.Manager+"/"+o.Operation+"/"+o.Subresource, "/"))
	}
	got := fmt.Sprintf("%v by %s, revision %d, %s", f.Value, strings.Join(owners, " "), f.Revision, f.Upgrade)
	if f.Becomes != nil {
		got += fmt.Sprintf(" -> %v", f.Becomes)
	}
	if got != want {
		p.t.Errorf("%s %s: %s\nwant %s", object, field, got, want)
	}
	if (f.Revision > 0) != (f.Source != "") {
		p.t.Errorf("%s %s: revision %d and template %q", object, field, f.Revision, f.Source)
	}
}

// TestExplain says of each field who owns it, which revision has stated its value
// first and without a break, and what an upgrade makes of it.
func TestExplain(t *testing.T) {
	t.Parallel()
	p := newDrift(t)
	p.upgrade("password=planted-secret-1", "colour=blue")
	p.upgrade("password=planted-secret-1", "colour=red")
	p.upgrade("password=planted-secret-2", "colour=blue")
	p.upgrade("password=planted-secret-2", "colour=blue", "image=nginx:2")
	image := ".spec.template.spec.containers[name=app].image"
	p.wantExplained("ConfigMap/conf", ".data.colour", "blue by helm/Apply, revision 3, kept")
	p.wantExplained("cm/conf", "data.size", "1 by helm/Apply, revision 1, kept")
	p.wantExplained("deployments.apps/web", image, "nginx:2 by helm/Apply, revision 4, kept")
	p.wantExplained("deploy/"+p.ns+"/web", ".spec.template.spec.containers[0].image", "nginx:2 by helm/Apply, revision 4, kept")
	p.wantExplained("deploy/web", ".spec.progressDeadlineSeconds", "600 by , revision 0, ignored")
	p.wantExplained("Deployment/web", `.metadata.labels["app.kubernetes.io/managed-by"]`, "Helm by helm/Apply, revision 1, kept")

	p.patch("configmaps", "conf", `{"data":{"colour":"pink","note":"x","size":null}}`, "kubectl-edit")
	p.patch("deployments", "scaled", `{"spec":{"replicas":5}}`, "kube-controller-manager", "scale")
	p.wantExplained("ConfigMap/conf", ".data.colour", "pink by kubectl-edit/Update, revision 0, taken -> blue")
	p.wantExplained("ConfigMap/conf", ".data.colour", "pink by kubectl-edit/Update, revision 0, yielded -> blue", "--conflicts", "yield")
	p.wantExplained("ConfigMap/conf", ".data.colour", "pink by kubectl-edit/Update, revision 0, refused -> blue", "--conflicts", "fail")
	mustHave(t, p.run(0, "explain", "web", "ConfigMap/conf", ".data.colour"), "an upgrade takes it, one with --conflicts yield leaves it")
	p.wantExplained("ConfigMap/conf", ".data.note", "x by kubectl-edit/Update, revision 0, ignored")
	p.wantExplained("ConfigMap/conf", ".data.note", "x by kubectl-edit/Update, revision 0, removed", "--revert-manual-changes")
	p.wantExplained("ConfigMap/conf", ".data.size", "<nil> by , revision 0, set -> 1")
	p.wantExplained("Deployment/scaled", ".spec.replicas", "5 by kube-controller-manager/Update/scale, revision 0, yielded -> 1")
	if f := p.explain("Secret/db", ".data.password"); !f.Hidden || f.Value != nil || f.Revision != 3 {
		t.Errorf("a value of a Secret: %+v", f)
	}
	p.run(1, "upgrade", "web", p.chart, "--wait=false", "--set", "fail=true,image=nginx:3,colour=green,password=planted-secret-2")
	p.wantExplained("ConfigMap/conf", ".data.colour", "green by helm/Apply, revision 5, set -> blue")

	all := p.run(0, "explain", "web", "Deployment/web")
	mustHave(t, all, "Deployment/"+p.ns+"/web   of web in "+p.ns+", revision 4, chart web-1.0.0   (web/templates/web.yaml)", "helm (Apply, since 20",
		"since revision 1; an upgrade keeps it   (web/templates/web.yaml)", `    spec.template.spec.containers[name="app"].image: "nginx:3" -> "nginx:2"`,
		"no manager   not set by the release; an upgrade leaves it")
	if strings.Contains(all, "status.") || strings.Contains(all, "resourceVersion") || strings.Contains(all, "metadata.name") {
		t.Errorf("what servers keep is explained:\n%s", all)
	}
	mustHave(t, p.run(0, "explain", "web", "deploy/web", ".status"), "status.", "(Update, status, since ")
	for _, format := range []string{"table", "json", "yaml"} {
		if out := p.run(0, "explain", "web", "Secret/db", "-o", format); strings.Contains(out, "planted") || strings.Contains(out, "cGxhbnRlZC1zZWNyZXQt") {
			t.Errorf("%s shows a value of a Secret:\n%s", format, out)
		}
	}
	p.explainNothing()
}

// explainNothing asks for what isn't there.
func (p *plans) explainNothing() {
	p.t.Helper()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"nobody", "Deployment/web"}, "not found"},
		{[]string{"web", "web"}, "write KIND/NAME"},
		{[]string{"web", "Deployment/none"}, "Deployment/" + p.ns + "/scaled"},
		{[]string{"web", "Deployment/web", ".spec.replica"}, "in spec there are .*replicas"},
		{[]string{"web", "Deployment/web", ".spek"}, "at its top there are apiVersion, kind, metadata, spec"},
		{[]string{"web", "Deployment/web", ".spec.template.spec.containers[name=none].image"}, `in spec.template.spec.containers there are \[name="app"\]`},
		{[]string{"web", "Deployment/web", ".spec["}, "is not the path of a field"},
	} {
		out := p.run(1, append([]string{"explain"}, c.args...)...)
		if !regexp.MustCompile(c.want).MatchString(out) {
			p.t.Errorf("%s: no %q:\n%s", c.args, c.want, out)
		}
	}
	p.remove("configmaps", "conf")
	mustHave(p.t, p.run(0, "explain", "web", "ConfigMap/conf"), "not in the cluster", "an upgrade creates it")
}

// Of a release whose old revisions are gone nobody knows where a value began;
// and explaining is reading.
func TestExplainReadsOnly(t *testing.T) {
	t.Parallel()
	p := newPlans(t)
	for _, size := range []string{"1", "2", "3"} {
		p.run(0, "upgrade", "--install", "web", p.chart, "--wait=false", "--history-max", "2", "--set", "big="+size)
	}
	mustHave(t, p.run(0, "explain", "web", "ConfigMap/conf", ".data.colour"), "since revision 2 or earlier")
	mustHave(t, p.run(0, "explain", "web", "ConfigMap/conf", ".data.big"), "since revision 3;")
	p.patch("configmaps", "conf", `{"data":{"colour":"pink"}}`, "kubectl-edit")
	for _, verbs := range []string{"get,list", "get,list,patch,create"} {
		user := p.cluster.User(t, p.ns, kubetest.Rule("", verbs, "configmaps", "secrets"))
		q := *p
		q.config = user.Kubeconfig(t, p.ns)
		from := len(p.cluster.Audit(t, user.Name))
		q.wantExplained("ConfigMap/conf", ".data.colour", "pink by kubectl-edit/Update, revision 0, taken -> red")
		if out := q.run(0, "explain", "web", "ConfigMap/conf"); strings.Contains(out, "not verified") != (verbs == "get,list") {
			t.Errorf("%s: local estimates are not labelled as such, or others are:\n%s", verbs, out)
		}
		for _, e := range kubetest.Writes(p.cluster.Audit(t, user.Name)[from:]) {
			t.Errorf("%s: written: %s", verbs, e)
		}
	}
}

// TestExplainHeedsThePolicyOfTheObject fails if a field counts as refused because of
// --conflicts fail, although the object's own annotation lets an upgrade take it.
func TestExplainHeedsThePolicyOfTheObject(t *testing.T) {
	t.Parallel()
	p := newPlans(t)
	for _, policy := range []string{"take", "fail"} {
		p.write("templates/"+policy+".yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+policy+", annotations: {deployer.io/conflicts: "+policy+"}}\ndata: {a: b}\n")
	}
	p.upgrade()
	for _, policy := range []string{"take", "fail"} {
		p.patch("configmaps", policy, `{"data":{"a":"x"}}`, "kubectl-edit")
	}
	p.wantExplained("ConfigMap/take", ".data.a", "x by kubectl-edit/Update, revision 0, taken -> b", "--conflicts", "fail")
	p.wantExplained("ConfigMap/fail", ".data.a", "x by kubectl-edit/Update, revision 0, refused -> b", "--conflicts", "take")
}
