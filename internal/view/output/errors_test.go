package output

import "testing"

func TestWithoutPasswords(t *testing.T) {
	for text, want := range map[string]string{
		"Get https://me:hunter2@h/a: refused":                       "Get https://me:xxxxx@h/a: refused",
		"Get https://h/a?token=hunter2&x=1: refused":                "Get https://h/a?token=xxxxx&x=1: refused",
		`Get "https://h/a?x=1&private_token=hunter2": refused`:      `Get "https://h/a?x=1&private_token=xxxxx": refused`,
		"https://h/a?X-Amz-Credential=AKIA%2Fs3&X-Amz-Signature=1f": "https://h/a?X-Amz-Credential=xxxxx&X-Amz-Signature=xxxxx",
		"https://h/a?sv=2024&sig=hunter2%3D":                        "https://h/a?sv=2024&sig=xxxxx",
		"https://h/a?page=2&sort=key":                               "https://h/a?page=2&sort=key",
		"what is the token=hunter2":                                 "what is the token=hunter2", // no URL
	} {
		if got := WithoutPasswords(text); got != want {
			t.Errorf("WithoutPasswords(%q) = %q, want %q", text, got, want)
		}
	}
}
