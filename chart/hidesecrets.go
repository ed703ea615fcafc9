package chart

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/chart/internal/yamltext"
)

// HideSecrets puts a comment in the place of every Secret of a manifest.
// (helm.sh/helm/v3/pkg/action/action.go, renderResources, hideSecret)
func HideSecrets(manifest string) string {
	var out strings.Builder
	for _, d := range yamltext.SplitManifest(manifest, "") {
		if isSecret(d) {
			out.WriteString("---\n# Source: " + d.Source + "\n# HIDDEN: The Secret output has been suppressed\n")
			continue
		}
		out.WriteString("---\n" + strings.TrimPrefix(d.Text, "\n"))
	}
	return out.String()
}

// isSecret reports whether a document is a Secret, or a list with one. A document that can't be
// read counts as one, so that it isn't shown.
func isSecret(d yamltext.Document) bool {
	objects, err := objectsOf(d)
	if err != nil && len(objects) == 0 {
		return true
	}
	return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetAPIVersion() == "v1" && o.GetKind() == "Secret"
	})
}
