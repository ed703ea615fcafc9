package annotation

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FuzzAnnotations checks that any value of any annotation is either read or an error, which has the name
// that the object uses.
func FuzzAnnotations(f *testing.F) {
	for _, text := range []string{"true", "10m", "-1", "50%", "state=ready,kind=Job,name=a,namespace=b", "apps/v1/Deployment/a/b", "regex(", "a,,b", "\x00"} {
		f.Add(text, "backend")
	}
	f.Fuzz(func(t *testing.T, text, wildcard string) {
		annotations := map[string]string{}
		for _, info := range All() {
			for _, name := range append([]string{info.Name}, info.Aliases...) {
				annotations[strings.Replace(name, "*", wildcard, 1)] = text
			}
		}
		_ = WithoutEffect(annotations, schema.GroupKind{Group: "apps", Kind: "Deployment"})
		for _, d := range OrderOf(annotations).Dependencies {
			if _, ok := annotations[d.Annotation]; !ok {
				t.Errorf("%q: a dependency of %q, which isn't there", text, d.Annotation)
			}
		}
		sensitive, errs := Sensitive.ReadAll(annotations)
		if len(sensitive)+len(errs) == 0 {
			t.Errorf("%q is neither read nor an error", text)
		}
		for _, err := range errs {
			if _, ok := annotations[err.Name]; !ok {
				t.Errorf("%q: the error names %q, which isn't there", text, err.Name)
			}
		}
	})
}
