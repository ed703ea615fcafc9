package chart

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"

	"deployer/internal/lazyregexp"
)

// nondeterministic maps template functions whose result differs between renderings to how many
// renderings are needed to see it. keys and values return map entries in random order, see reordered.
// https://masterminds.github.io/sprig/
var nondeterministic = map[string]int{
	"randAlphaNum": 1, "randAlpha": 1, "randAscii": 1, "randBytes": 1, "uuidv4": 1,
	"bcrypt": 1, "htpasswd": 1, "encryptAES": 1, "genPrivateKey": 1,
	"genCA": 1, "genCAWithKey": 1, "genSelfSignedCert": 1, "genSelfSignedCertWithKey": 1,
	"genSignedCert": 1, "genSignedCertWithKey": 1,
	"now": 1, "ago": 1, "keys": 2,
	"randNumeric": fewResults, "randInt": fewResults, "shuffle": fewResults, "values": fewResults, "getHostByName": fewResults,
}

// fewResults is how many renderings are needed at least where a result is chosen from few, so that
// it may come out the same several times.
const fewResults = 4

// substitutes replace functions when a chart is rendered again. The current time would be
// the same again, so it is replaced by one with another year, month, day, weekday, hour,
// minute and second, and a duration by other text. Salted hashes and ciphers are replaced by
// their input in hexadecimal, to check whether a recorded one was made of the same input.
var substitutes = map[string]substitution{
	"now":        {name: `(dateModify "+9685h7m3s" now)`},
	"ago":        {name: `printf "%T-ago"`},
	"bcrypt":     {name: `printf "%[1]x"`},
	"htpasswd":   {name: `printf "%[1]s:%[2]x"`},
	"encryptAES": {name: `printf "%[1]x.%[2]x"`},
}

// reordered are changes to the functions that give the entries of a map in random order, for the first
// time a chart is rendered again, the second, and so on in turn. A small map mostly comes out in the
// same order, so that chance would need many renderings to show another. Keys are texts and can be
// sorted, up and down. Values can only be reversed. Each change is written as no template has it, see
// restoreCalls.
var reordered = []map[string]substitution{
	{"keys": {suffix: "|sortAlpha|sortAlpha"}},
	{"keys": {suffix: "|sortAlpha|sortAlpha|reverse"}, "values": {suffix: "|reverse|reverse|reverse"}},
}

// hashInputs replace hash functions: they return the input in base64.
var hashInputs = map[string]substitution{
	"sha1sum": {name: "b64enc"}, "sha256sum": {name: "b64enc"}, "sha512sum": {name: "b64enc"}, "adler32sum": {name: "b64enc"},
}

// quickKeys replace functions that search for prime numbers by ones that take hardly any time. These
// return random PEM text of the same kind, but ignore the arguments. For a certificate, dict takes
// any number of arguments, as entries that nobody reads.
var quickKeys = map[string]substitution{
	"genPrivateKey": {name: `printf "%s%.0s" (genPrivateKey "ecdsa")`},
	"genCA":         quickCertificate, "genSelfSignedCert": quickCertificate, "genSignedCert": quickCertificate,
	"genCAWithKey": quickCertificate, "genSelfSignedCertWithKey": quickCertificate, "genSignedCertWithKey": quickCertificate,
}

var quickCertificate = substitution{name: `dict "Cert" (genCAWithKey "x" 1 (genPrivateKey "ecdsa")).Cert "Key" (genPrivateKey "ecdsa") "-"`}

// keyMaking are template functions that take longer than all else in a chart: they search for
// prime numbers, or are slow on purpose.
var keyMaking = []string{
	"genPrivateKey", "genCA", "genSelfSignedCert", "genSignedCert", "genCAWithKey", "genSelfSignedCertWithKey", "genSignedCertWithKey",
	"bcrypt", "htpasswd",
}

// shortRandom is random text of up to three characters, or cut to them.
var shortRandom = lazyregexp.New(`\b(rand(AlphaNum|Alpha|Ascii|Bytes)\s+[1-3]\b|[1-3]\s*\|\s*rand(AlphaNum|Alpha|Ascii|Bytes)\b|(trunc|substr 0)\s+[1-3]\b)`)

// hasShortRandom reports whether a text has a match of shortRandom. It looks for words of the expression first,
// because the expression is slow on megabytes of definitions and dashboards.
func hasShortRandom(text []byte) bool {
	return containsAny(text, "{{") && containsAny(text, "rand", "trunc", "substr 0") && shortRandom().Match(text)
}

// certificatesOfOneKey replaces the functions that make a certificate with a new key by variants that take a key, and
// gives all of them the same new one. To see what is generated, one other key is enough. If the last argument of a call
// comes out of a pipe, the key isn't in its place, and rendering fails.
func certificatesOfOneKey() (map[string]substitution, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	return keyedVariants(fmt.Sprintf(`(b64dec "%s")`, base64.StdEncoding.EncodeToString([]byte(pemOf(key))))), nil
}

// restoreCalls restores the original calls in text that wasn't evaluated as a template.
func restoreCalls(text string, instead map[string]substitution) string {
	restore := func(written, original string) {
		text = strings.ReplaceAll(text, written, original)
		text = strings.ReplaceAll(text, strings.ReplaceAll(written, `"`, `\"`), original)
	}
	for name, other := range instead {
		if other.suffix != "" {
			restore(other.suffix, "")
		}
		if strings.Contains(other.name, " ") { // a single word may be part of the chart's text
			restore(other.name, name)
		}
	}
	return text
}

// eachChartText calls do for all text of a chart and its subcharts that may be evaluated,
// except the chart's own values.
func eachChartText(root *helmchart.Chart, do func([]byte)) {
	for _, c := range allCharts(root) {
		for _, f := range slices.Concat(c.Templates, c.Files) {
			do(f.Data)
		}
		if c != root {
			replaceTexts(copyMap(c.Values), func(text string) string { do([]byte(text)); return text })
		}
	}
}

// rewriteTexts changes all text of a chart that may be evaluated: templates, and with tpl
// also values and files. The chart must be a copy.
func rewriteTexts(root *helmchart.Chart, tpl bool, change func(string) string) {
	ofFile := func(f *helmchart.File) string { return change(string(f.Data)) }
	for _, c := range allCharts(root) {
		c.Templates = rewriteFiles(c.Templates, ofFile)
		if tpl {
			c.Files = rewriteFiles(c.Files, ofFile)
			replaceTexts(c.Values, change)
		}
	}
}

// rewriteFiles returns files with the text that change gives for each. Those that keep theirs are shared.
func rewriteFiles(files []*helmchart.File, change func(*helmchart.File) string) []*helmchart.File {
	out := slices.Clone(files)
	for i, f := range files {
		if f == nil {
			continue
		}
		if text := change(f); text != string(f.Data) {
			out[i] = &helmchart.File{Name: f.Name, Data: []byte(text)}
		}
	}
	return out
}

// replaceTexts replaces all texts in values, in place.
func replaceTexts(v any, change func(string) string) any {
	switch v := v.(type) {
	case string:
		return change(v)
	case map[string]any:
		for key, item := range v {
			v[key] = replaceTexts(item, change)
		}
	case []any:
		for i, item := range v {
			v[i] = replaceTexts(item, change)
		}
	}
	return v
}
