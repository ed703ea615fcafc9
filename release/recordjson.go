package release

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"unicode/utf8"
)

// A manifest and a journal may have many megabytes, of which json.Marshal holds several copies at a
// time when most memory is in use. So these are written in pieces. The JSON is the same but
// for the order of members.

// A jsonWriter writes JSON in pieces. After an error it writes nothing more.
type jsonWriter struct {
	to  io.Writer
	err error // the first one
}

// writeRaw writes text as it is.
func (w *jsonWriter) writeRaw(text string) {
	if w.err == nil {
		_, w.err = io.WriteString(w.to, text)
	}
}

// writeWithoutBrackets writes the JSON of a text or an object without its quotes or braces.
func (w *jsonWriter) writeWithoutBrackets(v any) {
	data, err := json.Marshal(v)
	if w.err = cmp.Or(w.err, err); w.err == nil {
		_, w.err = w.to.Write(data[1 : len(data)-1])
	}
}

// writeRecordMembers writes the members of a record without its chart, and the closing brace.
func (w *jsonWriter) writeRecordMembers(rec *Record) {
	rest := *rec
	rest.Chart, rest.Manifest, rest.Journal = nil, "", nil
	w.members(&rest, rec.Manifest, rec.Journal)
}

func (w *jsonWriter) writeHead(h *head) {
	rest := *h
	rest.Journal = nil
	w.writeRaw("{")
	w.members(&rest, "", h.Journal)
}

func (w *jsonWriter) writeBody(b *body) {
	rest := *b
	rest.Manifest = ""
	w.writeRaw("{")
	w.members(&rest, b.Manifest, nil)
}

// members writes the members of an object, then its manifest and journal unless they are empty, and the closing brace.
func (w *jsonWriter) members(rest any, manifest string, journal *Journal) {
	w.writeWithoutBrackets(rest)
	if manifest != "" {
		w.writeRaw(`,"manifest":`)
		w.writeText(manifest)
	}
	if journal != nil {
		w.writeRaw(`,"deployer":`)
		w.journal(journal)
	}
	w.writeRaw("}")
}

func (w *jsonWriter) journal(j *Journal) {
	rest := *j
	rest.Objects = nil
	w.writeRaw("{")
	w.writeWithoutBrackets(&rest)
	separator := `,"objects":{`
	for _, key := range slices.Sorted(maps.Keys(j.Objects)) {
		w.writeRaw(separator)
		w.writeWithoutBrackets(map[string]ObjectState{key: j.Objects[key]})
		separator = ","
	}
	if len(j.Objects) > 0 {
		w.writeRaw("}")
	}
	w.writeRaw("}")
}

// textPiece is how many bytes of a text are written at once.
const textPiece = 16 << 10

func (w *jsonWriter) writeText(text string) {
	w.writeRaw(`"`)
	for text != "" {
		end := pieceEnd(text)
		w.writeWithoutBrackets(text[:end])
		text = text[end:]
	}
	w.writeRaw(`"`)
}

// pieceEnd is where the first piece of a text ends, which is between two characters.
func pieceEnd(text string) int {
	if len(text) <= textPiece {
		return len(text)
	}
	for end := textPiece; end > textPiece-utf8.UTFMax; end-- {
		if utf8.RuneStart(text[end]) {
			return end
		}
	}
	return textPiece // these bytes aren't characters
}
