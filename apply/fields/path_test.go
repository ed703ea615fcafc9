package fields

import (
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func TestString(t *testing.T) {
	p := fieldpath.MakePathOrDie("spec", "containers", fieldpath.KeyByFields("name", "app"), "env", fieldpath.KeyByFields("name", "A"), "value")
	if got, want := String(p), `spec.containers[name="app"].env[name="A"].value`; got != want {
		t.Errorf("String = %s, want %s", got, want)
	}
}
