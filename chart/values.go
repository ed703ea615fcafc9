package chart

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/getter"
	"sigs.k8s.io/yaml"

	"deployer/chart/internal/yamltext"
	"deployer/internal/interruptible"
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
	if err := interruptible.Run(r.ctx, func() (err error) {
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
