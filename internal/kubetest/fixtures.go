package kubetest

import (
	"os"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Object reads the YAML of an object. Its numbers are float64.
func Object(t testing.TB, manifest string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
		t.Fatalf("the manifest %s: %v", manifest, err)
	}
	return obj
}

// SeedVariable names the environment variable with the seed of random tests.
// Without it they are the same each time; make test-long draws one and prints it.
const SeedVariable = "DEPLOYER_TEST_SEED"

const fixedSeed = 7

// Seed is what random tests draw from. A test that fails says how to repeat it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(fixedSeed)
	if text := os.Getenv(SeedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", SeedVariable, err)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("repeat with %s=%d", SeedVariable, seed)
		}
	})
	return seed
}
