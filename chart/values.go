package chart

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"strings"
	"unicode"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/getter"
	"helm.sh/helm/v3/pkg/strvals"
	"sigs.k8s.io/yaml"

	"deployer/chart/internal/yamltext"
	"deployer/internal/kube"
)

// ValuesSourceKind is the flag that gives a source of values.
type ValuesSourceKind string

// The kinds of sources, in the order in which Helm merges them. Later ones override earlier
// ones.
// (helm.sh/helm/v3/pkg/cli/values/options.go)
const (
	ValuesFile ValuesSourceKind = "--values"      // files, URLs or "-", separated by commas
	SetJSON    ValuesSourceKind = "--set-json"    // key=JSON,…; or one JSON object, as in Helm 4
	Set        ValuesSourceKind = "--set"         // key=value,…
	SetString  ValuesSourceKind = "--set-string"  // key=value,…; every value is a string
	SetFile    ValuesSourceKind = "--set-file"    // key=path,…; the value is the file's content
	SetLiteral ValuesSourceKind = "--set-literal" // key=value; the value is taken literally
)

// A ValuesSource is one flag of the command line that gives values.
type ValuesSource struct {
	Kind  ValuesSourceKind
	Value string // as typed
}

// ValuesOptions say how Values reads the files and URLs of sources.
type ValuesOptions struct {
	Stdin    io.Reader // for "-"; nil is empty
	Settings Settings
	Warn     func(text string) // of files that count only in part; may be nil
	// Getenv reads the environment variables that name private keys; nil means os.Getenv.
	Getenv func(string) string
}

// Values merges sources. Later ones override earlier ones: first all files, then --set-json,
// --set, --set-string, --set-file and --set-literal; sources of one kind in the order given.
// Render adds the chart's defaults.
//
// Values files that SOPS or age has encrypted are decrypted in memory: by the
// user's own program sops, and with the private keys of DEPLOYER_AGE_IDENTITY,
// SOPS_AGE_KEY_FILE and SOPS_AGE_KEY. See *DecryptError.
//
// The error has one line for each bad source. It names flags, files and keys, never values.
func Values(ctx context.Context, sources []ValuesSource, from ValuesOptions) (map[string]any, error) {
	if from.Getenv == nil {
		from.Getenv = os.Getenv
	}
	r := &valuesReader{ctx: ctx, stdin: from.Stdin, getters: from.Settings.Getters(Access{}, ""), decrypter: decrypter{from.Getenv}, warn: from.Warn}
	values, problems := map[string]any{}, []error(nil)
	for _, kind := range []ValuesSourceKind{ValuesFile, SetJSON, Set, SetString, SetFile, SetLiteral} {
		for _, s := range sources {
			if s.Kind != kind {
				continue
			}
			var err error
			if kind == ValuesFile {
				values, err = r.addFiles(values, s.Value)
			} else {
				err = r.set(values, s)
			}
			problems = append(problems, err)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return values, nil
}

// valuesReader reads the files behind sources.
type valuesReader struct {
	ctx       context.Context // of the one call that made the reader
	stdin     io.Reader
	stdinRead bool
	getters   getter.Providers
	decrypter decrypter
	warn      func(string)
}

// addFiles returns values with those of a list of files laid over them.
func (r *valuesReader) addFiles(values map[string]any, list string) (map[string]any, error) {
	if list == "" {
		return values, nil
	}
	// Helm's -f is a pflag StringSlice: one line of CSV.
	names, err := csv.NewReader(strings.NewReader(list)).Read()
	if err != nil {
		return values, fmt.Errorf("--values %s: not a list of file names: %w", list, err)
	}
	var problems []error
	for _, name := range names {
		layer, err := r.readValuesFile(name)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		values = mergeMaps(values, layer)
	}
	return values, errors.Join(problems...)
}

func (r *valuesReader) readValuesFile(name string) (map[string]any, error) {
	data, err := r.read(name)
	if err != nil {
		return nil, fmt.Errorf("--values %s: %w", name, err)
	}
	data, decrypted, err := r.decrypter.decrypt(r.ctx, data)
	if err != nil {
		return nil, fmt.Errorf("--values %s: %w", name, err)
	}
	layer := map[string]any{}
	if err := yaml.Unmarshal(data, &layer); decrypted && err != nil {
		return nil, fmt.Errorf("failed to parse %s: %w", name, decryptedFileError(err)) // Helm's words
	} else if err != nil {
		return nil, fmt.Errorf("failed to parse %s: %w", name, valuesFileError(data, err))
	}
	if text := ignoredDocumentsWarning(name, data); text != "" && r.warn != nil {
		r.warn(text)
	}
	return layer, nil
}

// ignoredDocumentsWarning says that only the first document of a values file counts; empty if there is no other one.
func ignoredDocumentsWarning(file string, text []byte) string {
	ignored := yamltext.IgnoredDocuments(string(text))
	if ignored == "" {
		return ""
	}
	return fmt.Sprintf("%s: %s is ignored: only the first YAML document of a values file counts, as in Helm 3 (Helm 4 merges them)", file, ignored)
}

// read returns the content of a file, of a URL, or of standard input for "-". None of them may ever come to an end.
func (r *valuesReader) read(name string) ([]byte, error) {
	var data []byte
	if err := kube.WaitFor(r.ctx, func() (err error) {
		data, err = r.readToEnd(name)
		return err
	}); err != nil {
		return nil, err
	}
	return data, nil
}

func (r *valuesReader) readToEnd(name string) ([]byte, error) {
	if strings.TrimSpace(name) == "-" {
		return r.readStdin()
	}
	u, err := url.Parse(name)
	if err != nil {
		return readFile(name)
	}
	get, err := r.getters.ByScheme(u.Scheme)
	if err != nil {
		return readFile(name)
	}
	data, err := get.Get(name, getter.WithURL(name))
	if err != nil {
		return nil, err
	}
	return data.Bytes(), nil
}

func readFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	var data []byte
	if err == nil {
		defer file.Close()
		data, err = readLimited(file)
	}
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return nil, path.Err // the caller adds the name
	}
	return data, err
}

// maxValuesFile bounds a file of values, in bytes, also after decryption: a pipe without an end
// would take all memory.
const maxValuesFile = 64 << 20

func readLimited(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxValuesFile+1))
	if err == nil && len(data) > maxValuesFile {
		err = fmt.Errorf("it has more than %d MiB", maxValuesFile>>20)
	}
	return data, err
}

func (r *valuesReader) readStdin() ([]byte, error) {
	if r.stdinRead {
		return nil, errors.New("standard input was read already; use - once")
	}
	r.stdinRead = true
	if r.stdin == nil {
		return nil, nil
	}
	return readLimited(r.stdin)
}

// mergeMaps returns a with b over it: maps are merged, all else is replaced.
func mergeMaps(a, b map[string]any) map[string]any {
	out := make(map[string]any, len(a)+len(b))
	maps.Copy(out, a)
	for k, v := range b {
		over, ok := v.(map[string]any)
		under, both := out[k].(map[string]any)
		if ok && both {
			v = mergeMaps(under, over)
		}
		out[k] = v
	}
	return out
}

// valuesFileError says what is wrong with a values file.
func valuesFileError(data []byte, err error) error {
	var other any
	if yaml.Unmarshal(data, &other) != nil {
		return reworded(err, "", 0)
	}
	return errors.New("the file has no keys at its top level, as values must")
}

// DefaultValues returns the default values of a chart and its subcharts. A nil chart has
// none.
func DefaultValues(root *helmchart.Chart) []map[string]any {
	if root == nil {
		return nil
	}
	var out []map[string]any
	for _, c := range allCharts(root) {
		out = append(out, c.Values)
	}
	return out
}

// AllValues are the values a release works with: the user's over the chart's
// defaults, as `helm get values --all` shows them. A record of another tool may have no chart,
// and no defaults then. It changes no argument.
func AllValues(c *helmchart.Chart, user map[string]any) (map[string]any, error) {
	if c == nil {
		return copyMap(user), nil
	}
	values, err := chartutil.CoalesceValues(c, copyMap(user))
	if err != nil {
		return nil, fmt.Errorf("computing the values of chart %s: %w", c.Name(), err)
	}
	return values, nil
}

// SetError says that a --set flag, or a similar one, can't be parsed. It contains the key
// but not the value, which may be a secret.
type SetError struct {
	Flag ValuesSourceKind
	Key  string // up to the first "="; empty when there is none
	Err  error
}

func (e *SetError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("failed parsing %s data: %v", e.Flag, e.Err) // Helm's words
	}
	return fmt.Sprintf("failed parsing %s data: %s: %v", e.Flag, e.Key, e.Err)
}

func (e *SetError) Unwrap() error { return e.Err }

// set writes the values of a --set flag into values.
func (r *valuesReader) set(values map[string]any, s ValuesSource) error {
	var err, unread error
	switch s.Kind {
	case SetJSON:
		err = setJSON(s.Value, values)
	case Set:
		err = strvals.ParseInto(s.Value, values)
	case SetString:
		err = strvals.ParseIntoString(s.Value, values)
	case SetFile:
		err = strvals.ParseIntoFile(s.Value, values, func(name []rune) (any, error) {
			data, err := r.read(string(name))
			if err != nil {
				unread = fmt.Errorf("file %s: %w", string(name), err)
			}
			return string(data), err
		})
	case SetLiteral:
		err = strvals.ParseLiteralInto(s.Value, values)
	default:
		return fmt.Errorf("%s is not a source of values", s.Kind)
	}
	if err == nil {
		return nil
	}
	key, _, found := strings.Cut(s.Value, "=")
	if !found {
		return &SetError{Flag: s.Kind, Err: errors.New(`there is no "=" in it; write key=value`)}
	}
	if unread != nil {
		return &SetError{Flag: s.Kind, Key: key, Err: unread}
	}
	return &SetError{Flag: s.Kind, Key: key, Err: setReason(s, err)}
}

// setJSON takes Helm 3's key=JSON and Helm 4's whole object.
func setJSON(text string, values map[string]any) error {
	var object map[string]any
	if strings.HasPrefix(strings.TrimSpace(text), "{") && json.Unmarshal([]byte(text), &object) == nil {
		maps.Copy(values, mergeMaps(values, object))
		return nil
	}
	return strvals.ParseJSON(text, values)
}

// setReason returns the error of strvals without any part of the value.
func setReason(s ValuesSource, err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("its value is not JSON (at byte %d)", syntax.Offset)
	}
	switch {
	case s.Kind == SetJSON:
		return errors.New("its value is not JSON")
	case errors.Is(err, os.ErrNotExist):
		return os.ErrNotExist
	}
	for i, part := range splitSetFlag(s.Value) {
		if !strings.Contains(part, "=") {
			return fmt.Errorf(`part %d after a comma has no "="; write \, for a comma inside a value`, i+1)
		}
	}
	_, value, _ := strings.Cut(s.Value, "=")
	for _, piece := range strings.FieldsFunc(value, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(piece) > 2 && strings.Contains(err.Error(), piece) { // a shorter piece may be there by chance
			return errors.New(`it can't be set there; write \ before a comma, a dot or a brace that is part of a key or value`)
		}
	}
	return err
}

// splitSetFlag splits a --set value at its commas, braces and escapes respected.
func splitSetFlag(text string) []string {
	var out []string
	var field strings.Builder
	depth, escaped := 0, false
	for _, r := range text {
		switch {
		case escaped:
			escaped = false
		case r == '\\':
			escaped = true
		case r == '{':
			depth++
		case r == '}':
			depth--
		case r == ',' && depth <= 0:
			out = append(out, field.String())
			field.Reset()
			continue
		}
		field.WriteRune(r)
	}
	return append(out, field.String())
}

// ReuseMode says what an upgrade takes from the values of the previous revision.
// (helm.sh/helm/v3/pkg/action/upgrade.go, reuseValues)
type ReuseMode string

const (
	// ReuseDefault takes the previous user values when there are no new ones,
	// and nothing of them when there are.
	ReuseDefault ReuseMode = ""
	// ResetValues takes nothing.
	ResetValues ReuseMode = "--reset-values"
	// ReuseValues lays new values over the previous ones, and those over the
	// defaults of the previous chart instead of the new one's.
	ReuseValues ReuseMode = "--reuse-values"
	// ResetThenReuseValues lays new values over the previous ones, and those
	// over the defaults of the new chart.
	ResetThenReuseValues ReuseMode = "--reset-then-reuse-values"
)

// Previous is the revision whose values may be used again.
type Previous struct {
	Chart  *helmchart.Chart // nil when there was none
	Values map[string]any   // the user's values
}

// ReusedByDefault reports whether the previous user values are reused because neither new
// values nor a flag for reusing them are given.
func (p Previous) ReusedByDefault(mode ReuseMode, values map[string]any) bool {
	return mode == ReuseDefault && len(values) == 0 && len(p.Values) > 0
}

// WithPreviousValues returns what to render: the chart, with other defaults under
// ReuseValues, and the user's values, which are what the release records.
// It changes none of its arguments.
func (c *Chart) WithPreviousValues(mode ReuseMode, previous Previous, values map[string]any) (*Chart, map[string]any, error) {
	values, old := copyMap(values), copyMap(previous.Values)
	switch mode {
	case ResetValues:
		return c, values, nil
	case ResetThenReuseValues:
		return c, chartutil.CoalesceTables(values, old), nil
	case ReuseDefault:
		if previous.ReusedByDefault(mode, values) {
			values = old
		}
		return c, values, nil
	case ReuseValues:
		if previous.Chart == nil {
			return c, chartutil.CoalesceTables(values, old), nil
		}
		defaults, err := chartutil.CoalesceValues(previous.Chart, old)
		if err != nil {
			return nil, nil, fmt.Errorf("computing the values of the previous revision: %w", err)
		}
		out := *c
		out.Helm = copyChart(c.Helm)
		out.Helm.Values = copyMap(defaults)
		return &out, chartutil.CoalesceTables(values, old), nil
	}
	return nil, nil, fmt.Errorf("%q is not a way to reuse values", mode)
}
