package definition

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/fields"
)

// A Loss is something that a definition allows and the next one doesn't: a served
// version, a field, a type. Objects lose their values there when they are next written.
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#field-pruning
type Loss struct {
	version string // empty for the whole kind
	path    string // spec.size; empty for the whole version
	text    string // what changes there; empty when it is removed
}

func (l Loss) String() string {
	out := strings.TrimSpace(l.version + " " + l.path)
	switch {
	case out == "":
		return l.text
	case l.text != "":
		out += " (" + l.text + ")"
	}
	return out
}

const (
	notServedAnyMore = "no longer served"
	lostConversion   = "conversion between versions by a webhook"
)

// place returns the place of the loss for placeCovers: a version or a field, which covers
// what is within it, or one property of it.
func (l Loss) place() string {
	if l.text == "" || l.text == notServedAnyMore {
		return l.version + " " + l.path
	}
	return l.version + " " + l.path + " (" + l.text + ")"
}

// placeCovers reports whether a place equals or contains another one.
func placeCovers(place, other string) bool {
	rest, ok := strings.CutPrefix(other, place)
	return ok && (rest == "" || strings.HasSuffix(place, " ") || strings.ContainsRune(".[ ", rune(rest[0])))
}

// Losses are what is lost where one definition replaces another.
type Losses []Loss

// mostListed is how many losses a text names.
const mostListed = 12

// String lists the losses, the first dozen of them.
func (l Losses) String() string {
	var names []string
	for i, loss := range l {
		if i == mostListed {
			names = append(names, fmt.Sprintf("and %d more", len(l)-i))
			break
		}
		names = append(names, loss.String())
	}
	return strings.Join(names, ", ")
}

// LossesByApply is LossesOf for a definition that is applied: if it states no conversion, the
// live one stays.
func LossesByApply(live, desired *unstructured.Unstructured) Losses {
	losses := LossesOf(live, desired)
	if conversion(desired) == "" {
		losses = slices.DeleteFunc(losses, func(l Loss) bool { return l.text == lostConversion })
	}
	return losses
}

// LossesOf lists what would be lost if a definition were replaced by another one.
// Rules about values, such as patterns and bounds, are not in it: they take
// nothing away from what is stored.
func LossesOf(live, next *unstructured.Unstructured) Losses {
	l := &lossFinder{}
	if was, is := Kind(live).Kind, Kind(next).Kind; was != is {
		l.add("", fmt.Sprintf("kind %s", was))
	}
	if was, is := conversion(live), conversion(next); was == "Webhook" && is != was {
		l.add("", lostConversion)
	}
	for _, was := range Versions(live) {
		l.version = fields.AsString(was["name"])
		is := Version(next, l.version)
		if was["served"] == true && (is == nil || is["served"] != true) {
			l.add("", notServedAnyMore)
			continue
		}
		if is == nil {
			continue // not served before, so nobody wrote it; the API server refuses to drop a stored version
		}
		for _, sub := range []string{"status", "scale"} {
			if hasSubresource(was, sub) && !hasSubresource(is, sub) {
				l.add("", "subresource "+sub)
			}
		}
		// A schema needn't contain the fields that every object has.
		l.compareNodes("", schemaOf(was), schemaOf(is), "apiVersion", "kind", "metadata")
	}
	return l.found
}

func hasSubresource(version map[string]any, name string) bool {
	_, has, _ := unstructured.NestedFieldNoCopy(version, "subresources", name)
	return has
}

func schemaOf(version map[string]any) map[string]any {
	node, _, _ := unstructured.NestedFieldNoCopy(version, "schema", "openAPIV3Schema")
	m, _ := node.(map[string]any)
	return m
}

// conversion is the conversion strategy that a definition states; empty, which means None,
// when it states none.
func conversion(crd *unstructured.Unstructured) string {
	strategy, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy")
	return strategy
}

// A lossFinder compares two definitions.
type lossFinder struct {
	version string // that it is at; empty for the whole kind
	found   Losses
}

func (l *lossFinder) add(path, text string) {
	l.found = append(l.found, Loss{l.version, path, text})
}

// compareNodes compares two nodes of structural schemas at one path.
func (l *lossFinder) compareNodes(path string, was, is map[string]any, except ...string) {
	if lost := lostTypes(was, is); lost != "" {
		l.add(path, lost)
		return
	}
	if was["nullable"] == true && is["nullable"] != true && !preservesUnknownFields(is) {
		l.add(path, "nullable")
	}
	for _, value := range lostValues(was, is) {
		l.add(path, "value "+value)
	}
	if preservesUnknownFields(was) && !preservesUnknownFields(is) && is["additionalProperties"] != true {
		l.add(fields.Join(path, "*"), "")
	}
	l.compareProperties(path, was, is, except)
	l.compareChildren(path, was, is)
}

func (l *lossFinder) compareProperties(path string, was, is map[string]any, except []string) {
	had, _ := was["properties"].(map[string]any)
	has, _ := is["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(had)) {
		field, _ := had[name].(map[string]any)
		next, stays := has[name].(map[string]any)
		value, open := is["additionalProperties"].(map[string]any)
		switch {
		case slices.Contains(except, name):
		case stays:
			l.compareNodes(fields.Join(path, name), field, next)
		case open:
			l.compareNodes(fields.Join(path, name), field, value)
		case preservesUnknownFields(is), is["additionalProperties"] == true:
		default:
			l.add(fields.Join(path, name), "")
		}
	}
}

// compareChildren compares the schemas of map values and of list items.
func (l *lossFinder) compareChildren(path string, was, is map[string]any) {
	for _, child := range [][2]string{{"additionalProperties", "[*]"}, {"items", "[]"}} {
		key, sign := child[0], child[1]
		had, some := was[key].(map[string]any)
		has, still := is[key].(map[string]any)
		switch {
		case some && still:
			l.compareNodes(path+sign, had, has)
		case !some && was[key] != true, is[key] == true, preservesUnknownFields(is):
		default:
			l.add(path+sign, "")
		}
	}
}

func preservesUnknownFields(node map[string]any) bool {
	return node["x-kubernetes-preserve-unknown-fields"] == true
}

// typesOf are the types of values that a node allows; nil means any.
func typesOf(node map[string]any) []string {
	if node["x-kubernetes-int-or-string"] == true {
		return []string{"integer", "string"}
	}
	switch t := fields.AsString(node["type"]); t {
	case "":
		return nil
	case "number":
		return []string{"integer", "number"}
	default:
		return []string{t}
	}
}

// lostTypes describes the types that are no longer allowed; empty when all still are.
func lostTypes(was, is map[string]any) string {
	next := typesOf(is)
	if next == nil {
		return ""
	}
	had := typesOf(was)
	if had != nil && !slices.ContainsFunc(had, func(t string) bool { return !slices.Contains(next, t) }) {
		return ""
	}
	from := strings.Join(had, " or ")
	if from == "" {
		from = "any"
	}
	return fmt.Sprintf("type %s -> %s", from, strings.Join(next, " or "))
}

// lostValues are those of an enumeration that the next one lacks.
func lostValues(was, is map[string]any) []string {
	had, _ := was["enum"].([]any)
	has, some := is["enum"].([]any)
	var out []string
	for _, value := range had {
		if some && !slices.ContainsFunc(has, func(v any) bool { return fields.Equal(v, value) }) {
			out = append(out, fmt.Sprintf("%q", fmt.Sprint(value)))
		}
	}
	return out
}

// digest is a digest of all that LossesOf compares.
func digest(crd *unstructured.Unstructured) string {
	versions := map[string]any{}
	for _, v := range Versions(crd) {
		versions[fields.AsString(v["name"])] = []any{v["served"], hasSubresource(v, "status"), hasSubresource(v, "scale"), comparedSchema(schemaOf(v))}
	}
	data, err := json.Marshal([]any{Kind(crd).Kind, conversion(crd) == "Webhook", versions})
	if err != nil {
		return "" // equal to none
	}
	sum := sha256.Sum256(data)
	return base64.RawStdEncoding.EncodeToString(sum[:12])
}

// comparedSchema returns the parts of a schema node that LossesOf reads.
func comparedSchema(node map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range node {
		switch key {
		case "type", "enum", "nullable", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string":
			if value != false {
				out[key] = value
			}
		case "items", "additionalProperties":
			out[key] = value
			if child, ok := value.(map[string]any); ok {
				out[key] = comparedSchema(child)
			}
		case "properties":
			properties, _ := value.(map[string]any)
			compared := map[string]any{}
			for name, child := range properties {
				m, _ := child.(map[string]any)
				compared[name] = comparedSchema(m)
			}
			out[key] = compared
		}
	}
	return out
}
