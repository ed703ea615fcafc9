package release

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"
)

// A manifest and a journal may have many megabytes, of which json.Marshal holds several copies at a
// time when most memory is in use. So these are written in pieces. The JSON is the same but
// for the order of members.

// writeRest writes the JSON of a record without its chart and without the opening brace.
func writeRest(w io.Writer, rec *Record) error {
	rest := *rec
	rest.Chart, rest.Manifest, rest.Journal = nil, "", nil
	return writeMembers(w, &rest, textMember("manifest", rec.Manifest), journalMember(rec.Journal))
}

// writeHead writes the JSON of a head.
func writeHead(w io.Writer, h *head) error {
	rest := *h
	rest.Journal = nil
	return writeObject(w, &rest, journalMember(h.Journal))
}

// writeBody writes the JSON of a body.
func writeBody(w io.Writer, b *body) error {
	rest := *b
	rest.Manifest = ""
	return writeObject(w, &rest, textMember("manifest", b.Manifest))
}

// writeJournal writes the JSON of a journal.
func writeJournal(w io.Writer, j *Journal) error {
	rest := *j
	rest.Objects = nil
	return writeObject(w, &rest, objectsMember("objects", j.Objects))
}

// A member of an object in JSON is written by itself.
type member struct {
	name  string
	write func(io.Writer) error // nil leaves it out
}

func writeObject(w io.Writer, rest any, large ...member) error {
	if _, err := io.WriteString(w, "{"); err != nil {
		return err
	}
	return writeMembers(w, rest, large...)
}

// writeMembers writes the members of rest, of which there is at least one, then the large
// ones, and the closing brace. The opening brace is the caller's.
func writeMembers(w io.Writer, rest any, large ...member) error {
	data, err := json.Marshal(rest)
	if err != nil {
		return err
	}
	if _, err := w.Write(data[1 : len(data)-1]); err != nil {
		return err
	}
	for _, m := range large {
		if m.write == nil {
			continue
		}
		if _, err := fmt.Fprintf(w, ",%q:", m.name); err != nil {
			return err
		}
		if err := m.write(w); err != nil {
			return err
		}
	}
	_, err = io.WriteString(w, "}")
	return err
}

func journalMember(j *Journal) member {
	if j == nil {
		return member{}
	}
	return member{"deployer", func(w io.Writer) error { return writeJournal(w, j) }}
}

func objectsMember(name string, objects map[string]ObjectState) member {
	if len(objects) == 0 {
		return member{}
	}
	return member{name, func(w io.Writer) error {
		separator := "{"
		for _, key := range slices.Sorted(maps.Keys(objects)) {
			data, err := json.Marshal(map[string]ObjectState{key: objects[key]})
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(w, "%s%s", separator, data[1:len(data)-1]); err != nil {
				return err
			}
			separator = ","
		}
		_, err := io.WriteString(w, "}")
		return err
	}}
}

// textPiece is how many bytes of a text are written at once.
const textPiece = 16 << 10

func textMember(name, text string) member {
	if text == "" {
		return member{}
	}
	return member{name, func(w io.Writer) error {
		if _, err := io.WriteString(w, `"`); err != nil {
			return err
		}
		for text != "" {
			end := pieceEnd(text)
			data, err := json.Marshal(text[:end])
			if err != nil {
				return err
			}
			if _, err := w.Write(data[1 : len(data)-1]); err != nil {
				return err
			}
			text = text[end:]
		}
		_, err := io.WriteString(w, `"`)
		return err
	}}
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
