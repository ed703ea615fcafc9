package ownership

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// FuzzMigrateAsSent takes managedFields as a server might send them, down to ones that
// somebody wrote by hand: what can't be read is an error, and what can be read
// is folded without losing what Helm's managers own of the live object, without
// touching controllers, into entries that can be written and read again.
func FuzzMigrateAsSent(f *testing.F) {
	for _, seed := range []string{
		`[{"manager":"helm","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:a":{}}}}]`,
		`[{"manager":"helm","operation":"Apply","apiVersion":"apps/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}},{"manager":"kube-controller-manager","operation":"Update","subresource":"status","apiVersion":"apps/v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{}}}]`,
		`[{"manager":"before-first-apply","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:finalizers":{"v:\"x\"":{}}}}},{"manager":"werf-1","operation":"Apply","apiVersion":"v2","fieldsV1":{"f:data":{"f:a":{}}}}]`,
		`[{}]`, `[{"manager":"helm","fieldsV1":{"f:a":{"i:3":{}}}}]`, `null`,
	} {
		f.Add([]byte(seed), byte(0))
		f.Add([]byte(seed), byte(255))
	}
	f.Fuzz(func(t *testing.T, data []byte, how byte) {
		var list []metav1.ManagedFieldsEntry
		if !utf8.Valid(data) || json.Unmarshal(data, &list) != nil {
			return // https://www.rfc-editor.org/rfc/rfc8259#section-8.1
		}
		entries, err := Parse(list)
		if err != nil {
			return
		}
		all := fieldpath.NewSet()
		for _, e := range entries {
			all = all.Union(e.Set)
		}
		s := Migration{
			APIVersion: "v1", Entries: entries, Live: all.Leaves(), Desired: fieldpath.NewSet(),
			Terms: Terms{Adopting: how&1 != 0, Served: func(v string) bool { return how&2 == 0 || v == "v1" }},
		}
		if how&4 != 0 {
			s.Desired = all
		}
		folded := Migrate(s)
		for _, e := range entries {
			if e.Subresource != "" || s.Adopting || e.Class() != Helm || matches(embedderManagers, e.Manager) || e.isOurApply() {
				continue
			}
			if lost := e.Set.Intersection(s.Live).Difference(folded.Ours); !lost.Empty() {
				t.Errorf("of %s, %s is nobody's", e.Label(), lost)
			}
		}
		written, err := Encode(folded.Entries)
		if err != nil {
			t.Fatalf("can't be written: %v", err)
		}
		read, err := Parse(written)
		if err != nil {
			t.Fatalf("can't be read again: %v", err)
		}
		if show(read) != show(folded.Entries) {
			t.Errorf("is read again as\n%s\nwas\n%s", show(read), show(folded.Entries))
		}
	})
}
