package main

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"deployer/chart"
	"deployer/internal/deploy"
	"deployer/internal/hide"
	"deployer/internal/kube"
	"deployer/internal/view/output"
	"deployer/internal/view/run"
	"deployer/release"
)

// An env is what every command of one run shares: its streams, the global
// settings, and the connection, made when first asked for.
type env struct {
	streams    output.Streams
	colour     output.Colour
	debug      bool
	kube       kube.Options
	format     string
	files      chart.Settings  // where Helm's own files are
	command    string          // the words of the command, such as "repo add"
	given      []string        // its flags, each with its value: --timeout=5m
	program    string          // the name it was called by: deployer or helm
	called     string          // as it was called: a path, or a name to be found in PATH
	dropIn     bool            // it was called helm: defaults and texts are Helm's
	showing    string          // of progress: auto, plain or none
	held       []string        // warnings to be shown if it fails, see isQuiet
	unreadable map[string]bool // variables of Helm that were told of

	stopSignals func() // gives signals back: a plugin is to get them

	transferred chart.TransferStats
	cluster     *kube.Cluster
	hidden      *hide.Texts    // what must not be shown; nil for commands that show what Helm shows
	observed    *run.View      // the view that has shown the run; nil before it began
	outlived    chan os.Signal // set while a command goes on that nobody may be reading
}

func newEnv(streams output.Streams, program string) *env {
	return &env{
		streams: streams, colour: output.ColourAuto, program: calledBy(program), called: program, dropIn: calledHelm(program), unreadable: map[string]bool{},
	}
}

// connect returns the connection of this run. The API server's warnings go to
// the user unless a run has a view of its own for them.
func (e *env) connect() (*kube.Cluster, error) {
	if e.cluster != nil {
		return e.cluster, nil
	}
	if err := release.ValidateDriver(os.Getenv("HELM_DRIVER")); err != nil {
		return nil, err
	}
	opts := e.kube
	opts.UserAgent = "deployer/" + strings.TrimPrefix(version(), "v")
	opts.Warn = e.warn
	cluster, err := kube.Connect(opts)
	if err != nil {
		return nil, hinted{error: err, hint: "name the cluster with --kubeconfig, --kube-context or KUBECONFIG"}
	}
	e.cluster = cluster
	return cluster, nil
}

// deployer returns a deployer of this run. What it comes to know to be
// confidential is shown no more.
func (e *env) deployer(cluster *kube.Cluster, settings deploy.Settings) *deploy.Deployer {
	d := deploy.New(cluster, cluster.Namespace(), settings)
	if e.hidden == nil {
		e.hidden = d.Hidden
	}
	d.Hidden, d.Warn = e.hidden, e.warn
	return d
}

// conceal makes values known whose keys say that they are confidential: what is
// said of them is not to show them.
func (e *env) conceal(values ...map[string]any) {
	if e.hidden == nil {
		e.hidden = &hide.Texts{}
	}
	for _, v := range values {
		e.hidden.Values(v)
	}
}

// namespace is the one the user named, else that of the kubeconfig context.
func (e *env) namespace() (string, error) {
	if e.kube.Namespace != "" {
		return e.kube.Namespace, nil
	}
	cluster, err := e.connect()
	if err != nil {
		return "", err
	}
	return cluster.Namespace(), nil
}

// offlineNamespace is namespace for commands that need no cluster.
func (e *env) offlineNamespace() string {
	if ns, err := e.namespace(); err == nil {
		return ns
	}
	return "default"
}

func (e *env) store() (*release.Store, error) {
	cluster, err := e.connect()
	if err != nil {
		return nil, err
	}
	return release.NewStore(cluster, cluster.Namespace()), nil
}

func (e *env) warn(text string) {
	if e.observed != nil && !e.observed.Closed() {
		e.observed.Warn(text)
		return
	}
	if e.dropIn && !e.streams.ErrTTY {
		e.held = append(e.held, text) // flags after this one may still ask for it: see release
		return
	}
	e.caution(text)
}

// caution is warn for what Helm says too, however it is called.
func (e *env) caution(text string) {
	output.PrintWarning(e.streams.Err, e.palette(), e.hidden.Hide(text))
}

// release shows the warnings that were held back, unless all is well and nobody
// has asked for them.
func (e *env) release(err error) {
	if err != nil || !e.isQuiet() {
		for _, text := range e.held {
			e.caution(text)
		}
	}
	e.held = nil
}

func (e *env) palette() output.Palette { return e.streams.Palette(e.colour, e.streams.ErrTTY) }

// finish reports the outcome and returns the exit code.
func (e *env) finish(ctx context.Context, err error) int {
	failure, unwritten := e.outcome(err)
	code := e.code(ctx, err)
	e.release(err)
	if unwritten != nil && e.observed != nil {
		e.observed.Untold(code, unwritten)
	}
	var shown told
	switch {
	case failure == nil && unwritten != nil:
		e.tell(&untoldError{unwritten})
	case failure == nil || errors.Is(failure, errChanges) || errors.As(failure, &shown):
	default:
		e.tell(failure)
	}
	return code
}

// tell shows an error, unless the report of the run has shown it.
func (e *env) tell(err error) {
	if e.observed != nil && e.observed.Reported(err) {
		if line := e.helmLine(err); line != "" && (e.dropIn || e.format == "" || e.format == string(output.FormatTable)) {
			output.PrintError(e.streams.Err, e.palette(), errors.New(line), e.hidden)
		}
		return
	}
	if e.cluster != nil {
		err = unauthorized(err)
	}
	output.PrintError(e.streams.Err, e.palette(), e.inHelmsWords(err), e.hidden)
}

// outputFormat reads -o of a command.
func (e *env) outputFormat() (output.Format, error) {
	f, err := output.ParseFormat(e.format)
	if err != nil {
		return "", &usageError{err: err, command: e.command}
	}
	return f, nil
}

// arguments checks how many arguments a command got.
func arguments(c *cli.Context, least, most int, names string) ([]string, error) {
	args := c.Args().Slice()
	command := commandPath(c)
	if len(args) < least {
		return nil, usagef(command, "%q needs %s", c.App.Name+" "+command, names)
	}
	if most >= 0 && len(args) > most {
		return nil, usagef(command, "%q takes %s; %q is too much", c.App.Name+" "+command, orNothing(names), args[most])
	}
	return args, nil
}

func orNothing(names string) string {
	if names == "" {
		return "no arguments"
	}
	return names
}

func commandPath(c *cli.Context) string {
	return strings.TrimPrefix(c.Command.HelpName, c.App.Name+" ")
}
