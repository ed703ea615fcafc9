package chart

import (
	"strings"
	"testing"
)

// TestOptionsOfAnotherHelmAreAnError: they are read from fields that Helm may rename.
func TestOptionsOfAnotherHelmAreAnError(t *testing.T) {
	for want, getter := range map[string]any{
		"url":                &struct{ options string }{},
		"passCredentialsAll": &struct{ opts struct{ url string } }{},
		"timeout":            &struct{ opts struct{ timeout string } }{},
	} {
		if _, err := httpOptionsOf(getter); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without %s: %v", want, err)
		}
	}
}
