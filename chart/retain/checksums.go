package retain

import (
	"slices"
	"strings"

	"deployer/chart/internal/yamltext"
	"deployer/internal/kube"
)

// isChecksum reports whether a value is a hash of what the chart renders.
func (d *decider) isChecksum(v *value) bool {
	if d.in.Checksum == nil || !isHash(v.text()) {
		return false
	}
	_, ok := d.in.Checksum(v.places[0].key)
	return ok
}

// decideChecksums keeps hashes of what the chart renders as long as that, with its kept values, is what was recorded.
func (d *decider) decideChecksums(checksums []*value) {
	if len(checksums) == 0 {
		return
	}
	manifest, _ := d.finalTexts()
	for _, v := range checksums {
		reason := d.requestedRenewal([]*value{v})
		templates, _ := d.in.Checksum(v.places[0].key)
		if reason == "" && d.contentChanged(manifest, templates) {
			reason = "what it is the hash of has changed"
		}
		v.keepOrRenew(reason)
	}
}

// contentChanged reports whether what templates render differs from what was recorded. If it isn't known which templates, the
// ConfigMaps and Secrets of the release count.
func (d *decider) contentChanged(manifest string, templates []string) bool {
	base := d.lastSuccessful()
	if base < 0 {
		return true
	}
	of := func(manifest string, counts func(yamltext.Document, *object) bool) map[kube.ID]*node {
		out := map[kube.ID]*node{}
		for _, doc := range yamltext.SplitManifest(manifest, "") {
			for _, o := range parseDocument(doc.Text).objects {
				if counts(doc, o) {
					out[d.key(o.id)] = o.node
				}
			}
		}
		return out
	}
	isOfTemplates := func(doc yamltext.Document, _ *object) bool {
		return slices.ContainsFunc(templates, func(t string) bool { return strings.HasSuffix(doc.Source, "/"+strings.TrimPrefix(t, "/")) })
	}
	recorded := d.in.Earlier[base].Manifest
	now, before := of(manifest, isOfTemplates), of(recorded, isOfTemplates)
	if len(now) == 0 && len(before) == 0 {
		isConfig := func(_ yamltext.Document, o *object) bool { return o.isConfig() }
		now, before = of(manifest, isConfig), of(recorded, isConfig)
	}
	if len(now) != len(before) {
		return true
	}
	for id, n := range now {
		if !equal(n, before[id]) {
			return true
		}
	}
	return false
}
