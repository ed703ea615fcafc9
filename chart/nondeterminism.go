package chart

import (
	"bytes"
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"

	helmchart "helm.sh/helm/v3/pkg/chart"
)

// nondeterministic maps template functions whose result differs between renderings to how
// many renderings may be needed to see it: with few possible results, the same may occur
// again. keys and values return map entries in random order.
// https://masterminds.github.io/sprig/
var nondeterministic = map[string]int{
	"randAlphaNum": 1, "randAlpha": 1, "randAscii": 1, "randBytes": 1, "uuidv4": 1,
	"bcrypt": 1, "htpasswd": 1, "encryptAES": 1, "genPrivateKey": 1,
	"genCA": 1, "genCAWithKey": 1, "genSelfSignedCert": 1, "genSelfSignedCertWithKey": 1,
	"genSignedCert": 1, "genSignedCertWithKey": 1,
	"randNumeric": 4, "randInt": 4, "shuffle": 4, "keys": 4, "values": 4, "getHostByName": 4,
	"now": 1, "ago": 1,
}

// substitutes replace functions when a chart is rendered again. The current time would be
// the same again, so it is replaced by one with another year, month, day, weekday, hour,
// minute and second, and a duration by other text. Salted hashes and ciphers are replaced by
// their input in hexadecimal, to check whether a recorded one was made of the same input.
var substitutes = map[string]string{
	"now":        `(dateModify "+9685h7m3s" now)`,
	"ago":        `printf "%T-ago"`,
	"bcrypt":     `printf "%[1]x"`,
	"htpasswd":   `printf "%[1]s:%[2]x"`,
	"encryptAES": `printf "%[1]x.%[2]x"`,
}

// hashInputs replace hash functions: they return the input in base64.
var hashInputs = map[string]string{
	"sha1sum": "b64enc", "sha256sum": "b64enc", "sha512sum": "b64enc", "adler32sum": "b64enc",
}

// shortRandom is random text of up to three characters, or cut to them.
var shortRandom = regexp.MustCompile(`\b(rand(AlphaNum|Alpha|Ascii|Bytes)\s+[1-3]\b|[1-3]\s*\|\s*rand(AlphaNum|Alpha|Ascii|Bytes)\b|(trunc|substr 0)\s+[1-3]\b)`)

// A Nondeterminism renders a chart again with the same input to find values that change
// with each rendering.
type Rerenderer struct {
	chart     *Chart
	in        Input
	functions map[string]bool
	usesTpl   bool // values and files may be templates
	hashes    bool
	short     func() bool // reports whether something random is so short that it may come out again
	begun     *rendering  // by RenderTwice, for the first RenderAgain; nil when there is none
}

// NewRerenderer prepares repeated renderings. It reads nothing from the cluster. Lookups
// get the answers of the first rendering only if both share in.LookupCache.
func (c *Chart) NewRerenderer(in Input) *Rerenderer {
	r := &Rerenderer{chart: c, in: in, functions: map[string]bool{}}
	note := func(text string) string {
		return replaceCalls(text, nil, func(name string) {
			r.usesTpl, r.hashes = r.usesTpl || name == "tpl", r.hashes || hashInputs[name] != ""
			if nondeterministic[name] > 0 {
				r.functions[name] = true
			}
		})
	}
	eachChartText(c.Helm, func(text []byte) { note(string(text)) })
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

// OneRenderSuffices reports whether one rendering is enough to see every difference: what is
// chosen from few possibilities may come out the same twice.
func (r *Rerenderer) OneRenderSuffices() bool { return r.rendersNeeded() <= 1 }

func (r *Rerenderer) rendersNeeded() int {
	times := min(1, len(r.in.PostRenderer))
	for name := range r.functions {
		times = max(times, nondeterministic[name])
	}
	if len(r.functions) > 0 && times < 4 && r.short() {
		times = 4
	}
	return times
}

// findsShort reports whether something random in what may be evaluated is so short that it may come
// out again. Files, such as definitions, are evaluated only by tpl.
func (r *Rerenderer) findsShort() bool {
	short := false
	find := func(text []byte) { short = short || hasShortRandom(text) }
	if r.usesTpl {
		eachChartText(r.chart.Helm, find)
	} else {
		eachTemplate(r.chart.Helm, find)
	}
	return short
}

// hasShortRandom searches a text. Most have no word of what is searched for, and the expression takes
// its time with megabytes of dashboards.
func hasShortRandom(text []byte) bool {
	for _, word := range []string{"rand", "trunc", "substr 0"} {
		if bytes.Contains(text, []byte(word)) {
			return shortRandom.Match(text)
		}
	}
	return false
}

// RenderAgain renders the chart again, as another run would. Salted hashes are replaced by
// their input, see substitutes.
func (r *Rerenderer) RenderAgain(ctx context.Context) (*Rendered, error) {
	if out := r.takeBegun(ctx); out != nil {
		return out, nil
	}
	return r.render(ctx, r.in, substitutes)
}

// RenderWithHashInputs renders the chart with the input of hash functions in base64 in place
// of the hashes.
func (r *Rerenderer) RenderWithHashInputs(ctx context.Context) (*Rendered, error) {
	return r.render(ctx, r.in, hashInputs)
}

func (r *Rerenderer) render(ctx context.Context, in Input, instead map[string]string) (*Rendered, error) {
	changed := &Chart{Helm: copyChart(r.chart.Helm)}
	change := func(text string) string { return replaceCalls(text, instead, func(string) {}) }
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
func restoreCalls(text string, instead map[string]string) string {
	for name, other := range instead {
		if !strings.Contains(other, " ") {
			continue // a single word may be part of the chart's text
		}
		text = strings.ReplaceAll(text, other, name)
		text = strings.ReplaceAll(text, strings.ReplaceAll(other, `"`, `\"`), name)
	}
	return text
}

// RenderRepeatedly renders the chart as often as needed to see which values differ between
// renderings with the same input. It returns nothing when no template, value or file calls a
// nondeterministic function. It reads the cluster as Render does.
func (c *Chart) RenderRepeatedly(ctx context.Context, in Input) ([]*Rendered, error) {
	return c.NewRerenderer(in).RenderRepeatedly(ctx)
}

// RenderRepeatedly is Chart.RenderRepeatedly for prepared renderings.
func (r *Rerenderer) RenderRepeatedly(ctx context.Context) ([]*Rendered, error) {
	var out []*Rendered
	for range r.rendersNeeded() {
		rendered, err := r.RenderAgain(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, rendered)
	}
	return out, nil
}

// eachChartText calls do for all text of a chart and its subcharts that may be evaluated,
// except the chart's own values.
func eachChartText(c *helmchart.Chart, do func([]byte)) {
	for _, f := range slices.Concat(c.Templates, c.Files) {
		do(f.Data)
	}
	for _, child := range c.Dependencies() {
		replaceTexts(copyMap(child.Values), func(text string) string { do([]byte(text)); return text })
		eachChartText(child, do)
	}
}

// eachTemplate calls do for the templates of a chart and its subcharts.
func eachTemplate(c *helmchart.Chart, do func([]byte)) {
	for _, f := range c.Templates {
		do(f.Data)
	}
	for _, child := range c.Dependencies() {
		eachTemplate(child, do)
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
	c.Templates = files(c.Templates)
	if tpl {
		c.Files = files(c.Files)
		replaceTexts(c.Values, change)
	}
	for _, child := range c.Dependencies() {
		rewriteTexts(child, tpl, change)
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
