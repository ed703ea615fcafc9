package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	helmplugin "helm.sh/helm/v3/pkg/plugin"
	"helm.sh/helm/v3/pkg/plugin/installer"

	"deployer/internal/program"
)

// Update pulls the repository of a plugin and runs its update hook. If that fails, the plugin
// is restored, except when its directory is a link to the user's own.
func (h Host) Update(ctx context.Context, places Places, p *Plugin) error {
	dir, err := filepath.EvalSymlinks(p.Dir)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return fmt.Errorf("finding the plugin's directory: %w", err)
	}
	repository, err := installer.FindSource(dir)
	if err != nil {
		return program.WithHint(withOutput(err), "only a cloned plugin can be updated: "+program.Name+" plugin uninstall "+p.Name+", and install it again")
	}
	undo, forget, err := h.backUp(places, p)
	if err != nil {
		return err
	}
	h.verbose("updating %s", dir)
	if err := repository.Update(); err != nil {
		return errors.Join(withOutput(err), undo())
	}
	updated, err := Load(p.Dir)
	if err == nil {
		err = h.runHook(ctx, updated, helmplugin.Update)
	}
	if err != nil {
		return errors.Join(err, undo())
	}
	forget()
	return nil
}

// backUp makes a copy of a plugin. undo restores the plugin and deletes the copy, unless it can't be restored; forget
// only deletes the copy.
func (h Host) backUp(places Places, p *Plugin) (undo func() error, forget func(), err error) {
	if info, err := os.Lstat(p.Dir); err != nil || info.Mode()&os.ModeSymlink != 0 {
		return func() error { return nil }, func() {}, err
	}
	kept, err := places.temporary("before-")
	if err != nil {
		return nil, nil, fmt.Errorf("saving the plugin before the update: %w", err)
	}
	forget = func() { os.RemoveAll(kept) }
	if err := os.CopyFS(kept, os.DirFS(p.Dir)); err != nil {
		forget()
		return nil, nil, fmt.Errorf("saving the plugin before the update: %w", err)
	}
	return func() error {
		if err := errors.Join(os.RemoveAll(p.Dir), os.CopyFS(p.Dir, os.DirFS(kept))); err != nil {
			return fmt.Errorf("restoring the plugin: %w\nits files from before the update are in %s", err, kept)
		}
		forget()
		return nil
	}, forget, nil
}

// Uninstall runs a plugin's delete hook and removes it, the link alone when it is
// one. The hook comes first, because it may be a file of the plugin. If it fails,
// that is an error, but the plugin is removed anyway.
func (h Host) Uninstall(ctx context.Context, p *Plugin) error {
	err := h.runHook(ctx, p, helmplugin.Delete)
	if rerr := os.RemoveAll(p.Dir); rerr != nil {
		return errors.Join(err, fmt.Errorf("removing the plugin: %w", rerr))
	}
	if err != nil {
		return program.WithHint(fmt.Errorf("%w; the plugin is removed anyway", err), "check what the hook should have cleaned up")
	}
	return nil
}
