package generated

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// itemKeys are the fields by which people tell the items of a list apart.
var itemKeys = []string{"name", "key", "id", "user", "username", "login", "email", "mountPath", "containerPort", "port", "host", "path"}

// itemLabels labels the items of a list by the first key that all of them have, each with another
// value; nil if there is none.
func itemLabels(items []any) []string {
	for _, key := range itemKeys {
		seen := map[string]bool{}
		var out []string
		for _, item := range items {
			m, _ := item.(map[string]any)
			v, ok := m[key]
			if !ok || isStructure(v) || seen[fmt.Sprint(v)] {
				break
			}
			seen[fmt.Sprint(v)] = true
			if s, isText := v.(string); isText {
				v = strconv.Quote(s)
			}
			out = append(out, fmt.Sprintf("%s=%v", key, v))
		}
		if len(out) == len(items) {
			return out
		}
	}
	return nil
}

// column returns the item at one position of each list.
func column[T any](lists [][]T, at int) []T {
	out := make([]T, len(lists))
	for i, list := range lists {
		out[i] = list[at]
	}
	return out
}

// compareItems compares the items of lists; items are those of the rendered one.
func (w *fieldWalker) compareItems(path []any, name string, items []any, v versions[any]) {
	old, _ := v.recordedOrZero().([]any)
	var others [][]any
	for _, other := range v.rerendered {
		list, ok := other.([]any)
		if !ok || len(list) != len(items) {
			w.reportRenewed(name, "it has another number of items each time")
			return
		}
		others = append(others, list)
	}
	if isPermutation(items, others) {
		w.keepOrder(path, name, itemTexts(items), itemTexts(old))
		return
	}
	keys, oldKeys := itemLabels(items), itemLabels(old)
	others, shuffled := aligned(keys, others, itemLabels)
	if shuffled {
		w.keepOrder(path, name, keys, oldKeys)
	}
	for i := range items {
		item := versions[any]{rendered: items[i], rerendered: column(others, i)}
		label := strconv.Itoa(i)
		if keys != nil {
			label = keys[i]
			if at := slices.Index(oldKeys, keys[i]); at >= 0 && hasIdentityOf(item, old[at]) {
				item.recorded = &old[at]
			}
		} else {
			item.recorded = w.recordedItem(i, items, others, old)
		}
		inItem := *w
		if len(old) > 0 && item.recorded == nil {
			inItem.missing = "no recorded entry of the list has everything that is fixed in this one"
		}
		inItem.compare(append(path[:len(path):len(path)], i), name+"["+label+"]", item)
		w.edits, w.orders = inItem.edits, inItem.orders
	}
}

// isPermutation reports whether a list has the same items each time, in another order.
func isPermutation(a []any, others [][]any) bool {
	texts := itemTexts(a)
	for _, other := range others {
		if _, ok := positionsOf(itemTexts(other), texts); !ok {
			return false
		}
	}
	return len(others) > 0
}

// itemTexts writes the items of a list as JSON.
func itemTexts(list []any) []string {
	var out []string
	for _, item := range list {
		data, _ := json.Marshal(item) // of what was read as JSON
		out = append(out, string(data))
	}
	return out
}
