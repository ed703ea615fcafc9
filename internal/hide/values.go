package hide

// Values returns a copy of values without those of confidential keys, however short they are.
func Values(values map[string]any) map[string]any {
	out, _ := withoutConfidential(values, false).(map[string]any)
	return out
}

// withoutConfidential is Values for a value below a key that is confidential or isn't.
func withoutConfidential(v any, confidential bool) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for field, item := range v {
			key := keyOf(v, field)
			out[field] = withoutConfidential(item, classifyKey(key) == confidentialKey || confidential && !referenceWords().MatchString(wordsOf(field)))
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = withoutConfidential(item, confidential)
		}
		return out
	case string:
		if confidential && v != "" {
			return Placeholder
		}
	default:
		if _, isNumber := numberText(v); isNumber && confidential {
			return Placeholder
		}
	}
	return v
}
