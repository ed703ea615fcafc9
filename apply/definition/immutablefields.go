package definition

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/apply/fields"
	"deployer/apply/verify"
	"deployer/internal/lazyregexp"
)

// ImmutableFields returns the fields that the causes of a refusal say are immutable; none if
// any cause is something else, which would be wrong in a new object too. A violated rule of the
// definition counts as immutability if it looks at the old value, whatever its message says.
// version is the entry in spec.versions; nil for a kind without a definition.
func ImmutableFields(causes []metav1.StatusCause, version map[string]any) []string {
	var out []string
	for _, c := range causes {
		transition, found := ruleOf(version, c)
		if found && !transition || !found && !verify.SaysImmutable(c.Message) {
			return nil
		}
		out = append(out, c.Field)
	}
	return out
}

// pathElements matches the elements of a field's path: spec, things, [0], [key].
var pathElements = lazyregexp.New(`\[[^\]]*\]|[^.\[]+`)

// ruleOf finds the rule that a cause comes from, and says whether it looks at
// the old value. https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#transition-rules
func ruleOf(version map[string]any, cause metav1.StatusCause) (transition, found bool) {
	node := schemaOf(version)
	for _, element := range pathElements().FindAllString(strings.TrimPrefix(cause.Field, "<nil>"), -1) {
		if strings.HasPrefix(element, "[") {
			items, isList := node["items"].(map[string]any)
			if node, _ = node["additionalProperties"].(map[string]any); isList {
				node = items
			}
			continue
		}
		properties, _ := node["properties"].(map[string]any)
		node, _ = properties[element].(map[string]any)
	}
	rules, _ := node["x-kubernetes-validations"].([]any)
	for _, r := range rules {
		m, _ := r.(map[string]any)
		rule := fields.AsString(m["rule"])
		message := cmp.Or(fields.AsString(m["message"]), "failed rule: "+rule)
		if m["messageExpression"] != nil || strings.Contains(cause.Message, strings.TrimSpace(message)) {
			transition, found = transition || strings.Contains(rule, "oldSelf"), true
		}
	}
	return transition, found
}
