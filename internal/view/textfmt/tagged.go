package textfmt

import "reflect"

// RewriteTagged returns a copy of doc with its tagged text fields rewritten. Fields tagged
// `text:"free"` hold text that people or other programs wrote; free rewrites them. Fields
// tagged `text:"command"` hold command lines; command rewrites them. Other fields hold
// names, numbers and our own words, and stay the same. A tag on a list applies to its
// items. Nested structs have their own tags.
func RewriteTagged[T any](doc T, free, command func(string) string) T {
	return rewriteByTag(doc, map[string]func(string) string{"free": free, "command": command})
}

// Harmless returns a copy of doc that people can be shown: without escape sequences and other control characters, and
// with line ends only in text. Fields tagged `text:"indented"` keep the blanks before them.
func Harmless[T any](doc T) T {
	return rewriteByTag(doc, map[string]func(string) string{"": CleanLine, "indented": CleanIndentedLine, "free": CleanText, "command": CleanText})
}

// rewriteByTag rewrites each text field by the function for its tag; empty is for fields without a tag.
func rewriteByTag[T any](doc T, by map[string]func(string) string) T {
	v := reflect.ValueOf(&doc).Elem()
	v.Set(rewritten(v, by[""], by))
	return doc
}

func rewritten(v reflect.Value, change func(string) string, by map[string]func(string) string) reflect.Value {
	switch v.Kind() {
	case reflect.String:
		if change != nil {
			return reflect.ValueOf(change(v.String())).Convert(v.Type())
		}
	case reflect.Pointer:
		if !v.IsNil() {
			out := reflect.New(v.Type().Elem())
			out.Elem().Set(rewritten(v.Elem(), change, by))
			return out
		}
	case reflect.Slice:
		if !v.IsNil() {
			out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			for i := range v.Len() {
				out.Index(i).Set(rewritten(v.Index(i), change, by))
			}
			return out
		}
	case reflect.Struct:
		out := reflect.New(v.Type()).Elem()
		out.Set(v)
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				out.Field(i).Set(rewritten(v.Field(i), by[field.Tag.Get("text")], by))
			}
		}
		return out
	}
	return v
}
