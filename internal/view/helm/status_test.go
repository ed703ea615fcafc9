package helm

import (
	"bytes"
	"strings"
	"testing"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/release"
)

// TestEverythingIsShownWhateverCharactersItHas: control characters of values, which YAML doesn't allow as they
// are, are escaped.
func TestEverythingIsShownWhateverCharactersItHas(t *testing.T) {
	values := map[string]any{"v": "\x01\x7f\u0085\u009b31m"}
	r := &release.Record{Release: helmrelease.Release{
		Name: "x", Namespace: "n", Version: 1, Info: &helmrelease.Info{Status: helmrelease.StatusDeployed}, Config: values,
	}}
	var out bytes.Buffer
	if err := Status(&out, r, StatusOptions{Everything: true, Computed: values}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), `v: "\x01\x7F\N\x9B31m"`); got != 2 {
		t.Errorf("it has the values %d times:\n%q", got, out.String())
	}
}
