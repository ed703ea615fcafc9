package hide

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// TestPasswordsInsideOfConfidentialTexts: charts take a password out of a file or an
// address that a Secret holds, and write it elsewhere by itself.
func TestPasswordsInsideOfConfidentialTexts(t *testing.T) {
	basic := func(s string) string { return base64.StdEncoding.EncodeToString([]byte("me:" + s)) }
	for name, text := range map[string]func(s string) string{
		"ini":                  func(s string) string { return "[db]\nuser = x\npw = " + s + "\n" },
		"properties":           func(s string) string { return "a=b\nspring.datasource.password=" + s + "\n" },
		"dotenv on one line":   func(s string) string { return "A=1 PW=" + s },
		"YAML":                 func(s string) string { return "db:\n  password: " + s + "\n" },
		"YAML in one line":     func(s string) string { return "users: [{name: a, user: {token: " + s + "}}]" },
		"a list of YAML":       func(s string) string { return "tokens:\n- " + s + "\n" },
		"a block of YAML":      func(s string) string { return "db:\n  pass: |\n    " + s + "\n  x: y\n" },
		"names and values":     func(s string) string { return "env:\n- name: DB_PASSWORD\n  value: " + s + "\n" },
		"JSON list":            func(s string) string { return `["` + s + `"]` },
		"JSON":                 func(s string) string { return `{"a":{"secrets":["x","` + s + `"]}}` },
		"XML":                  func(s string) string { return "<a>\n <password>" + s + "</password>\n</a>\n" },
		"XML attribute":        func(s string) string { return `<user name="me" password="` + s + `"/>` },
		"URL":                  func(s string) string { return "postgres://user:" + s + "@db.example:5432/db?sslmode=off" },
		"URL's query":          func(s string) string { return "jdbc:postgresql://h/db?user=u&password=" + s + "&ssl=true" },
		"git's credentials":    func(s string) string { return "https://me:" + s + "@git.example.com\n" },
		"connection string":    func(s string) string { return "Server=db;User Id=sa;Password=" + s + ";Encrypt=true" },
		"libpq":                func(s string) string { return "host=db user=u password='" + s + "' dbname=x" },
		"header":               func(s string) string { return "Authorization: Bearer " + s },
		"basic authentication": func(s string) string { return "Authorization: Basic " + basic(s) },
		"netrc":                func(s string) string { return "machine x login y password " + s + "\n" },
		"pgpass":               func(s string) string { return "db.example:5432:shop:user:" + s + "\n" },
		"htpasswd":             func(s string) string { return "me:" + s },
		"list":                 func(s string) string { return "me," + s + ",x" },
		"AWS":                  func(s string) string { return "[default]\naws_secret_access_key = " + s + "\n" },
		"registry":             func(s string) string { return `{"auths":{"r.io":{"auth":"` + basic(s) + `"}}}` },
	} {
		for _, length := range []int{8, 9, 17} {
			s := canary(t, length)
			var texts Texts
			texts.AddObject(secretOf(map[string]any{"settings": text(s)}))
			for _, form := range []string{s, "--flag=" + s, "u:" + s + "@h", base64.StdEncoding.EncodeToString([]byte("u:" + s)), fmt.Sprintf("%x", "u:"+s), percent(s)} {
				if got := texts.Hide("says " + form + " here"); shows(got, s) {
					t.Errorf("%s of %d letters: %q of %s shows it", name, length, got, s)
				}
			}
		}
	}
}

// TestOrdinaryPartsOfConfidentialTextsAreShown: hosts, ports, keys and words of a
// configuration are needed to read a plan.
func TestOrdinaryPartsOfConfidentialTextsAreShown(t *testing.T) {
	var texts Texts
	texts.AddVisibleName("web-db")
	texts.AddObject(secretOf(map[string]any{
		"url":  "postgres://postgres:hunter2hunter2@web-db:5432/postgres?sslmode=disable",
		"conf": "server:\n  port: 8080\n  timeout: 30s\n  debug: true\n  mode: cluster\n# the retries of clients\nretries: 3\n",
		"xml":  "<server port=\"8080\"><mode>standalone</mode></server>",
	}))
	for _, text := range []string{
		"web-db:5432", "postgres:16", "sslmode=disable", "port 8080", "30s", "debug: true", "cluster", "standalone", "server", "retries", "timeout", "postgres://web-db",
	} {
		if got := texts.Hide(text); got != text {
			t.Errorf("Hide(%q) = %q", text, got)
		}
	}
}

// TestPasswordsInValuesAreHidden: in addresses, whatever their key, and in lists of
// names and values, as for environment variables.
func TestPasswordsInValuesAreHidden(t *testing.T) {
	inURL, inEnv, shown := canary(t, 9), canary(t, 9), canary(t, 9)
	var texts Texts
	texts.AddValues(map[string]any{
		"databaseUrl": "postgres://user:" + inURL + "@db/x",
		"extraEnv":    []any{map[string]any{"name": "DB_PASSWORD", "value": inEnv}, map[string]any{"name": "LEVEL", "value": shown}, map[string]any{"name": "TOKEN_REF", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": shown}}}},
	})
	got := texts.Hide(inURL + " " + inEnv + " " + shown)
	if want := Placeholder + " " + Placeholder + " " + shown; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestBase64OfBase64IsHiddenWhole: what is left of it is the same for any text of this length:
// padding.
func TestBase64OfBase64IsHiddenWhole(t *testing.T) {
	twice := func(s string) string {
		return base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(s))))
	}
	for length := 8; length < 15; length++ {
		left := map[string]bool{}
		for range 20 {
			s := canary(t, length)
			var texts Texts
			texts.AddValues(map[string]any{"password": s})
			left[texts.Hide(twice(s))] = true
		}
		if len(left) > 1 {
			t.Errorf("%d letters: what is left differs: %v", length, left)
		}
	}
	long := strings.Repeat(canary(t, 40), 20)
	var texts Texts
	texts.AddValues(map[string]any{"token": long})
	if got := texts.Hide(twice(long)); len(got) > 20 {
		t.Errorf("a long token: %q", got)
	}
}
