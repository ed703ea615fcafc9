package diff

import (
	"encoding/json"
	"strconv"
	"strings"

	"deployer/internal/kube"
)

// listKeys names, for lists by the field they stand in, the fields that tell
// their items apart. The first set that fits all items is used.
// They are the keys of the built-in kinds (x-kubernetes-list-map-keys), and for
// lists without any, such as Ingress rules, what people call the items by.
var listKeys = map[string][][]string{
	"ports":                     {{"containerPort", "protocol"}, {"port", "protocol"}, {"port"}, {"name"}},
	"volumeMounts":              {{"mountPath"}},
	"volumeDevices":             {{"devicePath"}},
	"hostAliases":               {{"ip"}},
	"topologySpreadConstraints": {{"topologyKey", "whenUnsatisfiable"}},
	"conditions":                {{"type"}},
	"ownerReferences":           {{"uid"}},
	"paths":                     {{"path", "pathType"}, {"path"}},
	"rules":                     {{"host"}, {"name"}},
	"subjects":                  {{"kind", "namespace", "name"}, {"kind", "name"}},
	"items":                     {{"key"}, {"name"}},
	"matchExpressions":          {{"key", "operator"}},
	"tolerations":               {{"key", "operator", "effect"}, {"key", "effect"}},
	"endpoints":                 {{"port", "path"}, {"port"}},
	"groups":                    {{"name"}},
}

// anyKeys are tried for all other lists.
var anyKeys = [][]string{{"name"}, {"key"}, {"mountPath"}, {"topologyKey"}, {"ip"}, {"type"}, {"id"}}

// lists compares two lists: by the keys of their items if there are any, else
// by position around what they have in common.
func (w *walker) lists(p path, before, after []any, stated any) {
	wanted, _ := stated.([]any)
	if keys := keysFor(p, before, after); keys != nil {
		w.keyed(p, keys, before, after, wanted)
		return
	}
	w.positions(p, before, after, wanted)
}

// keysFor finds the key that identifies every item of both lists.
func keysFor(p path, before, after []any) []string {
	name := ""
	if len(p.names) > 0 {
		name = p.names[len(p.names)-1]
	}
	candidates := append(append([][]string{}, listKeys[name]...), anyKeys...)
	for _, keys := range candidates {
		if _, ok := byKey(keys, before); !ok {
			continue
		}
		if _, ok := byKey(keys, after); ok {
			return keys
		}
	}
	return nil
}

// byKey indexes a list. It fails when an item lacks a key or two share one.
func byKey(keys []string, list []any) (map[string]any, bool) {
	out := make(map[string]any, len(list))
	for _, item := range list {
		key, ok := keyOf(keys, item)
		if !ok {
			return nil, false
		}
		if _, twice := out[key]; twice {
			return nil, false
		}
		out[key] = item
	}
	return out, true
}

// toJSONKey writes an item's key as apply/fields does: name="web".
func keyOf(keys []string, item any) (string, bool) {
	m, ok := item.(map[string]any)
	if !ok {
		return "", false
	}
	parts := make([]string, 0, len(keys))
	for _, key := range keys {
		v := m[key]
		if d := kube.KeyDefault(key); v == nil && d != "" {
			v = d
		}
		switch v.(type) {
		case nil, map[string]any, []any:
			return "", false
		}
		data, err := json.Marshal(v)
		if err != nil {
			return "", false
		}
		parts = append(parts, key+"="+string(data))
	}
	return strings.Join(parts, ","), true
}

func (w *walker) keyed(p path, keys []string, before, after, stated []any) {
	old, _ := byKey(keys, before)
	now, _ := byKey(keys, after)
	wanted, ok := byKey(keys, stated)
	if !ok {
		wanted = nil
	}
	found := len(w.out)
	for _, item := range before {
		key, _ := keyOf(keys, item)
		w.value(p.item(key), item, now[key], wanted[key])
	}
	for _, item := range after {
		key, _ := keyOf(keys, item)
		if _, was := old[key]; !was {
			w.value(p.item(key), nil, item, wanted[key])
		}
	}
	if found != len(w.out) || w.partial {
		return
	}
	if a, b := order(keys, before), order(keys, after); !equal(a, b) {
		w.emit(Change{Path: p.text, Kind: Changed, Before: a, After: b}, p)
	}
}

// order lists the keys of items, to tell that only their order has changed.
func order(keys []string, list []any) []any {
	out := make([]any, len(list))
	for i, item := range list {
		key, _ := keyOf(keys, item)
		out[i] = key
	}
	return out
}

func (w *walker) positions(p path, before, after, stated []any) {
	if len(stated) != len(after) {
		stated = nil
	}
	at := func(list []any, i int) any {
		if i < len(list) {
			return list[i]
		}
		return nil
	}
	for _, gap := range gaps(len(before), len(after), func(i, j int) bool { return equal(before[i], after[j]) }) {
		i, j := gap.a0, gap.b0
		for ; i < gap.a1 && j < gap.b1; i, j = i+1, j+1 {
			w.value(p.item(strconv.Itoa(j)), before[i], after[j], at(stated, j))
		}
		for ; i < gap.a1; i++ {
			w.gone(p.item(strconv.Itoa(i)), before[i])
		}
		for ; j < gap.b1; j++ {
			w.value(p.item(strconv.Itoa(j)), nil, after[j], at(stated, j))
		}
	}
}

// gone tells of an item that went from a list that is compared as a whole.
func (w *walker) gone(p path, before any) {
	if before != nil {
		w.emit(Change{Path: p.text, Kind: Removed, Before: before}, p)
	}
}
