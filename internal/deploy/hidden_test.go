package deploy

import (
	"strings"
	"testing"

	"deployer/apply"
	"deployer/apply/provenance"
	"deployer/internal/hide"
)

// TestFormerValuesOfAdoptedSecretsAreHidden: what a Secret held before it was adopted is
// in the record only, and an answer of the server to giving it back may quote it.
func TestFormerValuesOfAdoptedSecretsAreHidden(t *testing.T) {
	d := &Deployer{Namespace: "prod", Hidden: &hide.Texts{}}
	d.collectHidden(nil, []apply.Revision{{Provenance: map[string]provenance.Provenance{
		"/Secret/prod/db": {Adopted: &provenance.Adoption{Prior: provenance.Prior{
			Values: []byte(`{"apiVersion":"v1","kind":"Secret","stringData":{"password":"former-canary"}}`),
		}}},
		"/ConfigMap/prod/web": {Created: true},
	}}})
	if got := d.Hidden.Hide("can't restore former-canary"); strings.Contains(got, "former-canary") {
		t.Errorf("shown: %s", got)
	}
}
