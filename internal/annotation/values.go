package annotation

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func anyText(text string) (string, error) { return text, nil }

// exactlyTrue is for permissions: no other value than "true" gives one.
func exactlyTrue(text string) (bool, error) { return text == "true", nil }

func boolean(text string) (bool, error) {
	value, err := strconv.ParseBool(strings.ToLower(strings.TrimSpace(text)))
	if err != nil {
		return false, fmt.Errorf("%q is neither true nor false", strings.TrimSpace(text))
	}
	return value, nil
}

func wholeNumber(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number", text)
	}
	return n, nil
}

// count reads a number of things.
func count(text string) (int, error) {
	text = strings.TrimSpace(text)
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	return n, nil
}

func duration(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration such as 90s", text)
	}
	return d, nil
}

func regularExpression(text string) (*regexp.Regexp, error) {
	return regexp.Compile(strings.TrimSpace(text))
}

// names reads a list with commas.
func names(text string) (map[string]bool, error) {
	out := map[string]bool{}
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			out[name] = true
		}
	}
	return out, nil
}

// oneOf reads one of some words.
func oneOf(words ...string) func(string) (string, error) {
	same := map[string]string{}
	for _, word := range words {
		same[word] = word
	}
	return translated(same)
}

// translated reads one of the words that a map has, and gives our word for it.
func translated(words map[string]string) func(string) (string, error) {
	return func(text string) (string, error) {
		text = strings.TrimSpace(text)
		word, ok := words[text]
		if !ok {
			return "", fmt.Errorf("%q is not one of %s", text, strings.Join(slices.Sorted(maps.Keys(words)), ", "))
		}
		return word, nil
	}
}

// noLogs reads "true" as none; "false" changes nothing.
func noLogs(text string) (string, error) {
	skip, err := boolean(text)
	if skip {
		return "none", nil
	}
	return "", err
}

func rolloutShare(text string) (string, error) {
	text = strings.TrimSpace(text)
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		if n, err := strconv.Atoi(percent); err != nil || n < 0 || n > 100 {
			return "", fmt.Errorf("%q is not a percentage", text)
		}
		return text, nil
	}
	if text != "full" && text != "max-unavailable" && text != "none" {
		return "", fmt.Errorf("%q is not one of full, max-unavailable, none and N%%", text)
	}
	return text, nil
}
