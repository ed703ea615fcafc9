package apply

import (
	"encoding/json"
	"io"
	"slices"
	"strconv"
)

// A canonicalWriter writes the JSON that json.Marshal makes of an object, in half of the time and next to no memory:
// definitions have hundreds of kilobytes, and are hashed each time.
type canonicalWriter struct {
	to   io.Writer // never fails
	text []byte    // not yet written
	keys []string  // of the maps that are being written
}

// canonicalPiece is how many bytes are written at once.
const canonicalPiece = 16 << 10

// writeObject writes a whole object.
func (w *canonicalWriter) writeObject(object map[string]any) error {
	err := w.value(object)
	_, _ = w.to.Write(w.text)
	w.text = w.text[:0]
	return err
}

func (w *canonicalWriter) value(v any) error {
	switch v := v.(type) {
	case map[string]any:
		return w.mapping(v)
	case []any:
		return w.list(v)
	case string:
		return w.string(v)
	case bool:
		w.text = strconv.AppendBool(w.text, v)
	case int64:
		w.text = strconv.AppendInt(w.text, v, 10)
	default:
		return w.other(v)
	}
	return nil
}

func (w *canonicalWriter) mapping(m map[string]any) error {
	if m == nil {
		return w.other(nil)
	}
	first := len(w.keys)
	for key := range m {
		w.keys = append(w.keys, key)
	}
	slices.Sort(w.keys[first:])
	w.text = append(w.text, '{')
	for i := first; i < first+len(m); i++ {
		key := w.keys[i]
		if i > first {
			w.text = append(w.text, ',')
		}
		if err := w.string(key); err != nil {
			return err
		}
		w.text = append(w.text, ':')
		if err := w.value(m[key]); err != nil {
			return err
		}
	}
	w.keys = w.keys[:first]
	w.text = append(w.text, '}')
	if len(w.text) > canonicalPiece {
		_, _ = w.to.Write(w.text)
		w.text = w.text[:0]
	}
	return nil
}

func (w *canonicalWriter) list(list []any) error {
	if list == nil {
		return w.other(nil)
	}
	w.text = append(w.text, '[')
	for i, v := range list {
		if i > 0 {
			w.text = append(w.text, ',')
		}
		if err := w.value(v); err != nil {
			return err
		}
	}
	w.text = append(w.text, ']')
	return nil
}

func (w *canonicalWriter) string(s string) error {
	start, done := len(w.text), 0
	w.text = append(w.text, '"')
	for i := range len(s) {
		b := s[i]
		if b >= ' ' && b <= '~' && b != '"' && b != '\\' && b != '<' && b != '>' && b != '&' {
			continue
		}
		switch b {
		case '\n':
			b = 'n'
		case '"', '\\':
		default:
			w.text = w.text[:start]
			return w.other(s)
		}
		w.text = append(append(w.text, s[done:i]...), '\\', b)
		done = i + 1
	}
	w.text = append(append(w.text, s[done:]...), '"')
	return nil
}

// other writes what is rare.
func (w *canonicalWriter) other(v any) error {
	data, err := json.Marshal(v)
	w.text = append(w.text, data...)
	return err
}
