package release

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// What is written in pieces is the JSON of encoding/json, wherever the pieces end.
func FuzzPiecesOfText(f *testing.F) {
	f.Add("a\n\"<b>\\", 3)
	f.Add("é€\U0001F600\u2028", 1)
	f.Add("\xf0\x9f\x98\x80\x80\x80\x80\xff\xe2\x82", 2)
	f.Fuzz(func(t *testing.T, text string, at int) {
		if text == "" {
			return
		}
		// The text begins somewhere in the last bytes of the first piece.
		text = strings.Repeat("x", textPiece-1-(at&0xf)) + text
		var got strings.Builder
		w := &jsonWriter{to: &got}
		if w.writeText(text); w.err != nil {
			t.Fatal(w.err)
		}
		want, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != string(want) {
			t.Errorf("%q is written as %q, want %q", text[textPiece-16:], got.String(), want)
		}
	})
}

// Members that are written by themselves are those of encoding/json.
func TestRecordJSONHasAllMembers(t *testing.T) {
	rec := ofObjects(3)
	rec.done()
	rec.Chart = nil
	rec.Journal.Hooks = map[string]string{"a": "b"}
	var got strings.Builder
	w := &jsonWriter{to: &got}
	if w.writeRecordMembers(rec); w.err != nil {
		t.Fatal(w.err)
	}
	want, err := json.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(members(t, "{"+got.String()), members(t, string(want))) {
		t.Errorf("written as {%s\nwant %s", got.String(), want)
	}
}

func members(t *testing.T, text string) (out map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}
