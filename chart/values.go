package chart

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"helm.sh/helm/v3/pkg/getter"
	"sigs.k8s.io/yaml"
)

// Kind is the flag a source of values was given with.
type Kind string

// The kinds of sources, in the order in which Helm lays them over each other.
// (helm.sh/helm/v3/pkg/cli/values/options.go)
const (
	ValuesFile Kind = "--values"      // files, URLs or "-", separated by commas
	SetJSON    Kind = "--set-json"    // key=JSON,…; or one JSON object, as in Helm 4
	Set        Kind = "--set"         // key=value,…
	SetString  Kind = "--set-string"  // key=value,…; every value is a string
	SetFile    Kind = "--set-file"    // key=path,…; the value is the file's content
	SetLiteral Kind = "--set-literal" // key=value; nothing in the value has a meaning
)

// A Source is one flag of the command line that gives values.
type Source struct {
	Kind  Kind
	Value string // as typed
}

// From is where Values reads what sources refer to.
type From struct {
	Stdin    io.Reader // for "-"; nil is empty
	Settings Settings
	// Env reads the environment variables that name private keys; nil means os.Getenv.
	Env func(string) string
}

// Values lays sources over each other: first all files, then --set-json,
// --set, --set-string, --set-file and --set-literal; within one kind in the
// order given. Chart defaults are not in it; Render adds them.
//
// Values files that SOPS or age has encrypted are decrypted in memory: by the
// user's own program sops, and with the private keys of DEPLOYER_AGE_IDENTITY,
// SOPS_AGE_KEY_FILE and SOPS_AGE_KEY. See *DecryptError.
//
// All bad sources are in the error, one line each. It names flags, files and
// keys, never the values given by --set and its kin.
func Values(ctx context.Context, sources []Source, from From) (map[string]any, error) {
	if from.Env == nil {
		from.Env = os.Getenv
	}
	r := &reader{ctx: ctx, stdin: from.Stdin, getters: from.Settings.Getters(Access{}), decrypter: decrypter{from.Env}}
	values, problems := map[string]any{}, []error(nil)
	for _, kind := range []Kind{ValuesFile, SetJSON, Set, SetString, SetFile, SetLiteral} {
		for _, s := range sources {
			if s.Kind != kind {
				continue
			}
			var err error
			if values, err = r.add(values, s); err != nil {
				problems = append(problems, err)
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return values, nil
}

// reader reads the files behind sources.
type reader struct {
	ctx       context.Context // of the one call that made the reader
	stdin     io.Reader
	stdinRead bool
	getters   getter.Providers
	decrypter decrypter
}

// add returns values with s laid over them. It may change values.
func (r *reader) add(values map[string]any, s Source) (map[string]any, error) {
	if s.Kind == ValuesFile {
		return r.addFiles(values, s.Value)
	}
	return values, r.set(values, s)
}

func (r *reader) addFiles(values map[string]any, list string) (map[string]any, error) {
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
		layer, err := r.file(name)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		values = overlay(values, layer)
	}
	return values, errors.Join(problems...)
}

func (r *reader) file(name string) (map[string]any, error) {
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
		return nil, fmt.Errorf("failed to parse %s: %w", name, secretProblem(err)) // Helm's words
	} else if err != nil {
		return nil, fmt.Errorf("failed to parse %s: %w", name, yamlProblem(data, err))
	}
	return layer, nil
}

// read returns the content of a file, of a URL, or of standard input for "-".
func (r *reader) read(name string) ([]byte, error) {
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	if strings.TrimSpace(name) == "-" {
		return r.readStdin()
	}
	u, err := url.Parse(name)
	if err != nil {
		return plainFile(name)
	}
	get, err := r.getters.ByScheme(u.Scheme)
	if err != nil {
		return plainFile(name)
	}
	return abandonable(r.ctx, func() ([]byte, error) {
		data, err := get.Get(name, getter.WithURL(name))
		if err != nil {
			return nil, err
		}
		return data.Bytes(), nil
	})
}

func plainFile(name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	var path *os.PathError
	if errors.As(err, &path) {
		return nil, path.Err // the name is in the label already
	}
	return data, err
}

func (r *reader) readStdin() ([]byte, error) {
	if r.stdinRead {
		return nil, errors.New("standard input was read already; use - once")
	}
	r.stdinRead = true
	if r.stdin == nil {
		return nil, nil
	}
	return io.ReadAll(r.stdin)
}

// overlay returns a with b over it: maps are merged, all else is replaced.
func overlay(a, b map[string]any) map[string]any {
	out := make(map[string]any, len(a)+len(b))
	for k, v := range a {
		out[k] = v
	}
	for k, v := range b {
		over, ok := v.(map[string]any)
		under, both := out[k].(map[string]any)
		if ok && both {
			v = overlay(under, over)
		}
		out[k] = v
	}
	return out
}

// yamlProblem says what is wrong with a values file.
func yamlProblem(data []byte, err error) error {
	var other any
	if yaml.Unmarshal(data, &other) != nil {
		return retell(err, "", 0)
	}
	return errors.New("the file has no keys at its top level, as values must")
}
