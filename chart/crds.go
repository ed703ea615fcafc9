package chart

import (
	"fmt"
	"reflect"

	helmchart "helm.sh/helm/v3/pkg/chart"

	"deployer/chart/internal/yamltext"
	"deployer/internal/kube"
)

// CRDs returns the documents in crds/ of a chart and its subcharts, which Helm
// never templates, in Helm's order. An object that is in several of these files
// is returned once: a subchart under two aliases brings its files twice. Where
// the definitions differ, the first one counts, as with Helm, which passes over
// what exists already (helm.sh/helm/v3/pkg/action/install.go, installCRDs);
// warnings says so.
func CRDs(c *helmchart.Chart) (manifests []Manifest, warnings []string, err error) {
	return (&Parser{}).CRDs(c)
}

// CRDs is the function CRDs for the charts of several revisions, which mostly have the same definitions.
func (p *Parser) CRDs(c *helmchart.Chart) (manifests []Manifest, warnings []string, err error) {
	var documents []yamltext.Document
	for _, crd := range c.CRDObjects() {
		documents = append(documents, yamltext.SplitManifest(string(crd.File.Data), crd.Filename)...)
	}
	all, err := parseDocuments(documents, p)
	if err != nil {
		return nil, nil, err
	}
	first := map[kube.ID]Manifest{}
	for _, m := range all {
		id := kube.IDOf(m.Object)
		used, isDuplicate := first[id]
		switch {
		case !isDuplicate || id.Name == "":
			first[id] = m
			manifests = append(manifests, m)
		case !reflect.DeepEqual(used.Object.Object, m.Object.Object):
			warnings = append(warnings, fmt.Sprintf("%s is defined in %s and differently in %s: the first one is used, as in Helm", id, used.Source, m.Source))
		}
	}
	return manifests, warnings, nil
}
