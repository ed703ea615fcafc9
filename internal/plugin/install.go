package plugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	helmplugin "helm.sh/helm/v3/pkg/plugin"
	"helm.sh/helm/v3/pkg/plugin/cache"
	"helm.sh/helm/v3/pkg/plugin/installer"

	"deployer/internal/lazyregexp"
	"deployer/internal/program"
)

// Places are the directories of plugins.
type Places struct {
	Plugins string // where plugins are; new ones go to the first, when it is a list
	Cache   string // where they are fetched to
}

func (p Places) installDir() string {
	if list := filepath.SplitList(p.Plugins); len(list) > 0 {
		return list[0]
	}
	return p.Plugins
}

// cached is where a plugin is fetched to.
func (p Places) cached(name string) string { return filepath.Join(p.Cache, "plugins", name) }

// temporary makes a directory beside those of fetched plugins.
func (p Places) temporary(prefix string) (string, error) {
	if err := os.MkdirAll(p.cached(""), 0o755); err != nil {
		return "", err
	}
	return os.MkdirTemp(p.cached(""), prefix)
}

// A source is what a plugin is installed from: it puts the plugin into a
// directory that isn't there yet.
type source struct {
	name  string // of the directory
	fetch func(h Host, dir string) error
	link  bool // the directory is a link to what belongs to the user
}

// Install installs a plugin and runs its install hook. The source is a directory, which is
// linked, an archive, the URL of an archive, or a VCS repository, where version is a
// reference or a range of tags. A plugin that can't be used is removed again.
func (h Host) Install(ctx context.Context, places Places, from, version string) (*Plugin, error) {
	s, err := h.sourceOf(ctx, places, from, version)
	if err != nil {
		return nil, err
	}
	if version != "" && s.link {
		return nil, fmt.Errorf("--version selects a version in a repository, but %s is a directory", from)
	}
	dir := filepath.Join(places.installDir(), s.name)
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil, alreadyExists(dir)
	}
	if err := os.MkdirAll(places.installDir(), 0o755); err != nil {
		return nil, fmt.Errorf("creating the directory for plugins: %w", err)
	}
	p, err := h.install(ctx, places, s, dir)
	if err != nil {
		if rerr := os.RemoveAll(dir); rerr != nil { // of a link only the link
			err = errors.Join(err, fmt.Errorf("removing the plugin: %w", rerr))
		}
		return nil, err
	}
	return p, nil
}

func (h Host) install(ctx context.Context, places Places, s source, dir string) (*Plugin, error) {
	others, _ := Find(places.Plugins)
	if err := s.fetch(h, dir); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	p, err := Load(dir)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(others, func(other *Plugin) bool { return other.Name == p.Name }); i >= 0 {
		return nil, alreadyExists(fmt.Sprintf("%q is that in %s", p.Name, others[i].Dir))
	}
	if _, _, err := h.resolve(p); err != nil && p.isCallable() {
		return nil, err
	}
	if err := h.runHook(ctx, p, helmplugin.Install); err != nil {
		return nil, err
	}
	return p, h.checkUsable(p, s.link)
}

func alreadyExists(where string) error {
	return program.WithHint(fmt.Errorf("plugin already exists: %s", where), "see "+program.Name+" plugin update, or "+program.Name+" plugin uninstall")
}

// isCallable reports whether a plugin has a command. Others only provide downloaders or
// completions.
func (p *Plugin) isCallable() bool {
	return (len(p.PlatformCommand) > 0 || p.Metadata.Command != "") && len(p.Downloaders) == 0
}

// checkUsable returns an error when the plugin's own program can't be executed. The program of a
// linked plugin may be built later.
func (h Host) checkUsable(p *Plugin, linked bool) error {
	main, _, err := h.resolve(p)
	if err != nil || !strings.HasPrefix(main, p.Dir) {
		return nil
	}
	if _, err := os.Stat(main); err != nil && linked {
		return nil
	}
	return checkExecutable(p, main)
}

func (h Host) sourceOf(ctx context.Context, places Places, from, version string) (source, error) {
	info, err := os.Stat(from)
	switch {
	case err == nil && info.IsDir():
		return linkSource(from)
	case err == nil && isArchive(from):
		return source{name: archiveName(from), fetch: archiveSource(places, func() ([]byte, error) { return os.ReadFile(from) })}, nil
	case err == nil:
		return source{}, fmt.Errorf("expected plugin to be a folder: %s is neither a directory nor a .tgz or .tar.gz archive", from)
	case isRemoteArchive(ctx, from):
		return source{name: archiveName(from), fetch: archiveSource(places, func() ([]byte, error) { return download(ctx, from) })}, nil
	}
	return cloneSource(places, from, version)
}

// linkSource is a plugin in a directory of the user's, which may go on changing.
func linkSource(from string) (source, error) {
	abs, err := filepath.Abs(from)
	if err != nil {
		return source{}, fmt.Errorf("unable to get absolute path to plugin: %w", err)
	}
	return source{name: filepath.Base(abs), link: true, fetch: func(h Host, dir string) error {
		if _, err := os.Stat(filepath.Join(abs, helmplugin.PluginFileName)); err != nil {
			return fmt.Errorf("%s: %w", abs, installer.ErrMissingMetadata)
		}
		h.verbose("symlinking %s to %s", abs, dir)
		return os.Symlink(abs, dir)
	}}, nil
}

// cloneSource returns the source of a plugin in a repository. It is always cloned again,
// because the cached clone may have another version checked out.
func cloneSource(places Places, from, version string) (source, error) {
	key, err := cache.Key(from)
	if err != nil {
		return source{}, fmt.Errorf("%s is not a directory, archive or repository: %w", from, err)
	}
	return source{name: filepath.Base(from), fetch: func(h Host, dir string) error {
		copied := places.cached(key)
		if err := os.RemoveAll(copied); err != nil {
			return fmt.Errorf("clearing the cache: %w", err)
		}
		vcs, err := installer.NewVCSInstaller(from, version)
		if err != nil {
			return cannotClone(from, false, err)
		}
		h.verbose("cloning %s to %s", from, copied)
		if err := vcs.Install(); err != nil {
			_, notCloned := os.Stat(copied)
			return errors.Join(cannotClone(from, version != "" && notCloned == nil, err), os.RemoveAll(copied))
		}
		if vcs.Path() == dir {
			return nil
		}
		return os.Rename(vcs.Path(), dir) // Helm's installer doesn't know a list of directories
	}}, nil
}

// cannotClone adds the source and the output of git to an error. When the clone is there it is
// the version that isn't.
func cannotClone(from string, cloned bool, err error) error {
	if errors.Is(err, installer.ErrMissingMetadata) {
		return fmt.Errorf("%s: %w", from, err)
	}
	hint := "a plugin comes from a directory, a .tgz archive or its URL, or a repository that git (or hg, svn, bzr) can clone"
	if cloned {
		hint = "its versions are its tags, such as git ls-remote --tags " + from + " lists them"
	}
	return program.WithHint(fmt.Errorf("installing from %s: %w", from, withOutput(err)), hint)
}

// withOutput adds the program's output to an error of a version control system, because only
// the output has the cause. (github.com/Masterminds/vcs)
func withOutput(err error) error {
	var cause interface{ Out() string }
	if !errors.As(err, &cause) {
		return err
	}
	if out := strings.TrimSpace(cause.Out()); out != "" {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return err
}

func isArchive(path string) bool {
	return strings.HasSuffix(path, ".tgz") || strings.HasSuffix(path, ".tar.gz")
}

// versioned is the name of an archive with a version: name-1.2.3.
var versioned = lazyregexp.New(`^(.*)-v?[0-9]+\..*$`)

// archiveName is the directory of a plugin from an archive, by Helm's rule.
// (helm.sh/helm/v3/pkg/plugin/installer/http_installer.go, stripPluginName)
func archiveName(from string) string {
	from, _, _ = strings.Cut(from, "?")
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(from), ".tgz"), ".tar.gz")
	return versioned().ReplaceAllString(name, "$1")
}
