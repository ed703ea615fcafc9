package e2e

import (
	"fmt"
	"strings"
)

// configMap is a manifest with one entry of data.
func configMap(name, value string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata:
  name: %s
data:
  key: %q
`, name, value)
}

// kept is configMap with the policy that keeps it.
func kept(name, value string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata:
  name: %s
  annotations:
    helm.sh/resource-policy: keep
data:
  key: %q
`, name, value)
}

// hookJob is a Job run at an event, which fails or not.
func hookJob(name, event, policy string, fails bool) string {
	steps := `[{"phase":"Succeeded","state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]`
	if fails {
		steps = `[{"phase":"Failed","state":{"terminated":{"exitCode":1,"reason":"Error"}}}]`
	}
	return job(name, "helm.sh/hook: "+event+"\n    helm.sh/hook-delete-policy: "+policy, steps, "r/x:1")
}

// endlessHook is a Job run at an event that never ends.
func endlessHook(name, event string) string {
	return job(name, "helm.sh/hook: "+event, `[{"state":{"running":{}}}]`, "r/x:1")
}

// job is a Job with annotations and what its pod goes through.
func job(name, annotations, steps, image string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata:
  name: %s
  annotations:
    %s
spec:
  backoffLimit: 0
  template:
    metadata:
      annotations:
        sim.deployer/steps: '%s'
    spec:
      restartPolicy: Never
      containers:
        - name: main
          image: %s
`, name, annotations, steps, image)
}

// deployment is a Deployment whose pods have the label app; more are lines of
// its spec, indented by two.
func deployment(name, app, more string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: %s
spec:
%s
  selector:
    matchLabels: {app: %s}
  template:
    metadata:
      labels: {app: %s}
    spec:
      containers:
        - name: main
          image: r/x:1
`, name, more, app, app)
}

// replaceOnce is strings.Replace that must find something.
func replaceOnce(text, from, to string) string {
	if !strings.Contains(text, from) {
		panic("not in the manifest: " + from)
	}
	return strings.Replace(text, from, to, 1)
}
