package nodetest

import (
	"strings"
	"testing"
)

// website serves a page, and is ready when it does so.
func website(page string) string {
	return deployment("containers:\n"+shell("app", "mkdir /www; echo "+page+" >/www/index.html; exec httpd -f -p 8080 -h /www")+
		"  ports: [{containerPort: 8080}]\n"+
		"  readinessProbe: {httpGet: {port: 8080, path: /index.html}, periodSeconds: 1}\n") + `---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
`
}

func TestReadyMeansServing(t *testing.T) {
	w := newWorld(t)
	w.write("templates/web.yaml", website("one"))
	w.deployer(0, []string{"Deployment/" + w.ns + "/web"}, "install", "web", w.chart)
	if got := w.page(); got != "one" {
		t.Errorf("the page after install is %q, want one", got)
	}
	w.write("templates/web.yaml", website("two"))
	w.deployer(0, nil, "upgrade", "web", w.chart)
	if got := w.page(); got != "two" {
		t.Errorf("the page after upgrade is %q, want two", got)
	}
}

func TestFailedUpgradeIsRolledBackAndTheOldServes(t *testing.T) {
	w := newWorld(t)
	w.write("templates/web.yaml", website("one"))
	w.deployer(0, nil, "install", "web", w.chart)
	w.write("templates/web.yaml", strings.Replace(website("two"), "exec httpd", "echo no licence; exit 5; httpd", 1))
	const rolledBack = 6
	w.deployer(rolledBack, []string{"no licence", "5", "web"}, "upgrade", "web", w.chart, "--atomic")
	if got := w.page(); got != "one" {
		t.Errorf("the page after the rollback is %q, want one", got)
	}
	status := w.deployer(0, nil, "history", "web")
	for _, want := range []string{"failed", "deployed"} {
		if !strings.Contains(status.out, want) {
			t.Errorf("the history doesn't say %q:\n%s", want, status)
		}
	}
}

// TestSlowStartWithARestart: an application that starts slowly, and once in vain,
// is no failure.
func TestSlowStartWithARestart(t *testing.T) {
	w := newWorld(t)
	w.write("templates/web.yaml", deployment("containers:\n"+
		shell("app", "if mkdir /state/tried; then echo the database is not there yet; sleep 2; exit 1; fi; sleep 6; touch /tmp/up; echo up; sleep 1000")+
		"  volumeMounts: [{name: state, mountPath: /state}]\n"+
		"  readinessProbe: {exec: {command: [cat, /tmp/up]}, periodSeconds: 1}\n"+
		"volumes: [{name: state, emptyDir: {}}]\n"))
	r := w.deployer(0, []string{"Container crashes", "Deployment/" + w.ns + "/web"}, "install", "web", w.chart)
	if strings.Contains(r.stderr(), "FAILED") {
		t.Errorf("it was called failed:\n%s", r)
	}
}

// TestBrokenReleaseThenAGoodOne: what is left of the broken one doesn't make the
// good one fail, and no pod of it is taken for one of the good one.
func TestBrokenReleaseThenAGoodOne(t *testing.T) {
	w := newWorld(t)
	w.write("templates/web.yaml", website("one"))
	w.deployer(0, nil, "install", "web", w.chart)
	w.write("templates/web.yaml", strings.Replace(website("two"), "exec httpd", "echo no licence; exit 5; httpd", 1))
	w.deployer(1, []string{"no licence", "exit code 5", "the old revision still serves with 1 pod"}, "upgrade", "web", w.chart)
	if got := w.page(); got != "one" {
		t.Errorf("the page after the broken release is %q, want one", got)
	}
	w.write("templates/web.yaml", website("three"))
	r := w.deployer(0, nil, "upgrade", "web", w.chart)
	if strings.Contains(r.stderr(), "crash") {
		t.Errorf("the broken release is held against the good one:\n%s", r)
	}
	if got := w.page(); got != "three" {
		t.Errorf("the page after the good release is %q, want three", got)
	}
}
