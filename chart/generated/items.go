package generated

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// itemKeys are the fields that tell the items of a list apart, as people do.
var itemKeys = []string{"name", "key", "id", "mountPath", "containerPort", "port", "host", "path"}

// itemLabels names the items of a list by the first key that tells them apart; nil
// when none does.
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

// column is what stands at one place of each list.
func column[T any](lists [][]T, at int) []T {
	out := make([]T, len(lists))
	for i, list := range lists {
		out[i] = list[at]
	}
	return out
}

func (w *fieldWalker) compareItems(path []any, name string, a []any, rerendered []any, recorded any, hasRecorded bool) {
	old, _ := recorded.([]any)
	var others [][]any
	for _, other := range rerendered {
		list, ok := other.([]any)
		if !ok || len(list) != len(a) {
			w.reportRenewed(name, "it has another number of items each time")
			return
		}
		others = append(others, list)
	}
	if isPermutation(a, others) {
		w.keepOrder(path, name, itemTexts(a), itemTexts(old), hasRecorded)
		return
	}
	keys, oldKeys := itemLabels(a), itemLabels(old)
	others, shuffled := aligned(keys, others, itemLabels)
	if shuffled {
		w.keepOrder(path, name, keys, oldKeys, hasRecorded)
	}
	for i, item := range a {
		alternatives := column(others, i)
		label := strconv.Itoa(i)
		var was any
		ok := false
		switch {
		case keys != nil:
			label = keys[i]
			if at := slices.Index(oldKeys, keys[i]); at >= 0 {
				was, ok = old[at], true
			}
		case len(old) == len(a):
			was, ok = old[i], true
		default:
			was, ok = matchingItem(item, alternatives, old)
		}
		w.compare(append(path[:len(path):len(path)], i), name+"["+label+"]", item, alternatives, was, hasRecorded && ok)
	}
}

// matchingItem finds the one text of a list that has the same surroundings, such as
// --token=… among arguments.
func matchingItem(item any, rerendered []any, old []any) (any, bool) {
	text, ok := item.(string)
	if !ok {
		return nil, false
	}
	line := segmentsOf(text, textsIn(rerendered))
	var found []any
	for _, candidate := range old {
		if s, isText := candidate.(string); isText && line.hasWords() && line.match(s) != nil {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		return nil, false
	}
	return found[0], true
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

func itemTexts(list []any) []string {
	var out []string
	for _, item := range list {
		data, _ := json.Marshal(item) // of what was read as JSON
		out = append(out, string(data))
	}
	return out
}
