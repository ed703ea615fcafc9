package hide

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// isCustom reports whether an object may be a custom resource: its API group has a
// domain that isn't Kubernetes' own.
func isCustom(obj *unstructured.Unstructured) bool {
	group := obj.GroupVersionKind().Group
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
}

// addSecretFields adds the fields of a custom resource from which its controller makes Secrets:
// stringData at any depth, data of a Secret template, and the data of embedded Secrets.
// https://github.com/bitnami-labs/sealed-secrets#sealedsecret-templates
// https://external-secrets.io/latest/guides/templating/
func (f *Fields) addSecretFields(names []string, v any) {
	switch v := v.(type) {
	case map[string]any:
		secret := len(names) > 0 && v["kind"] == "Secret" && v["apiVersion"] == "v1"
		for key, item := range v {
			at := append(names[:len(names):len(names)], key)
			if key == "stringData" || key == "data" && (secret || inTemplate(names)) {
				f.patterns = append(f.patterns, append(at[:len(at):len(at)], anyStep))
				continue
			}
			f.addSecretFields(at, item)
		}
	case []any:
		for _, item := range v {
			f.addSecretFields(append(names[:len(names):len(names)], Item), item)
		}
	}
}

// inTemplate reports whether a path ends at a template of a Secret, or at an item of
// a list of such templates.
func inTemplate(names []string) bool {
	last := len(names) - 1
	if last >= 0 && names[last] == Item {
		last--
	}
	return last >= 0 && (names[last] == "template" || names[last] == "secretTemplate" || strings.HasSuffix(names[last], "ecretTemplates"))
}
