package chart

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

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

// quickKeys replace functions that search for prime numbers by ones that take next to no time. What
// they give is random PEM text of the same kind, but doesn't have what the arguments ask for. Of a
// certificate's arguments, dict makes entries that nobody reads, however many there are.
var quickKeys = map[string]substitution{
	"genPrivateKey": {name: `printf "%s%.0s" (genPrivateKey "ecdsa")`},
	"genCA":         quickCertificate, "genSelfSignedCert": quickCertificate, "genSignedCert": quickCertificate,
	"genCAWithKey": quickCertificate, "genSelfSignedCertWithKey": quickCertificate, "genSignedCertWithKey": quickCertificate,
}

var quickCertificate = substitution{name: `dict "Cert" (genCAWithKey "x" 1 (genPrivateKey "ecdsa")).Cert "Key" (genPrivateKey "ecdsa") "-"`}

// shortRandom is random text of up to three characters, or cut to them.
var shortRandom = lazyregexp.New(`\b(rand(AlphaNum|Alpha|Ascii|Bytes)\s+[1-3]\b|[1-3]\s*\|\s*rand(AlphaNum|Alpha|Ascii|Bytes)\b|(trunc|substr 0)\s+[1-3]\b)`)

// certificatesOfOneKey replaces the functions that make a certificate by ones that take a key, all the same new one.
// One other key shows as well as many what is generated. If the last argument comes out of a pipe, the key isn't in its place, and rendering fails.
func certificatesOfOneKey() (map[string]substitution, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	return keyedVariants(fmt.Sprintf(`(b64dec "%s")`, base64.StdEncoding.EncodeToString([]byte(key)))), nil
}

// A Rerenderer renders a chart again with the same input to find values that change
// with each rendering.
type Rerenderer struct {
	chart     *Chart
	in        Input
	functions map[string]bool
	usesTpl   bool // values and files may be templates
	hashes    bool
	short     func() bool // reports whether something random is so short that it may come out again
	begun     *rendering  // by RenderTwice, for the first RenderAgain; nil when there is none
	// begunWithHashInputs is the same for TakeHashInputs.
	begunWithHashInputs *rendering
	times               int // it was rendered again

	// A rendering has shown that no function of fewResults is called.
	fewResultsUnused atomic.Bool
}

// NewRerenderer prepares repeated renderings. It reads nothing from the cluster. Lookups
// get the answers of the first rendering only if both share in.LookupCache.
func (c *Chart) NewRerenderer(in Input) *Rerenderer {
	r := &Rerenderer{chart: c, in: in, functions: map[string]bool{}}
	note := func(text string) string {
		return replaceCalls(text, true, nil, func(name string) {
			r.usesTpl, r.hashes = r.usesTpl || name == "tpl", r.hashes || hashInputs[name].name != ""
			if nondeterministic[name] > 0 {
				r.functions[name] = true
			}
		})
	}
	eachChartText(c.Helm, func(text []byte) {
		if bytes.Contains(text, []byte("{{")) { // most files are large and have no templates: they aren't copied
			note(string(text))
		}
	})
	replaceTexts(copyMap(c.Helm.Values), note)
	replaceTexts(copyMap(in.Values), note)
	r.short = sync.OnceValue(r.findsShort)
	return r
}

// IsNondeterministic reports whether a template, value or file calls a function that makes a
// difference, or a post-renderer may. Otherwise the chart comes out the same each time.
func (r *Rerenderer) IsNondeterministic() bool {
	return len(r.functions) > 0 || len(r.in.PostRenderer) > 0
}

// HashesFound reports whether a template calls a hash function.
func (r *Rerenderer) HashesFound() bool { return r.hashes }

// RendersNeeded is how many renderings show every difference. If byChance, further ones may show
// more: what is chosen from few possibilities may come out the same several times. The first RenderAgain may
// lower both.
func (r *Rerenderer) RendersNeeded() (renders int, byChance bool) {
	renders = min(1, len(r.in.PostRenderer))
	for name := range r.functions {
		if n := nondeterministic[name]; n < fewResults || !r.fewResultsUnused.Load() {
			renders = max(renders, n)
		}
	}
	if len(r.functions) > 0 && renders < fewResults && r.short() {
		renders = fewResults
	}
	return renders, renders >= fewResults
}

// findsShort reports whether something random in what may be evaluated is so short that it may come
// out again. Files, such as definitions, are evaluated only by tpl.
func (r *Rerenderer) findsShort() bool {
	short := false
	find := func(text []byte) { short = short || hasShortRandom(text) }
	if r.usesTpl {
		eachChartText(r.chart.Helm, find)
		return short
	}
	for _, c := range allCharts(r.chart.Helm) {
		for _, f := range c.Templates {
			find(f.Data)
		}
	}
	return short
}

// hasShortRandom searches a text. Most call nothing, or have no word of what is searched for, and the
// expression takes its time with megabytes of definitions and dashboards.
func hasShortRandom(text []byte) bool {
	if !bytes.Contains(text, []byte("{{")) {
		return false
	}
	for _, word := range []string{"rand", "trunc", "substr 0"} {
		if bytes.Contains(text, []byte(word)) {
			return shortRandom().Match(text)
		}
	}
	return false
}

// RenderAgain renders the chart again, as another run would. Salted hashes are replaced by
// their input, see substitutes.
func (r *Rerenderer) RenderAgain(ctx context.Context) (*Rendered, error) {
	begun := r.begun
	r.begun = nil
	if out := begun.take(ctx); out != nil {
		return out, nil
	}
	first := r.times == 0
	return r.renderWith(ctx, r.in, r.nextSubstitutes(), first)
}

// renderWithOneKey renders the chart with substitutes, and with one new key for all certificates. If
// that fails, each has its own.
func (r *Rerenderer) renderWithOneKey(ctx context.Context, in Input, instead map[string]substitution) (*Rendered, error) {
	if r.MakesCertificates() {
		oneKey, err := certificatesOfOneKey()
		if err != nil {
			return nil, err
		}
		maps.Copy(oneKey, instead)
		if out, err := r.render(ctx, in, oneKey); err == nil {
			return out, nil
		}
	}
	return r.render(ctx, in, instead)
}

// renderWith renders the chart with substitutes. The first time, it tries it with functions
// of fewResults that fail: many charts have one in a branch that is never taken, and need no further
// renderings for it.
func (r *Rerenderer) renderWith(ctx context.Context, in Input, instead map[string]substitution, first bool) (*Rendered, error) {
	if functions := r.functionsOfFewResults(); first && len(functions) > 0 {
		failing := maps.Clone(instead)
		for _, name := range functions {
			failing[name] = substitution{name: `print (fail "few results")`}
		}
		if out, err := r.renderWithOneKey(ctx, in, failing); err == nil {
			r.fewResultsUnused.Store(true)
			return out, nil
		}
	}
	return r.renderWithOneKey(ctx, in, instead)
}

// functionsOfFewResults lists those that the chart's text has.
func (r *Rerenderer) functionsOfFewResults() []string {
	var names []string
	for name := range r.functions {
		if nondeterministic[name] == fewResults {
			names = append(names, name)
		}
	}
	return names
}

// nextSubstitutes are the changes to the chart for the next time it is rendered again.
func (r *Rerenderer) nextSubstitutes() map[string]substitution {
	all := maps.Clone(substitutes)
	maps.Copy(all, reordered[r.times%len(reordered)])
	r.times++
	return all
}

// RenderWithHashInputs renders the chart with the input of hash functions in base64 in place
// of the hashes. Keys and certificates are random ones that take no time, because they are only
// searched for in these inputs. A chart that asks for more of them is rendered with real ones.
func (r *Rerenderer) RenderWithHashInputs(ctx context.Context) (*Rendered, error) {
	return r.renderHashInputs(ctx, r.in)
}

func (r *Rerenderer) renderHashInputs(ctx context.Context, in Input) (*Rendered, error) {
	if r.MakesKeys() {
		quick := maps.Clone(hashInputs)
		maps.Copy(quick, quickKeys)
		if out, err := r.render(ctx, in, quick); err == nil {
			return out, nil
		}
	}
	return r.render(ctx, in, hashInputs)
}

func (r *Rerenderer) render(ctx context.Context, in Input, instead map[string]substitution) (*Rendered, error) {
	in.Beside = nil // that of the first rendering is enough
	changed := &Chart{Helm: copyChart(r.chart.Helm)}
	change := func(text string) string { return replaceCalls(text, true, instead, func(string) {}) }
	rewriteTexts(changed.Helm, r.usesTpl, change)
	if r.usesTpl {
		in.Values = replaceTexts(copyMap(in.Values), change).(map[string]any)
	}
	out, err := changed.Render(ctx, in)
	if err != nil {
		return nil, err
	}
	// Text that isn't evaluated but looks like a template, such as a dashboard, is restored.
	back := func(text string) string { return restoreCalls(text, instead) }
	out.Manifest, out.Notes = back(out.Manifest), back(out.Notes)
	for _, h := range out.Hooks {
		h.Manifest = back(h.Manifest)
	}
	return out, nil
}

// restoreCalls restores the original calls in text that wasn't evaluated as a template.
func restoreCalls(text string, instead map[string]substitution) string {
	for name, other := range instead {
		if other.suffix != "" {
			text = strings.ReplaceAll(text, other.suffix, "")
			text = strings.ReplaceAll(text, strings.ReplaceAll(other.suffix, `"`, `\"`), "")
		}
		if !strings.Contains(other.name, " ") {
			continue // a single word may be part of the chart's text
		}
		text = strings.ReplaceAll(text, other.name, name)
		text = strings.ReplaceAll(text, strings.ReplaceAll(other.name, `"`, `\"`), name)
	}
	return text
}

// RenderRepeatedly renders the chart as often as needed to see which values differ between
// renderings with the same input. It returns nothing when no template, value or file calls a
// nondeterministic function. It reads the cluster as Render does.
func (r *Rerenderer) RenderRepeatedly(ctx context.Context) ([]*Rendered, error) {
	var out []*Rendered
	for {
		if needed, _ := r.RendersNeeded(); len(out) >= needed {
			return out, nil
		}
		rendered, err := r.RenderAgain(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, rendered)
	}
}

// eachChartText calls do for all text of a chart and its subcharts that may be evaluated,
// except the chart's own values.
func eachChartText(c *helmchart.Chart, do func([]byte)) {
	for _, part := range allCharts(c) {
		for _, f := range slices.Concat(part.Templates, part.Files) {
			do(f.Data)
		}
		if part != c {
			replaceTexts(copyMap(part.Values), func(text string) string { do([]byte(text)); return text })
		}
	}
}

// rewriteTexts changes all text of a chart that may be evaluated: templates, and with tpl
// also values and files. The chart must be a copy.
func rewriteTexts(c *helmchart.Chart, tpl bool, change func(string) string) {
	files := func(files []*helmchart.File) []*helmchart.File {
		files = slices.Clone(files)
		for i, f := range files {
			if text := change(string(f.Data)); text != string(f.Data) {
				files[i] = &helmchart.File{Name: f.Name, Data: []byte(text)}
			}
		}
		return files
	}
	for _, part := range allCharts(c) {
		part.Templates = files(part.Templates)
		if tpl {
			part.Files = files(part.Files)
			replaceTexts(part.Values, change)
		}
	}
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
