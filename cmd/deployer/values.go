package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"deployer/chart"
	"deployer/internal/program"
)

// A value is what a flag takes.
type value struct {
	set     func(string) error
	check   func() error       // of what depends on other flags, after all are set; nil for nothing
	current func() string      // what is set now; nil for flags of which nobody asks for it
	fromEnv func(string) error // what its variables mean, if not the same as the flag; nil for most
	kind    string             // its name in help, unless the usage of the flag has one
	bare    string             // what the flag means without a value; empty if it needs one
	words   []string           // the only values, if not nil
	initial string             // without the flag; empty if that needs no words
}

// initially sets what a flag writes to to its default.
func initially[T any](to *T, initial []T) (shown string) {
	if len(initial) == 0 {
		return ""
	}
	*to = initial[0]
	return fmt.Sprint(initial[0])
}

// parsed is a value that a function reads. what says what it needs to be.
func parsed[T any](to *T, parse func(string) (T, error), what string, initial []T) value {
	return value{initial: initially(to, initial), current: func() string { return fmt.Sprint(*to) }, set: func(s string) error {
		v, err := parse(s)
		if err != nil {
			return fmt.Errorf("%q is not %s", s, what)
		}
		*to = v
		return nil
	}}
}

func text(to *string, initial ...string) value {
	return value{kind: "TEXT", initial: initially(to, initial), current: func() string { return *to }, set: func(s string) error {
		*to = s
		return nil
	}}
}

// toggle may stand without a value.
func toggle(to *bool, initial ...bool) value {
	v := parsed(to, strconv.ParseBool, "one of true, false", initial)
	v.bare = "true"
	return v
}

func number(to *int, initial ...int) value {
	v := parsed(to, strconv.Atoi, "a whole number, or out of range", initial)
	v.kind = "N"
	return v
}

// count is a number that isn't negative.
func count(to *uint, initial ...uint) value {
	v := parsed(to, func(s string) (uint, error) {
		n, err := strconv.ParseUint(s, 10, 31)
		return uint(n), err
	}, "a whole number, or out of range", initial)
	v.kind = "N"
	return v
}

func duration(to *time.Duration, initial ...time.Duration) value {
	v := parsed(to, func(s string) (time.Duration, error) {
		d, err := time.ParseDuration(s)
		if err == nil && d < 0 {
			err = errors.New("negative")
		}
		return d, err
	}, "a duration: it needs units, such as 90s or 1h30m, and no minus sign", initial)
	v.kind = "DURATION"
	return v
}

func rate(to *float32) value {
	v := parsed(to, func(s string) (float32, error) {
		f, err := strconv.ParseFloat(s, 32)
		return float32(f), err
	}, "a number", nil)
	v.kind, v.current = "N", func() string { return fmt.Sprintf("%.2f", *to) }
	return v
}

// taken is a value that a function takes.
func taken(set func(string) error) value { return value{kind: "VALUE", set: set} }

// splitList is the value of a flag that may be repeated, where commas separate values too, as in Helm.
func splitList(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func list(to *[]string) value {
	return taken(func(s string) error {
		*to = append(*to, splitList(s)...)
		return nil
	})
}

// verbatimList is a repeatable flag whose values are taken as they are.
func verbatimList(to *[]string) value {
	return taken(func(s string) error {
		*to = append(*to, s)
		return nil
	})
}

// slashedNames is a list whose names have parts with slashes between them, as a form such as "kind/name or
// kind/namespace/name" says. parts are how many there may be; 1 is for "*" alone.
func slashedNames(to *[]string, form string, parts ...int) value {
	return taken(func(s string) error {
		given := splitList(s)
		for _, name := range given {
			has := strings.Split(name, "/")
			if slices.Contains(has, "") || !slices.Contains(parts, len(has)) || len(has) == 1 && name != "*" {
				return fmt.Errorf("%q is not %s", name, form)
			}
		}
		*to = append(*to, given...)
		return nil
	})
}

// pairs are name=value pairs, separated by commas or repeated.
func pairs(to *map[string]string) value {
	return taken(func(s string) error {
		if *to == nil {
			*to = map[string]string{}
		}
		for item := range strings.SplitSeq(s, ",") {
			name, value, ok := strings.Cut(item, "=")
			if !ok || name == "" {
				return fmt.Errorf("%q is not name=value", item)
			}
			(*to)[name] = value
		}
		return nil
	})
}

// choices is a list of a few words. Case doesn't matter.
func choices(to *[]string, words []string) value {
	return taken(func(s string) error {
		for _, item := range splitList(s) {
			i := slices.IndexFunc(words, func(word string) bool { return strings.EqualFold(word, item) })
			if i < 0 {
				return notOneOf(item, words)
			}
			*to = append(*to, words[i])
		}
		return nil
	})
}

// choice is one of a few words. The first one is what counts without the flag, unless there is another value already.
func choice[T ~string](to *T, words ...string) value {
	return choiceFunc(func(word string) { *to = T(word) }, cmp.Or(string(*to), words[0]), words)
}

func choiceFunc(choose func(word string), initial string, words []string) value {
	return value{kind: "MODE", words: words, initial: initial, set: func(s string) error {
		if !slices.Contains(words, s) {
			return notOneOf(s, words)
		}
		choose(s)
		return nil
	}}
}

// orBare lets a choice stand without a value, like --dry-run. synonyms maps other values to its words.
func (v value) orBare(bare string, synonyms map[string]string) value {
	set := v.set
	v.bare, v.initial, v.kind = bare, "", ""
	v.set = func(s string) error {
		s = canonicalBool(s)
		if word, ok := synonyms[s]; ok {
			s = word
		}
		if s == "true" && !slices.Contains(v.words, "true") {
			s = bare
		}
		return set(s)
	}
	return v
}

// canonicalBool returns true or false for the words that Helm's flags take for them, such as 1 and True. Other words stay.
// https://pkg.go.dev/strconv#ParseBool
func canonicalBool(s string) string {
	if value, err := strconv.ParseBool(s); err == nil {
		return strconv.FormatBool(value)
	}
	return s
}

func notOneOf(given string, words []string) error {
	return program.Suggest(fmt.Errorf("%q is not one of %s", given, strings.Join(words, ", ")), given, words)
}

// valueSource gives values. All such flags of a command append to one list, to keep their order.
func valueSource(kind chart.ValuesSourceKind, to *[]chart.ValuesSource) value {
	return taken(func(s string) error {
		*to = append(*to, chart.ValuesSource{Kind: kind, Value: s})
		return nil
	})
}

// checked is a value that check looks at when all flags have theirs.
func (v value) checked(check func() error) value {
	v.check = check
	return v
}

// noEffectSwitch is the value of a flag without an effect that may stand without one.
func noEffectSwitch(otherWords ...string) value {
	return choice(new(string), append([]string{"true", "false"}, otherWords...)...).orBare("true", nil)
}

// noEffect is a switch of Helm's that has no effect: its name, and why.
func noEffect(name, why string, otherWords ...string) *flag {
	return &flag{name: name, why: why, welcome: []string{"false"}, value: noEffectSwitch(otherWords...)}
}

// setFlag sets a flag to a value of the command line. One without an effect warns of that, once.
func (e *env) setFlag(f *flag, text string) error {
	if err := f.value.set(text); err != nil {
		return err
	}
	if f.isHidden() && !f.given && !slices.Contains(f.welcome, canonicalBool(text)) {
		e.warn(fmt.Sprintf("--%s has no effect: %s", f.name, f.why))
	}
	f.given = true
	return nil
}
