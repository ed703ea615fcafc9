package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// accountCRD defines a kind whose lists have items that are named by their values and by a key. Its
// field default is declared confidential.
func accountCRD(group, description string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: accounts.%[1]s
  annotations: {deployer.io/sensitive-paths: "..description"}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: Account, plural: accounts, singular: account}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          description: %[2]q
          properties:
            spec:
              type: object
              properties:
                tokens: {type: array, x-kubernetes-list-type: set, items: {type: string}}
                users:
                  type: array
                  x-kubernetes-list-type: map
                  x-kubernetes-list-map-keys: [pin]
                  items: {type: object, required: [pin], properties: {pin: {type: string}, role: {type: string}}}
                number: {type: integer}
                fixed:
                  type: string
                  x-kubernetes-validations: [{rule: "!oldSelf.startsWith('locked')", messageExpression: "'it was ' + oldSelf"}]
`, group, description)
}

// TestConfidentialFieldsOfCustomResourcesStayHidden: numbers, items that paths name by their value or key, live
// values that the API server quotes, and what crds/ declares.
func TestConfidentialFieldsOfCustomResourcesStayHidden(t *testing.T) {
	w := newWorld(t)
	group := w.unique() + ".example.com"
	w.dropCRD("accounts." + group)
	description := canary()
	var secrets []string
	number := func() string { return fmt.Sprint(1_000_000_000 + rand.IntN(1_000_000_000)) }
	chart := func(fixed string) string {
		token, item, pin, n := canary(), canary(), canary(), number()
		secrets = append(secrets, token, item, pin, n)
		return w.chartOf(map[string]string{
			"crds/account.yaml": accountCRD(group, description),
			"values.yaml":       "tokens: [" + item + "]\n", // a confidential key: hidden without an annotation, too
			"templates/a.yaml": fmt.Sprintf(`apiVersion: %s/v1
kind: Account
metadata: {name: a, annotations: {deployer.io/sensitive-paths: "spec.users, spec.number, spec.fixed"}}
spec: {tokens: [{{ first .Values.tokens }}], users: [{pin: %s, role: admin}, {pin: "12", role: other}], number: %s, fixed: %q}
`, group, pin, n, fixed),
			"templates/c.yaml": configMap("c", description+" "+token+" "+n),
			"templates/s.yaml": fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: %s}\n", token),
		})
	}
	fixed := canary()
	secrets = append(secrets, description, fixed)
	hides := func(code int, args ...string) result {
		t.Helper()
		r := w.exits(code, args...)
		w.hides(r, secrets...)
		if strings.Contains(r.out+r.err, `"12"`) {
			t.Errorf("the short key of a confidential item is shown by\n%s", r)
		}
		return r
	}

	first := chart(fixed)
	hides(0, "plan", "x", first, "-o", "json")
	hides(0, "install", "x", first, "--wait=false")
	second := chart(fixed)
	for _, format := range []string{"table", "json", "yaml", "markdown", "html"} {
		r := hides(0, "plan", "x", second, "-o", format)
		w.says(r, "stdout", `spec\.tokens\[=\(hidden\)\]`, `spec\.users\[pin=\(hidden\)\]`, `spec\.number`)
	}
	live, changed := canary(), number()
	secrets = append(secrets, live, changed)
	account := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "accounts"}
	change := func(patch string) {
		t.Helper()
		_, err := w.cluster.Dynamic().Resource(account).Namespace(w.ns).Patch(t.Context(), "a", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "test"})
		if err != nil {
			t.Fatalf("changing the account: %v", err)
		}
	}
	change(fmt.Sprintf(`{"spec":{"users":[{"pin":%q}],"number":%s}}`, live, changed))
	w.patch("configmaps", "c", "test", `{"data":{"v":"is `+changed+` and `+live+`"}}`)
	hides(2, "plan", "x", "--drift")
	hides(2, "plan", "x", "--drift", "-o", "json")
	hides(0, "explain", "x", "account/a")
	hides(0, "explain", "x", "account/a", "-o", "json")
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	file := w.saved("x", second, "--encrypt-to", key.Recipient().String())
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w.hides(result{line: "the clear part of the saved plan", out: string(data)}, secrets...)
	if !json.Valid([]byte(strings.SplitN(string(data), "\n", 2)[0])) {
		t.Errorf("the saved plan is none:\n%s", data)
	}
	identity := filepath.Join(t.TempDir(), "identity.txt")
	if err := os.WriteFile(identity, []byte(key.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	hides(0, "apply", file, "--identity", identity)
	hides(0, "rollback", "x", "1", "--wait=false")
	// Nobody has told the program the live value before the server quotes it.
	locked := canary()
	secrets = append(secrets, locked)
	change(`{"spec":{"fixed":"locked` + locked + `"}}`)
	w.says(hides(3, "plan", "x", chart(canary())), "stderr", `it was \(hidden\)`)
}
