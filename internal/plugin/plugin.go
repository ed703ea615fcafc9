// Package plugin finds, installs and runs Helm's plugins, where and as Helm 3
// does, so that both programs see the same ones.
package plugin

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	helmplugin "helm.sh/helm/v3/pkg/plugin"
	"sigs.k8s.io/yaml"

	"deployer/internal/lazyregexp"
)

// A Plugin is an installed plugin.
type Plugin struct {
	helmplugin.Metadata        // what its plugin.yaml states
	Dir                 string // its directory, or the link to it
}

// A BrokenError is a directory among the plugins that can't be used.
type BrokenError struct {
	Name string // the name of its command, as far as that is known
	Dir  string
	Err  error
}

func (e *BrokenError) Error() string { return e.Err.Error() }
func (e *BrokenError) Unwrap() error { return e.Err }

// Hint names the directory to repair.
func (e *BrokenError) Hint() string { return "repair or delete " + e.Dir }

// validName is what a plugin may be called.
// (helm.sh/helm/v3/pkg/plugin/plugin.go, validPluginName)
var validName = lazyregexp.New(`^[A-Za-z0-9_-]+$`)

// Load reads the plugin of a directory.
func Load(dir string) (*Plugin, error) {
	path := filepath.Join(dir, helmplugin.PluginFileName)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("failed to read plugin at %q: %w", path, err)
	}
	p := &Plugin{Dir: dir}
	if err := yaml.UnmarshalStrict(data, &p.Metadata); err != nil {
		return nil, fmt.Errorf("failed to load plugin at %q: %w", path, err)
	}
	if !validName().MatchString(p.Name) {
		return nil, fmt.Errorf("invalid plugin name at %q: %q may contain only letters, digits, - and _", path, p.Name)
	}
	p.Usage = printable(p.Usage)
	return p, nil
}

// printable is a text on one line, without control characters.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return -1
	}, text)
}

// Find loads all plugins of a list of directories, such as HELM_PLUGINS, in the order of
// their paths. Broken plugins are returned separately, also the second of two with the same
// name.
func Find(directories string) ([]*Plugin, []*BrokenError) {
	var found []*Plugin
	var broken []*BrokenError
	byName := map[string]*Plugin{}
	for _, dir := range filepath.SplitList(directories) {
		matches, err := filepath.Glob(filepath.Join(dir, "*", helmplugin.PluginFileName))
		if err != nil {
			broken = append(broken, &BrokenError{Dir: dir, Err: fmt.Errorf("failed to find plugins in %q: %w", dir, err)})
		}
		for _, match := range matches {
			dir := filepath.Dir(match)
			p, err := Load(dir)
			switch {
			case err != nil: // its directory says what it may be called: helm-diff is diff
				broken = append(broken, &BrokenError{Name: strings.TrimPrefix(filepath.Base(dir), "helm-"), Dir: dir, Err: err})
			case byName[p.Name] != nil:
				err = fmt.Errorf("two plugins claim the name %q at %q and %q", p.Name, byName[p.Name].Dir, dir)
				broken = append(broken, &BrokenError{Name: p.Name, Dir: dir, Err: err})
			default:
				byName[p.Name] = p
				found = append(found, p)
			}
		}
	}
	return found, broken
}

// FindByName finds a plugin by its name; nil, nil when there is none. A broken plugin
// of that name, or of that directory, is a BrokenError.
func FindByName(directories, name string) (*Plugin, error) {
	found, broken := Find(directories)
	for _, b := range broken {
		if b.Name == name || filepath.Base(b.Dir) == name {
			return nil, b
		}
	}
	if i := slices.IndexFunc(found, func(p *Plugin) bool { return p.Name == name }); i >= 0 {
		return found[i], nil
	}
	return nil, nil
}
