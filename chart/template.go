package chart

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/chart/internal/yamltext"
	"deployer/internal/lazyregexp"
)

// TemplateOptions say which parts of a rendering `helm template` shows. CRDs are shown if
// Input.IncludeCRDs was set.
type TemplateOptions struct {
	NoHooks   bool
	SkipTests bool     // leave out test hooks
	ShowOnly  []string // glob patterns of template paths, such as templates/*.yaml; empty shows all
	OutputDir string   // give files below this directory instead of text
	Release   string   // when set, files are below OutputDir/Release
}

// TemplateOutput is what `helm template` writes.
type TemplateOutput struct {
	Stdout string
	Files  []File // with OutputDir; to be written as they are, in this order
}

// A File is one file of --output-dir.
type File struct {
	Path string // OutputDir included
	Text string
}

// FormatTemplateOutput returns what `helm template` of Helm 3.22 prints for a rendering,
// byte for byte. It writes nothing. With OutputDir, Stdout has Helm's lines
// about the files that the caller is to write.
func FormatTemplateOutput(r *Rendered, opts TemplateOptions) (*TemplateOutput, error) {
	if opts.OutputDir != "" {
		return r.toFiles(opts)
	}
	var text strings.Builder
	fmt.Fprintln(&text, strings.TrimSpace(r.Manifest))
	for _, h := range r.hooksToShow(opts) {
		text.WriteString(Document{Source: h.Path, Text: h.Manifest}.String())
	}
	if len(opts.ShowOnly) == 0 {
		return &TemplateOutput{Stdout: text.String()}, nil
	}
	shown, err := showOnly(text.String(), opts.ShowOnly)
	return &TemplateOutput{Stdout: shown}, err
}

func (r *Rendered) hooksToShow(opts TemplateOptions) []*helmrelease.Hook {
	if opts.NoHooks {
		return nil
	}
	var out []*helmrelease.Hook
	for _, h := range r.Hooks {
		if !opts.SkipTests || !slices.Contains(h.Events, helmrelease.HookTest) {
			out = append(out, h)
		}
	}
	return out
}

// toFiles collects all documents of a template in one file. Unlike Helm, it doesn't append
// hooks to the files of an earlier run.
func (r *Rendered) toFiles(opts TemplateOptions) (*TemplateOutput, error) {
	if len(opts.ShowOnly) > 0 {
		return nil, &NoTemplateError{Pattern: opts.ShowOnly[0]} // as Helm: nothing is left to be shown
	}
	crds := map[string]bool{}
	for _, crd := range r.Chart.CRDObjects() {
		crds[crd.Filename] = true
	}
	out, at := &TemplateOutput{}, map[string]int{}
	add := func(d Document) {
		dir := opts.OutputDir
		if opts.Release != "" && !crds[d.Source] { // Helm's CRDs are always below OutputDir itself
			dir = filepath.Join(dir, opts.Release)
		}
		path := dir + string(filepath.Separator) + d.Source
		if _, ok := at[path]; !ok {
			at[path] = len(out.Files)
			out.Files = append(out.Files, File{Path: path})
		}
		out.Files[at[path]].Text += d.String()
		out.Stdout += fmt.Sprintf("wrote %s\n", path)
	}
	for _, d := range r.Documents {
		add(d)
	}
	for _, h := range r.hooksToShow(opts) {
		add(Document{Source: h.Path, Text: h.Manifest})
	}
	out.Stdout += "\n"
	return out, nil
}

// NoTemplateError says that --show-only names a template that the chart hasn't rendered.
type NoTemplateError struct{ Pattern string }

func (e *NoTemplateError) Error() string {
	return fmt.Sprintf("could not find template %s in chart", e.Pattern) // Helm's words; scripts look for them
}

// Hint says what to do about it.
func (e *NoTemplateError) Hint() string {
	return "write the path as in the # Source: comments, without the chart's name: templates/deployment.yaml; empty templates are left out"
}

// sourcePath matches a source comment; its group is the template's path below its chart.
var sourcePath = lazyregexp.New("# Source: [^/]+/(.+)")

// showOnly picks the documents whose template matches, in order of the
// patterns and, within one, of the documents.
func showOnly(text string, patterns []string) (string, error) {
	documents := splitDocuments(text)
	var out strings.Builder
	for _, pattern := range patterns {
		missing := true
		pattern = filepath.ToSlash(pattern)
		for _, document := range documents {
			source := sourcePath().FindStringSubmatch(document)
			if source == nil {
				continue
			}
			if ok, err := filepath.Match(pattern, source[1]); ok && err == nil { // a bad pattern matches nothing, as in Helm
				fmt.Fprintf(&out, "---\n%s\n", document)
				missing = false
			}
		}
		if missing {
			return "", &NoTemplateError{Pattern: pattern}
		}
	}
	return out.String(), nil
}

// GenerateReleaseName is the release name that --generate-name makes of a chart
// reference, as Helm does: "web-1763718000".
func GenerateReleaseName(ref string, now time.Time) string {
	base, _, _ := strings.Cut(filepath.Base(ref), ".")
	if base == "" {
		base = "chart"
	}
	return fmt.Sprintf("%s-%d", base, now.Unix())
}

// ReleaseNameFromTemplate is the release name that --name-template gives. The
// template has the Sprig functions and no data.
func ReleaseNameFromTemplate(text string) (string, error) {
	t, err := template.New("--name-template").Funcs(sprig.TxtFuncMap()).Parse(text)
	if err != nil {
		return "", fmt.Errorf("reading the release name's %w", err)
	}
	var out strings.Builder
	if err := t.Execute(&out, nil); err != nil {
		return "", fmt.Errorf("evaluating the release name's %w", err)
	}
	return out.String(), nil
}

// HideSecrets puts a comment in the place of every Secret of a manifest.
// (helm.sh/helm/v3/pkg/action/action.go, renderResources, hideSecret)
func HideSecrets(manifest string) string {
	var out strings.Builder
	for _, d := range yamltext.SplitManifest(manifest, "") {
		if isSecret(d) {
			out.WriteString("---\n# Source: " + d.Source + "\n# HIDDEN: The Secret output has been suppressed\n")
			continue
		}
		out.WriteString("---\n" + strings.TrimPrefix(d.Text, "\n"))
	}
	return out.String()
}

// isSecret reports whether a document is a Secret, or a list with one. A document that can't be
// read counts as one, so that it isn't shown.
func isSecret(d yamltext.Document) bool {
	objects, err := objectsOf(d)
	if err != nil && len(objects) == 0 {
		return true
	}
	return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetAPIVersion() == "v1" && o.GetKind() == "Secret"
	})
}

// postRenderGrace is how long a post-renderer's children may hold its output
// open after it has ended or was killed.
const postRenderGrace = 2 * time.Second

// PostRenderError says that the post-renderer failed.
type PostRenderError struct {
	Command string
	Stderr  string
	Err     error
}

func (e *PostRenderError) Error() string {
	text := fmt.Sprintf("post-renderer %s: %v", e.Command, e.Err)
	if stderr := strings.TrimSpace(e.Stderr); stderr != "" {
		text += "\n" + stderr
	}
	return text
}

func (e *PostRenderError) Unwrap() error { return e.Err }

// postRender pipes the manifest, without hooks, through a command. The command is killed when
// ctx ends.
func (r *Rendered) postRender(ctx context.Context, command []string) error {
	if len(command) == 0 {
		return nil
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(r.Manifest), &stdout, &stderr
	cmd.WaitDelay = postRenderGrace
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return &PostRenderError{Command: strings.Join(command, " "), Stderr: stderr.String(), Err: err}
	}
	if strings.TrimSpace(r.Manifest) != "" && strings.TrimSpace(stdout.String()) == "" {
		r.Warnings = append(r.Warnings, fmt.Sprintf("post-renderer %s returned nothing: the release has no objects", command[0]))
	}
	r.Manifest = stdout.String()
	return nil
}
