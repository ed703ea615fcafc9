package page

import (
	"fmt"

	"deployer/apply"
	"deployer/internal/view/textfmt"
)

// A Warning is a warning about an object, or about none.
type Warning struct {
	Text   string `json:"text"`
	Object string `json:"object,omitempty"`
	Source string `json:"source,omitempty"`
}

// WarningOf describes a warning of package apply.
func WarningOf(w apply.Warning) Warning {
	out := Warning{Text: w.Text, Source: w.Source}
	if w.ID.Kind != "" {
		out.Object = w.ID.String()
	}
	return out
}

func (w Warning) String() string {
	text := w.Text
	if w.Object != "" {
		text = w.Object + ": " + text
	}
	return textfmt.CleanLine(textfmt.WithNotes(text, w.Source))
}

// WarningTexts writes warnings for people: the same words about many objects once.
func WarningTexts(warnings []Warning) []string {
	var out []string
	at := map[string]int{}
	more := map[string]int{}
	for _, w := range warnings {
		if _, known := at[w.Text]; known && w.Object != "" {
			more[w.Text]++
			continue
		}
		at[w.Text] = len(out)
		out = append(out, w.String())
	}
	for text, n := range more {
		out[at[text]] += fmt.Sprintf("; the same for %s", textfmt.Count(n, "more object"))
	}
	return out
}
