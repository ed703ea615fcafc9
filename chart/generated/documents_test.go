package generated

import (
	"encoding/json"
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestDocumentsAreDecodedAsByTheLibrary: numbers too, of which it keeps the text.
func TestDocumentsAreDecodedAsByTheLibrary(t *testing.T) {
	for _, text := range []string{
		"a: 1\nb: -1\nc: 010\nd: 9223372036854775807\n",
		"a:\n- 1\n- b: 2\n  c: [3, x]\nd: {e: 4}\n",
		"a: 1.0\nb: 1e3\nc: 1000000000000000000000\n",
		"a: 1\nb:\n- c: 0.1\n",
		"a: !!str 1\n",
		"a: yes\nb: \"yes\"\nc: true\nd:\n",
		"kind: Secret\nstringData:\n  a: \"1\"\n  b: |\n    2\n",
	} {
		var want any
		if err := yaml.Unmarshal([]byte(text), &want, func(d *json.Decoder) *json.Decoder { d.UseNumber(); return d }); err != nil {
			t.Fatal(err)
		}
		if got, err := decode(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("decode(%q) = %#v, %v, want %#v", text, got, err, want)
		}
	}
}
