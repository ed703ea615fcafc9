package hide

import (
	"strconv"
	"strings"

	"deployer/internal/lazyregexp"
)

var (
	// shownStep matches a step of the path of a field as sigs.k8s.io/structured-merge-diff writes it: dots, a name, or an item of a list.
	shownStep = lazyregexp.New(`\.|\[(?:"(?:[^"\\]|\\.)*"|[^\]"])*\]|"(?:[^"\\]|\\.)*"|[^.\[]+|.`)
	// itemValue matches what names an item of a list: [="value"] or [key="value",key=1].
	itemValue = lazyregexp.New(`([\[,])([^=,\[\]]*)=("(?:[^"\\]|\\.)*"|[^,\]]*)`)
)

// HidePath hides confidential values by which the path of a field names items of lists:
// spec.users[pin="1234"] becomes spec.users[pin=(hidden)]. A value is hidden if its field is confidential. It is also
// hidden if it contains a text of t, which may be nil, unless its key is "name", which identifies the item.
func (f Fields) HidePath(path string, t *Texts) string {
	if !strings.Contains(path, "[") {
		return path
	}
	var names []string
	return shownStep().ReplaceAllStringFunc(path, func(step string) string {
		switch {
		case step == ".":
		case step[0] == '[' && strings.HasSuffix(step, "]"):
			at := append(names[:len(names):len(names)], Item)
			names = at
			return itemValue().ReplaceAllStringFunc(step, func(item string) string {
				m := itemValue().FindStringSubmatch(item)
				if f.hidesItemValue(at, m[2], m[3], t) {
					return m[1] + m[2] + "=" + Placeholder
				}
				return item
			})
		default:
			name, err := strconv.Unquote(step)
			if err != nil {
				name = step
			}
			names = append(names, name)
		}
		return step
	})
}

// hidesItemValue reports whether a value that names the list item at a path is hidden: that of a key, or if the key is empty the item itself.
func (f Fields) hidesItemValue(at []string, key, value string, t *Texts) bool {
	if key != "" {
		at = append(at[:len(at):len(at)], key)
	}
	text, err := strconv.Unquote(value)
	if err != nil {
		text = value
	}
	_, found := t.hide(text)
	return f.IsHidden(at) || key != "name" && len(found) > 0
}
