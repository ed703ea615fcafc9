package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writeTwenty writes a chart of some twenty objects of many kinds, with two hooks
// for each event, and returns its directory. Version 2 changes some of the
// objects, one of them in a way that makes a new one of it, drops some and has
// others.
func writeTwenty(t *testing.T, version int) string {
	t.Helper()
	names := []string{"a", "b", "c", "d", fmt.Sprint("only", version)}
	templates := []string{
		"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: sa}\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: secret}\nstringData: {password: hunter2}\n",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: role}\nrules:\n  - {apiGroups: [\"\"], resources: [pods], verbs: [get]}\n",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: role}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: role}\nsubjects:\n  - {kind: ServiceAccount, name: sa}\n",
		"apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: pdb}\nspec: {maxUnavailable: 1, selector: {matchLabels: {app: one}}}\n",
		"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: np}\nspec: {podSelector: {}, policyTypes: [Egress]}\n",
		fmt.Sprintf("apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: cron}\nspec:\n  schedule: \"%d 0 1 1 *\"\n  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: \"r/x:1\"}]}}}}\n", version),
		deployment("one", "one", fmt.Sprint("  replicas: ", version)),
		replaceOnce(deployment("two", "two", "  replicas: 1"), "name: main", fmt.Sprint("name: main", version)),
		// Its pods can't be changed: a new Job takes its place.
		job("work", "example.com/x: once", `[{"phase":"Succeeded","state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]`, fmt.Sprint("r/x:", version)),
	}
	for _, name := range names {
		templates = append(templates,
			configMap(name, fmt.Sprint(version)),
			fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {clusterIP: None, selector: {app: one}, ports: [{port: 80%d}]}\n", name, version))
	}
	for _, verb := range []string{"install", "upgrade", "rollback", "delete"} {
		for _, when := range []string{"pre-", "post-"} {
			event := when + verb
			templates = append(templates, hookJob(event+"-1", event, "before-hook-creation", false), hookJob(event+"-2", event, "hook-succeeded", false))
		}
	}
	dir := filepath.Join(t.TempDir(), "twenty")
	files := map[string]string{
		"Chart.yaml":         fmt.Sprintf("apiVersion: v2\nname: twenty\nversion: %d.0.0\n", version),
		"templates/all.yaml": strings.Join(templates, "---\n"),
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
