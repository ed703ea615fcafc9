package chart

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"unicode"

	"helm.sh/helm/v3/pkg/strvals"
)

// SetError says that a --set flag, or a similar one, can't be parsed. It contains the key
// but not the value, which may be a secret.
type SetError struct {
	Flag ValuesSourceKind
	Key  string // up to the first "="; empty when there is none
	Err  error
}

func (e *SetError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("failed parsing %s data: %v", e.Flag, e.Err) // Helm's words
	}
	return fmt.Sprintf("failed parsing %s data: %s: %v", e.Flag, e.Key, e.Err)
}

func (e *SetError) Unwrap() error { return e.Err }

// set writes the values of a --set flag into values.
func (r *valuesReader) set(values map[string]any, s ValuesSource) error {
	var err, unread error
	switch s.Kind {
	case SetJSON:
		err = setJSON(s.Value, values)
	case Set:
		err = strvals.ParseInto(s.Value, values)
	case SetString:
		err = strvals.ParseIntoString(s.Value, values)
	case SetFile:
		err = strvals.ParseIntoFile(s.Value, values, func(name []rune) (any, error) {
			data, err := r.read(string(name))
			if err != nil {
				unread = fmt.Errorf("file %s: %w", string(name), err)
			}
			return string(data), err
		})
	case SetLiteral:
		err = strvals.ParseLiteralInto(s.Value, values)
	default:
		return fmt.Errorf("%s is not a source of values", s.Kind)
	}
	if err == nil {
		return nil
	}
	key, _, found := strings.Cut(s.Value, "=")
	if !found {
		return &SetError{Flag: s.Kind, Err: errors.New(`there is no "=" in it; write key=value`)}
	}
	if unread != nil {
		return &SetError{Flag: s.Kind, Key: key, Err: unread}
	}
	return &SetError{Flag: s.Kind, Key: key, Err: setReason(s, err)}
}

// setJSON takes Helm 3's key=JSON and Helm 4's whole object.
func setJSON(text string, values map[string]any) error {
	var object map[string]any
	if strings.HasPrefix(strings.TrimSpace(text), "{") && json.Unmarshal([]byte(text), &object) == nil {
		maps.Copy(values, mergeMaps(values, object))
		return nil
	}
	return strvals.ParseJSON(text, values)
}

// setReason returns the error of strvals without any part of the value.
func setReason(s ValuesSource, err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("its value is not JSON (at byte %d)", syntax.Offset)
	}
	switch {
	case s.Kind == SetJSON:
		return errors.New("its value is not JSON")
	case errors.Is(err, os.ErrNotExist):
		return os.ErrNotExist
	}
	for i, part := range splitSetFlag(s.Value) {
		if !strings.Contains(part, "=") {
			return fmt.Errorf(`part %d after a comma has no "="; write \, for a comma inside a value`, i+1)
		}
	}
	_, value, _ := strings.Cut(s.Value, "=")
	for _, piece := range strings.FieldsFunc(value, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(piece) > 2 && strings.Contains(err.Error(), piece) { // a shorter piece may be there by chance
			return errors.New(`it can't be set there; write \ before a comma, a dot or a brace that is part of a key or value`)
		}
	}
	return err
}

// splitSetFlag splits a --set value at its commas, braces and escapes respected.
func splitSetFlag(text string) []string {
	var out []string
	var field strings.Builder
	depth, escaped := 0, false
	for _, r := range text {
		switch {
		case escaped:
			escaped = false
		case r == '\\':
			escaped = true
		case r == '{':
			depth++
		case r == '}':
			depth--
		case r == ',' && depth <= 0:
			out = append(out, field.String())
			field.Reset()
			continue
		}
		field.WriteRune(r)
	}
	return append(out, field.String())
}
