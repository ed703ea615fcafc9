package hide

import "reflect"

// Document gives a copy of a document for programs in which the text of some
// fields is another: of those with the tag `text:"free"`, which is what people or
// machines elsewhere have written, and of those with `text:"command"`, command
// lines. Text of other fields is names, words of ours and numbers: what programs
// look for stays as it is. A tag counts for the items of lists too; documents in
// documents have their own.
func Document[T any](doc T, free, command func(string) string) T {
	v := reflect.ValueOf(&doc).Elem()
	v.Set(rewritten(v, nil, map[string]func(string) string{"free": free, "command": command}))
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
