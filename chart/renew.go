package chart

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Renewed writes documents of a manifest in other API versions and leaves all
// other bytes as they are. newer gives an object's other API version, or nothing.
// changes has a line for each document.
func Renewed(manifest string, newer func(*unstructured.Unstructured) string) (out string, changes []string) {
	var text strings.Builder
	for _, d := range split(manifest, "") {
		at := strings.Index(manifest, d.text)
		text.WriteString(manifest[:at])
		manifest = manifest[at+len(d.text):]
		renewed, change := d.renewed(newer)
		text.WriteString(renewed)
		if change != "" {
			changes = append(changes, change)
		}
	}
	return text.String() + manifest, changes
}

func (d document) renewed(newer func(*unstructured.Unstructured) string) (text, change string) {
	read := d.decode()
	if len(read.manifests) != 1 {
		return d.text, "" // a list, or no object: planning says what is wrong with it
	}
	obj := read.manifests[0].Object
	next := newer(obj)
	line := regexp.MustCompile(`(?m)^apiVersion:[ \t]*["']?` + regexp.QuoteMeta(obj.GetAPIVersion()) + `["']?[ \t\r]*(?:#.*)?$`)
	at := line.FindStringIndex(d.text)
	if next == "" || at == nil {
		return d.text, "" // what isn't written so, in JSON or as the item of a list, stays as well
	}
	return d.text[:at[0]] + "apiVersion: " + next + d.text[at[1]:],
		fmt.Sprintf("%s/%s: %s is not served any more, sent as %s", obj.GetKind(), obj.GetName(), obj.GetAPIVersion(), next)
}
