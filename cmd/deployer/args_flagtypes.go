package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"deployer/chart"
	"deployer/track"
)

// stringList is a flag that may be repeated; commas separate values too, as in Helm.
type stringList []string

func (l *stringList) Set(s string) error {
	if s == "" {
		return nil
	}
	*l = append(*l, strings.Split(s, ",")...)
	return nil
}

// String is empty: the flag package passes it to Set again for each alias.
func (l *stringList) String() string { return "" }

// slashedNames is a list flag whose names have parts with slashes between them, as a form such
// as "kind/name or kind/namespace/name" says.
type slashedNames struct {
	names *[]string
	form  string
	parts []int // how many there may be; 1 for "*" alone
}

func (s slashedNames) Set(text string) error {
	var given stringList
	if err := given.Set(text); err != nil {
		return err
	}
	for _, name := range given {
		parts := strings.Split(name, "/")
		if slices.Contains(parts, "") || !slices.Contains(s.parts, len(parts)) || len(parts) == 1 && name != "*" {
			return fmt.Errorf("%q is not %s", name, s.form)
		}
	}
	*s.names = append(*s.names, given...)
	return nil
}

// String is empty, as that of stringList.
func (s slashedNames) String() string { return "" }

// pairs is a flag of name=value pairs, separated by commas or repeated.
type pairs map[string]string

func (p *pairs) Set(s string) error {
	if *p == nil {
		*p = pairs{}
	}
	for _, item := range strings.Split(s, ",") {
		name, value, ok := strings.Cut(item, "=")
		if !ok || name == "" {
			return fmt.Errorf("%q is not name=value", item)
		}
		(*p)[name] = value
	}
	return nil
}

func (p *pairs) String() string { return "" }

// choice is a flag that takes one of a few words. Without a value the first of them is
// what the program does.
type choice struct {
	value *string
	words []string
}

func newChoice(value *string, words ...string) *choice { return &choice{value: value, words: words} }

func (c *choice) Set(s string) error {
	if !slices.Contains(c.words, s) {
		return notOneOf(s, c.words)
	}
	*c.value = s
	return nil
}

func notOneOf(given string, words []string) error {
	return fmt.Errorf("%q is not one of %s", given, strings.Join(words, ", "))
}

func (c *choice) String() string {
	if c == nil || c.value == nil {
		return ""
	}
	return *c.value
}

// choices is a list of a few words. Case doesn't matter.
type choices struct {
	values *[]string
	words  []string
}

func (c *choices) Set(s string) error {
	var given stringList
	_ = given.Set(s)
	for _, item := range given {
		i := slices.IndexFunc(c.words, func(word string) bool { return strings.EqualFold(word, item) })
		if i < 0 {
			return notOneOf(item, c.words)
		}
		*c.values = append(*c.values, c.words[i])
	}
	return nil
}

func (c *choices) String() string { return "" }

// optionalChoice is a choice whose value may be omitted, like --dry-run. synonyms maps other values
// to the words.
type optionalChoice struct {
	value    *string
	bare     string // what the flag alone means
	words    []string
	synonyms map[string]string
}

func (o *optionalChoice) IsBoolFlag() bool { return true }

func (o *optionalChoice) Set(s string) error {
	if word, ok := o.synonyms[s]; ok {
		s = word
	}
	// The flag package gives "true" for a flag without a value.
	if s == "true" && !slices.Contains(o.words, "true") {
		s = o.bare
	}
	if !slices.Contains(o.words, s) {
		return notOneOf(s, o.words)
	}
	*o.value = s
	return nil
}

func (o *optionalChoice) String() string {
	if o == nil || o.value == nil {
		return ""
	}
	return *o.value
}

type float32Value float32

func (f *float32Value) Set(s string) error {
	v, err := strconv.ParseFloat(s, 32)
	if err != nil {
		return fmt.Errorf("%q is not a number", s)
	}
	*f = float32Value(v)
	return nil
}

func (f *float32Value) String() string {
	if f == nil {
		return "0"
	}
	return strconv.FormatFloat(float64(*f), 'g', -1, 32)
}

// valueSource is a flag that gives values. All such flags of a command append to one list, to
// keep their order.
type valueSource struct {
	kind chart.ValuesSourceKind
	into *[]chart.ValuesSource
}

func (s *valueSource) Set(value string) error {
	*s.into = append(*s.into, chart.ValuesSource{Kind: s.kind, Value: value})
	return nil
}

func (s *valueSource) String() string { return "" }

// verbatimList is a repeatable flag whose values are taken as they are.
type verbatimList struct{ values *stringList }

func (v *verbatimList) Set(s string) error {
	*v.values = append(*v.values, s)
	return nil
}

func (v *verbatimList) String() string { return "" }

// logMode is --logs.
type logMode struct{ mode *track.LogMode }

// logModes are the words of --logs.
var logModes = map[string]track.LogMode{
	"jobs": track.LogsDefault, "failed": track.LogsFailed, "all": track.LogsLive, "none": track.LogsNone,
}

func (l *logMode) Set(s string) error {
	mode, ok := logModes[s]
	if !ok {
		return fmt.Errorf("%q is not one of jobs, failed, all, none", s)
	}
	*l.mode = mode
	return nil
}

func (l *logMode) String() string {
	if l == nil || l.mode == nil {
		return ""
	}
	for word, mode := range logModes {
		if mode == *l.mode {
			return word
		}
	}
	return ""
}
