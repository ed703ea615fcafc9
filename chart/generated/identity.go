package generated

import (
	"reflect"
	"slices"
	"strings"
)

// identityKeys are the fields that say whose an entry is. If one of them changes, it is another entry.
var identityKeys = []string{"name", "key", "id", "user", "username", "login", "email", "host"}

// hasIdentityOf reports whether a recorded item of a list has the same fields that say whose it is.
func hasIdentityOf(item versions[any], recorded any) bool {
	fields, _ := item.rendered.(map[string]any)
	old, _ := recorded.(map[string]any)
	for _, key := range identityKeys {
		_, ok := fields[key]
		oldValue, had := old[key]
		if ok != had || ok && !matchesFixed(versionsAt(item, key), oldValue) {
			return false
		}
	}
	return true
}

// versionsAt returns the versions of one field of maps.
func versionsAt(v versions[any], key string) versions[any] {
	get := func(value any) any {
		m, _ := value.(map[string]any)
		return m[key]
	}
	out := versions[any]{rendered: get(v.rendered)}
	for _, other := range v.rerendered {
		out.rerendered = append(out.rerendered, get(other))
	}
	return out
}

// recordedItem finds what is recorded of an item of a list whose items have no names: the only item with everything that is
// fixed in it. nil if there is none, or if several items are alike and anything else of the object has changed.
func (w *fieldWalker) recordedItem(i int, items []any, others [][]any, old []any) *any {
	if w.unchanged && i < len(old) {
		return &old[i]
	}
	item := versions[any]{rendered: items[i], rerendered: column(others, i)}
	if !hasFixedText(item) {
		return nil
	}
	alike := func(list []any) (found []*any) {
		for k := range list {
			if matchesFixed(item, list[k]) {
				found = append(found, &list[k])
			}
		}
		return found
	}
	isGenerated := func(k int) bool { return !versions[any]{rendered: items[k], rerendered: column(others, k)}.isStable() }
	if found := alike(old); len(found) == 1 && len(alike(items)) == 1 && sameIdentities(textsOf(items), textsOf(old), isGenerated) {
		return found[0]
	}
	return nil
}

// textsOf returns the texts of a list; others are empty.
func textsOf(list []any) []string {
	out := make([]string, len(list))
	for i, item := range list {
		out[i], _ = item.(string)
	}
	return out
}

// hasFixedText reports whether anything with a word in it is the same in all renderings of a value, so that it can be
// recognised.
func hasFixedText(v versions[any]) bool {
	switch rendered := v.rendered.(type) {
	case map[string]any:
		for key := range rendered {
			if hasFixedText(versionsAt(v, key)) {
				return true
			}
		}
		return false
	case string:
		texts, ok := textVersions(v)
		if !ok {
			return false
		}
		if texts.isStable() {
			return strings.ContainsFunc(rendered, isWord)
		}
		lines, _, _ := linesOf(texts)
		for i, l := range lines {
			if l == nil && strings.ContainsFunc(unitsOf(rendered)[i].text, isWord) || l != nil && l.hasWords() {
				return true
			}
		}
		return false
	}
	return v.isStable()
}

// matchesFixed reports whether a recorded value has everything that is the same in all renderings of a value.
func matchesFixed(v versions[any], recorded any) bool {
	if v.isStable() {
		return reflect.DeepEqual(v.rendered, recorded)
	}
	switch rendered := v.rendered.(type) {
	case map[string]any:
		old, ok := recorded.(map[string]any)
		if !ok || len(old) != len(rendered) {
			return false
		}
		for key := range rendered {
			if value, ok := old[key]; !ok || !matchesFixed(versionsAt(v, key), value) {
				return false
			}
		}
		return true
	case []any:
		old, ok := recorded.([]any)
		if !ok || len(old) != len(rendered) {
			return false
		}
		for i := range rendered {
			item := versions[any]{rendered: rendered[i]}
			for _, other := range v.rerendered {
				list, _ := other.([]any)
				if len(list) != len(rendered) {
					return false
				}
				item.rerendered = append(item.rerendered, list[i])
			}
			if !matchesFixed(item, old[i]) {
				return false
			}
		}
		return true
	}
	texts, ok := textVersions(v)
	text, isText := recorded.(string)
	if !ok || !isText {
		return !ok && !isStructure(recorded)
	}
	return matchesFixedText(texts, text)
}

// matchesFixedText is matchesFixed for texts.
func matchesFixedText(v versions[string], recorded string) bool {
	v.recorded = &recorded
	if plain, ok := decodedVersions(v, false); ok {
		return plain.recorded != nil && matchesFixedText(versions[string]{rendered: plain.rendered, rerendered: plain.rerendered}, *plain.recorded)
	}
	lines, _, ok := linesOf(v)
	old := unitsOf(recorded)
	units := unitsOf(v.rendered)
	if !ok || len(old) != len(units) {
		return false
	}
	for i, l := range lines {
		switch {
		case old[i].pem != units[i].pem:
			return false
		case l == nil && old[i].text != units[i].text:
			return false
		case l != nil && l.pem == "" && l.match(old[i].text) == nil:
			return false
		}
	}
	return true
}

// identityOf returns the key of a line or an argument that says whose the others are, such as user=root and --login=root;
// empty if it is another one.
func identityOf(text string) string {
	m := lineKey().FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	key := strings.ToLower(strings.Trim(m[1], `-"'`))
	for _, name := range identityKeys {
		if key == name || strings.HasSuffix(key, "-"+name) || strings.HasSuffix(key, "_"+name) || strings.HasSuffix(key, "."+name) {
			return m[1]
		}
	}
	return ""
}

// sameIdentities reports whether the lines or arguments that say whose the others are haven't changed. Those that are
// generated don't count, nor do recorded ones with their keys.
func sameIdentities(rendered, recorded []string, isGenerated func(i int) bool) bool {
	ignored := map[string]bool{}
	for i, text := range rendered {
		if key := identityOf(text); key != "" && isGenerated(i) {
			ignored[key] = true
		}
	}
	collect := func(texts []string) (out []string) {
		for _, text := range texts {
			if key := identityOf(text); key != "" && !ignored[key] {
				out = append(out, strings.TrimSpace(text))
			}
		}
		return out
	}
	return slices.Equal(collect(rendered), collect(recorded))
}
