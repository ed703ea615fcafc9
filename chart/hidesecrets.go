package chart

import (
	"strings"

	"sigs.k8s.io/yaml"
)

// HideSecrets puts a comment in the place of every Secret of a manifest.
// (helm.sh/helm/v3/pkg/action/action.go, renderResources, hideSecret)
func HideSecrets(manifest string) string {
	var out strings.Builder
	for _, d := range splitManifest(manifest, "") {
		if d.isSecret() {
			out.WriteString("---\n# Source: " + d.source + "\n# HIDDEN: The Secret output has been suppressed\n")
			continue
		}
		out.WriteString("---\n" + strings.TrimPrefix(d.text, "\n"))
	}
	return out.String()
}

// isSecret reports whether a document is a Secret. A document that can't be read counts as
// one, so that it isn't shown.
func (d *manifestDocument) isSecret() bool {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	err := yaml.Unmarshal([]byte(d.text), &head)
	return err != nil || head.APIVersion == "v1" && head.Kind == "Secret"
}
