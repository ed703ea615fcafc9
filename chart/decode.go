package chart

import (
	"errors"
	"fmt"
	"strings"

	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"deployer/chart/internal/yamltext"
)

// decode reads the objects in a document.
func decode(d yamltext.Document) ([]Manifest, error) {
	objects, err := objectsOf(d)
	if err != nil {
		return nil, &DocumentError{Source: d.Source, Line: d.Line + d.LinesBefore, Err: err}
	}
	var out []Manifest
	for _, o := range objects {
		out = append(out, Manifest{Source: d.Source, Object: o})
	}
	return out, nil
}

// objectsOf reads a document as Helm does: YAML 1.1, so that yes and on are true. Of a repeated key the last value counts.
func objectsOf(d yamltext.Document) ([]*unstructured.Unstructured, error) {
	data, err := yaml.YAMLToJSON([]byte(d.Text))
	if err != nil {
		return nil, shiftedYAMLError(err, -d.LinesBefore)
	}
	var value any
	if err := utiljson.Unmarshal(data, &value); err != nil || value == nil { // whole numbers are int64, as from the API server
		return nil, err
	}
	content, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("it is not an object, but plain text, a number or a YAML list")
	}
	return flattenLists(content, nil)
}

// flattenLists returns the object, or the objects in it when it is a list (v1 List,
// ConfigMapList, …). Members of a typed list may leave out what they are.
// The error lists all problems.
func flattenLists(content map[string]any, parent map[string]any) ([]*unstructured.Unstructured, error) {
	if parent != nil {
		inheritListKind(content, parent)
	}
	kind, _ := content["kind"].(string)
	items, isList := content["items"].([]any)
	if stated, ok := content["items"]; ok && stated == nil {
		isList = true // as with Helm: a template has rendered no members
	}
	if !strings.HasSuffix(kind, "List") || !isList {
		object := &unstructured.Unstructured{Object: content}
		return []*unstructured.Unstructured{object}, checkIdentity(content)
	}
	var out []*unstructured.Unstructured
	var problems []error
	for i, item := range items {
		member, ok := item.(map[string]any)
		if !ok {
			problems = append(problems, fmt.Errorf("item %d of %s is not an object", i+1, kind))
			continue
		}
		objects, err := flattenLists(member, content)
		if err != nil {
			problems = append(problems, fmt.Errorf("item %d of %s: %w", i+1, kind, err))
		}
		out = append(out, objects...)
	}
	return out, errors.Join(problems...)
}

// inheritListKind names the kind of a member of a typed list by its list, as client-go
// does. (k8s.io/apimachinery/pkg/apis/meta/v1/unstructured, decodeToList)
func inheritListKind(content, parent map[string]any) {
	listKind, _ := parent["kind"].(string)
	if itemKind := strings.TrimSuffix(listKind, "List"); itemKind != "" && content["kind"] == nil {
		content["kind"] = itemKind
		if content["apiVersion"] == nil {
			content["apiVersion"] = parent["apiVersion"]
		}
	}
}

// isHook reports whether the metadata is that of a hook. A hook may have a generateName: no
// later revision looks for it.
func isHook(metadata map[string]any) bool {
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations[helmrelease.HookAnnotation] != nil
}

// checkIdentity checks that an object has an apiVersion, a kind and a name.
func checkIdentity(content map[string]any) error {
	kind, _ := content["kind"].(string)
	version, _ := content["apiVersion"].(string)
	var lacking []string
	if version == "" {
		lacking = append(lacking, "apiVersion")
	}
	if kind == "" {
		lacking = append(lacking, "kind")
	}
	metadata, ok := content["metadata"].(map[string]any)
	if !ok && content["metadata"] != nil {
		return errors.New("its metadata is not a map")
	}
	name, isText := metadata["name"].(string)
	switch generated, _ := metadata["generateName"].(string); {
	case metadata["name"] != nil && !isText:
		return errors.New("its metadata.name is not text; put it in quotes")
	case name == "" && generated != "" && !isHook(metadata):
		return fmt.Errorf("%s has generateName only; objects of a release need a metadata.name to be found again", kind)
	case name == "" && generated == "":
		lacking = append(lacking, "metadata.name")
	}
	if len(lacking) == 0 {
		return nil
	}
	what := "the object"
	if kind != "" {
		what = strings.TrimSuffix(kind+"/"+name, "/")
	}
	return fmt.Errorf("%s has no %s", what, strings.Join(lacking, ", no "))
}
