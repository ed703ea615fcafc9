package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"deployer/chart"
)

// A funcValue is a flag, without a default, whose values a function takes.
type funcValue func(string) error

func (f funcValue) Set(s string) error { return f(s) }

// String is empty: the flag package passes it to Set again for each alias.
func (f funcValue) String() string { return "" }

// splitList is the value of a flag that may be repeated, where commas separate values too, as in Helm.
func splitList(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func stringList(values *[]string) funcValue {
	return func(s string) error {
		*values = append(*values, splitList(s)...)
		return nil
	}
}

// verbatimList is a repeatable flag whose values are taken as they are.
func verbatimList(values *[]string) funcValue {
	return func(s string) error {
		*values = append(*values, s)
		return nil
	}
}

// nonEmptyList is verbatimList without empty values: the flag package also sets one for each alias.
func nonEmptyList(values *[]string) funcValue {
	add := verbatimList(values)
	return func(s string) error {
		if s == "" {
			return nil
		}
		return add(s)
	}
}

// slashedNames is a list flag whose names have parts with slashes between them, as a form such
// as "kind/name or kind/namespace/name" says. parts are how many there may be; 1 is for "*" alone.
func slashedNames(names *[]string, form string, parts ...int) funcValue {
	return func(s string) error {
		given := splitList(s)
		for _, name := range given {
			has := strings.Split(name, "/")
			if slices.Contains(has, "") || !slices.Contains(parts, len(has)) || len(has) == 1 && name != "*" {
				return fmt.Errorf("%q is not %s", name, form)
			}
		}
		*names = append(*names, given...)
		return nil
	}
}

// pairs is a flag of name=value pairs, separated by commas or repeated.
func pairs(values *map[string]string) funcValue {
	return func(s string) error {
		if *values == nil {
			*values = map[string]string{}
		}
		for item := range strings.SplitSeq(s, ",") {
			name, value, ok := strings.Cut(item, "=")
			if !ok || name == "" {
				return fmt.Errorf("%q is not name=value", item)
			}
			(*values)[name] = value
		}
		return nil
	}
}

// choices is a list of a few words. Case doesn't matter.
func choices(values *[]string, words []string) funcValue {
	return func(s string) error {
		for _, item := range splitList(s) {
			i := slices.IndexFunc(words, func(word string) bool { return strings.EqualFold(word, item) })
			if i < 0 {
				return notOneOf(item, words)
			}
			*values = append(*values, words[i])
		}
		return nil
	}
}

// choice is a flag that takes one of a few words.
type choice struct {
	words    []string // without the flag, the first of them is what the program does, unless bare is set
	bare     string   // what the flag means without a value; empty if it needs one
	synonyms map[string]string
	chosen   string
	choose   func(word string)
}

func newChoice(value *string, words ...string) *choice {
	return &choice{words: words, chosen: *value, choose: func(word string) { *value = word }}
}

// orBare lets the flag stand without a value, like --dry-run. synonyms maps other values to the words.
func (c *choice) orBare(bare string, synonyms map[string]string) *choice {
	c.bare, c.synonyms = bare, synonyms
	return c
}

func (c *choice) IsBoolFlag() bool { return c.bare != "" }

func (c *choice) Set(s string) error {
	if c.bare != "" {
		s = canonicalBool(s)
	}
	if word, ok := c.synonyms[s]; ok {
		s = word
	}
	// The flag package gives "true" for a flag without a value.
	if s == "true" && c.bare != "" && !slices.Contains(c.words, "true") {
		s = c.bare
	}
	if !slices.Contains(c.words, s) {
		return notOneOf(s, c.words)
	}
	c.chosen = s
	c.choose(s)
	return nil
}

// canonicalBool returns true or false for the words that Helm's flags take for them, such as 1 and True. Other words stay.
// https://pkg.go.dev/strconv#ParseBool
func canonicalBool(s string) string {
	if value, err := strconv.ParseBool(s); err == nil {
		return strconv.FormatBool(value)
	}
	return s
}

func (c *choice) String() string { return c.chosen }

func notOneOf(given string, words []string) error {
	return fmt.Errorf("%q is not one of %s", given, strings.Join(words, ", "))
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
