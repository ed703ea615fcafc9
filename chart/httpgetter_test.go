package chart

import (
	"strings"
	"testing"
	"time"
)

// TestOptionsOfAnotherHelmAreAnError: they are read from fields that Helm may rename.
func TestOptionsOfAnotherHelmAreAnError(t *testing.T) {
	type options struct {
		url, acceptHeader, userAgent, username, password, certFile, keyFile, caFile string
		passCredentialsAll, insecureSkipVerifyTLS                                   bool
		timeout                                                                     time.Duration
	}
	read, err := httpOptionsOf(&struct{ opts options }{options{url: "https://example.com", timeout: time.Second}})
	if err != nil || read.url != "https://example.com" || read.timeout != time.Second {
		t.Errorf("got %+v, %v", read, err)
	}
	for want, getter := range map[string]any{
		"url":                &struct{ options options }{},
		"passCredentialsAll": &struct{ opts struct{ url string } }{},
		"timeout":            &struct{ opts struct{ timeout string } }{},
	} {
		if _, err := httpOptionsOf(getter); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without %s: %v", want, err)
		}
	}
}
