package manifest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"deployer/apply/fields"
)

// dropDuplicates removes duplicates from a list whose items must be unique, if that changes
// nothing; other duplicates are problems.
func (n *normaliser) dropDuplicates(path string, list []any, ref schema.TypeRef) []any {
	atom, ok := n.rules.Type.Schema.Resolve(ref)
	if !ok || atom.List == nil || atom.List.ElementRelationship != schema.Associative {
		return list
	}
	if len(atom.List.Keys) == 0 {
		return uniqueSet(list)
	}
	first, doubled := map[string]int{}, len(n.Duplicates)
	out := make([]any, 0, len(list))
	for _, item := range list {
		key, ok := itemKey(item, atom.List.Keys)
		at, seen := first[key]
		if !ok || !seen {
			first[key] = len(out)
			out = append(out, item)
			continue
		}
		if reflect.DeepEqual(out[at], item) && !(isEnv(path) && fields.UsesVariable(item, fields.ItemName(item))) {
			continue
		}
		out = n.mergeDuplicate(duplicateItem{path: path, key: key, item: item, out: out, at: at})
		first = reindex(out, atom.List.Keys)
	}
	if len(n.Duplicates) > doubled && len(out) < len(list) {
		// A removed item may be the reason why two others were kept.
		n.Duplicates = n.Duplicates[:doubled]
		return n.dropDuplicates(path, out, ref)
	}
	return out
}

func uniqueSet(list []any) []any {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(list), func(item any) bool {
		data, err := json.Marshal(item)
		repeated := err == nil && seen[string(data)]
		seen[string(data)] = true
		return repeated
	})
}

func itemKey(item any, keys []string) (string, bool) {
	m, ok := item.(map[string]any)
	if !ok {
		return "", false
	}
	parts := make([]string, len(keys))
	for i, k := range keys {
		data, err := json.Marshal(m[k])
		if err != nil {
			return "", false
		}
		parts[i] = k + "=" + string(data)
	}
	return strings.Join(parts, ","), true
}

func reindex(out []any, keys []string) map[string]int {
	first := map[string]int{}
	for i, item := range out {
		if key, ok := itemKey(item, keys); ok {
			first[key] = i
		}
	}
	return first
}

// duplicateItem is an item whose key an earlier, different one has.
type duplicateItem struct {
	path string // of the list
	key  string
	item any
	out  []any // what is kept so far
	at   int   // of the earlier item in out
}

func (n *normaliser) mergeDuplicate(c duplicateItem) []any {
	switch {
	case isEnv(c.path):
		return n.mergeEnv(c)
	case lastName(c.path) == "hostAliases":
		return n.mergeHosts(c)
	}
	return n.keepDuplicate(c, "two different items have %s", c.key)
}

func isEnv(path string) bool { return lastName(path) == "env" }

func lastName(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// keepDuplicate keeps both items, because only the server knows what they mean.
func (n *normaliser) keepDuplicate(c duplicateItem, format string, args ...any) []any {
	if n.rules.DropDuplicates {
		return c.out
	}
	n.Duplicates = append(n.Duplicates, Note{c.path, fmt.Sprintf(format, args...)})
	return append(c.out, c.item)
}

// mergeEnv keeps only the last value of a variable, at the last position, as the
// kubelet would. If the later one, or another variable between the two, uses the earlier one,
// both are kept, because the positions mean different things.
// k8s.io/kubernetes/pkg/kubelet/kubelet_pods.go, makeEnvironmentVariables
func (n *normaliser) mergeEnv(c duplicateItem) []any {
	name := fields.ItemName(c.item)
	for _, item := range c.out[c.at+1:] {
		if fields.UsesVariable(item, name) {
			return n.keepDuplicate(c, "%s is set twice, and %s between the two uses it", name, fields.ItemName(item))
		}
	}
	if fields.UsesVariable(c.item, name) {
		return n.keepDuplicate(c, "%s is set twice, and the later one uses the earlier one", name)
	}
	n.addNote(c.path, "%s is set twice: the last one is sent", name)
	out := append(c.out[:c.at:c.at], c.out[c.at+1:]...)
	return append(out, c.item)
}

// mergeHosts merges the names of one address, as in a hosts file.
func (n *normaliser) mergeHosts(c duplicateItem) []any {
	a, _ := c.out[c.at].(map[string]any)
	b, _ := c.item.(map[string]any)
	names, _ := a["hostnames"].([]any)
	more, _ := b["hostnames"].([]any)
	a["hostnames"] = uniqueSet(append(append([]any{}, names...), more...))
	n.addNote(c.path, "%s is listed twice: sent once with all names", c.key)
	return c.out
}
