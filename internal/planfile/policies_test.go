package planfile

import (
	"encoding/json"
	"reflect"
	"testing"

	"deployer/apply"
	"deployer/internal/deploy"
)

// TestPoliciesStayAsTheyAreWritten: plan files of earlier versions are read, and
// digests are over these very bytes.
func TestPoliciesStayAsTheyAreWritten(t *testing.T) {
	full := deploy.Policies{
		Policies: apply.Policies{
			Conflicts: "fail", Validation: "strict", Gate: "best-effort", CRDs: "upgrade", AllowRecreate: true, RevertManual: true,
			TakeOwnership: true, TakeOwnershipFrom: []string{"a/b"}, Adopt: []string{"c/d"}, PruneKinds: []string{"Namespace"},
			PartialDiscovery: true, Propagation: "Orphan",
		},
		NoHooks: true, MapRemovedAPIs: true, Generated: "renew", AllowStoredHooks: true,
	}
	for text, policies := range map[string]deploy.Policies{
		`{}`: {},
		`{"conflicts":"fail","field_validation":"strict","gate":"best-effort","crds":"upgrade","allow_recreate":true,` +
			`"revert_manual_changes":true,"take_ownership":true,"take_ownership_from":["a/b"],"adopt":["c/d"],"prune_kinds":["Namespace"],` +
			`"partial_discovery":true,"cascade":"Orphan","no_hooks":true,"map_removed_apis":true,"generated":"renew","allow_stored_hooks":true}`: full,
	} {
		got, err := json.Marshal(policies)
		if err != nil || string(got) != text {
			t.Errorf("got  %s, %v\nwant %s", got, err, text)
		}
		var read deploy.Policies
		if err := json.Unmarshal([]byte(text), &read); err != nil || !reflect.DeepEqual(read, policies) {
			t.Errorf("%s is read as %+v, %v", text, read, err)
		}
	}
	if v := reflect.ValueOf(full); !allSet(v) {
		t.Error("a policy is missing here: add it")
	}
}

func allSet(v reflect.Value) bool {
	for i := range v.NumField() {
		f := v.Field(i)
		if f.IsZero() || f.Kind() == reflect.Struct && !allSet(f) {
			return false
		}
	}
	return true
}
