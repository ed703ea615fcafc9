package main

import (
	"fmt"

	"deployer/internal/program"
)

// A knownPlugin is one that people have and that isn't installed here.
type knownPlugin struct {
	source  string // what plugin install takes
	instead string // what does the same without it; empty when nothing does
}

// knownPlugins by the word they are called by. Nothing that is suggested deletes
// or overrides anything.
var knownPlugins = map[string]knownPlugin{
	"2to3":             {"https://github.com/helm/helm-2to3", ""},
	"cm-push":          {"https://github.com/chartmuseum/helm-push", "for an OCI registry: " + program.Name + " push CHART oci://REGISTRY/PATH"},
	"dashboard":        {"https://github.com/komodorio/helm-dashboard", program.Name + " list, " + program.Name + " status NAME, " + program.Name + " history NAME"},
	"diff":             {"https://github.com/databus23/helm-diff", program.Name + " plan NAME CHART"},
	"drift":            {"https://github.com/nikhilsbhat/helm-drift", program.Name + " plan NAME --drift"},
	"gcs":              {"https://github.com/hayorov/helm-gcs", "for an OCI registry: " + program.Name + " push CHART oci://REGISTRY/PATH"},
	"git":              {"https://github.com/aslafy-z/helm-git", "a chart in a directory: git clone, then " + program.Name + " upgrade NAME ./PATH"},
	"images":           {"https://github.com/nikhilsbhat/helm-images", program.Name + " template CHART, which shows them all"},
	"mapkubeapis":      {"https://github.com/helm/helm-mapkubeapis", "no record has to be changed: an upgrade finds objects under whatever version the cluster has"},
	"push-artifactory": {"https://github.com/belitre/helm-push-artifactory-plugin", "for an OCI registry: " + program.Name + " push CHART oci://REGISTRY/PATH"},
	"s3":               {"https://github.com/hypnoglow/helm-s3", "for an OCI registry: " + program.Name + " push CHART oci://REGISTRY/PATH"},
	"schema":           {"https://github.com/losisin/helm-values-schema-json", ""},
	"schema-gen":       {"https://github.com/karuppiah7890/helm-schema-gen", ""},
	"secrets":          {"https://github.com/jkroepke/helm-secrets", program.Name + " upgrade NAME CHART -f ENCRYPTED: values files of SOPS and age are decrypted"},
	"unittest":         {"https://github.com/helm-unittest/helm-unittest", ""},
}

// pluginNotInstalled is the error for a known plugin that isn't there; nil for any
// other word.
func pluginNotInstalled(word string) error {
	known, ok := knownPlugins[word]
	if !ok {
		return nil
	}
	hint := "to install it:     " + program.Name + " plugin install " + known.source
	if known.instead != "" {
		hint = "without a plugin:  " + known.instead + "\n" + hint
	}
	return program.WithHint(fmt.Errorf("%q is a plugin that is not installed", word), hint)
}
