// Package viewtest has what the tests of views share: golden files, and an operation
// with one of everything.
package viewtest

import (
	"bytes"
	_ "embed"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/rivo/uniseg"
	helmchart "helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"deployer/apply"
	"deployer/apply/compare"
	"deployer/internal/deploy"
	"deployer/internal/kube"
	"deployer/release"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Golden compares got with a file in testdata.
func Golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}

// Planted is a secret that no output may contain, in no encoding.
const Planted = "hunter2-planted"

const PlantedBase64 = "aHVudGVyMi1wbGFudGVk"

func CheckSecrets(t *testing.T, out string) {
	t.Helper()
	for _, secret := range []string{Planted, PlantedBase64} {
		if i := strings.Index(out, secret); i >= 0 {
			t.Errorf("a Secret's value is in the output: %q", out[max(0, i-80):min(len(out), i+60)])
		}
	}
}

func Object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return &unstructured.Unstructured{Object: m}
}

// builtin reads the schemas of the built-in kinds.
var builtin = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme.Scheme) })

// Compare sets the field changes of an operation. Removed fields were declared by revision.
func Compare(t testing.TB, op *deploy.Operation, revision int) *deploy.Operation {
	t.Helper()
	for _, wave := range op.Plan.Waves {
		for i := range wave.Changes {
			c := &wave.Changes[i]
			if c.Live == nil || c.Desired == nil {
				continue
			}
			states := compare.States{Before: c.Live, After: c.Predicted, Desired: c.Desired}
			if c.Predicted == nil {
				states.After, states.AfterIsManifest = c.Desired, true
			}
			var err error
			if c.Fields, err = compare.Fields(builtin(), states); err != nil {
				t.Fatal(err)
			}
			for j := range c.Fields {
				if c.Fields[j].Type == compare.Removed {
					c.Fields[j].Revision = revision
				}
			}
		}
	}
	return op
}

func NoEnv(string) string { return "" }

func Environment(variables map[string]string) func(string) string {
	return func(name string) string { return variables[name] }
}

func ID(group, kind, name string) kube.ID {
	return kube.ID{Group: group, Kind: kind, Namespace: "prod", Name: name}
}

func SecretObject(t testing.TB, data string) *unstructured.Unstructured {
	return Object(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: prod, annotations: {kubectl.kubernetes.io/last-applied-configuration: "+
		Planted+", copy: "+Planted+"}}\ndata: {"+data+"}")
}

func Record(version int, status helmrelease.Status) *release.Record {
	r := &release.Record{}
	r.Name, r.Namespace, r.Version = "web", "prod", version
	r.Info = &helmrelease.Info{Status: status}
	r.Chart = &helmchart.Chart{Metadata: &helmchart.Metadata{Name: "web", Version: "1.3.0"}}
	return r
}

func Summary(revision int, status helmrelease.Status) *release.Summary {
	return &release.Summary{Name: "web", Namespace: "prod", Revision: revision, Status: status}
}

//go:embed upgrade.yaml
var upgrade string

// Upgrade is an operation with one of everything.
func Upgrade(t testing.TB) *deploy.Operation {
	t.Helper()
	op := &deploy.Operation{}
	if err := yaml.UnmarshalStrict([]byte(upgrade), op); err != nil {
		t.Fatal(err)
	}
	return Compare(t, op, 6)
}

// Web is the change of the Deployment in Upgrade.
func Web(t testing.TB) apply.Change { return Upgrade(t).Plan.Waves[1].Changes[0] }

// Hostile is what a cluster or chart may send to a terminal or a page.
const Hostile = "\x1b[2J\x1b]0;owned\x07\x1b[31mred\u009b1A\r\nFAKE line\u202edlrow <script>alert(1)</script> `````` \x00\x08 @team"

func WebID() kube.ID { return ID("apps", "Deployment", "web") }

// CheckNarrow holds that what is shown fits a terminal of 80 columns, or of fewer, that shows neither colours nor
// UTF-8, and says there what it says elsewhere. It returns what is shown on 80 columns without either.
func CheckNarrow(t *testing.T, show func(columns int, coloured bool, env func(string) string) string) string {
	t.Helper()
	posix, utf8 := Environment(map[string]string{"LANG": "C"}), Environment(map[string]string{"LANG": "C.UTF-8"})
	plain, narrow := show(80, false, posix), show(80, false, utf8)
	if i := strings.IndexFunc(plain, func(r rune) bool { return r > 0x7e }); i >= 0 {
		t.Errorf("without UTF-8 it shows %q", plain[i:min(i+20, len(plain))])
	}
	for columns, text := range map[int]string{80: narrow, 41: show(41, false, utf8)} {
		for l := range strings.SplitSeq(text, "\n") {
			if uniseg.StringWidth(l) > columns {
				t.Errorf("a line of more than %d cells: %s", columns, l)
			}
		}
	}
	if coloured := show(80, true, utf8); regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(coloured, "") != narrow {
		t.Errorf("colours break lines elsewhere:\n%s", coloured)
	}
	words := func(s string) string { return strings.Join(strings.Fields(s), "") }
	if words(show(100000, false, utf8)) != words(narrow) {
		t.Error("something is lost on 80 columns")
	}
	return plain
}
