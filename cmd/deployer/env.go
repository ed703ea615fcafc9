package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"deployer/chart"
	"deployer/internal/deploy"
	"deployer/internal/kube"
	"deployer/internal/program"
	"deployer/internal/view/output"
	"deployer/internal/view/run"
	"deployer/release"
)

// An env is what every command of one run shares: its console, the settings of the cluster and of
// Helm's files, and the connection, made when first asked for.
type env struct {
	console
	kube  kube.Options
	files chart.Settings // where Helm's own files are, and on a terminal, where fetching shows it, what counts transfers

	cluster     *kube.Cluster // nil before it is asked for
	transferred chart.TransferStats
	stopSignals func()     // stops handling signals, so that a plugin handles them
	commands    []*command // of the program
	global      []*flag    // that all of them have
}

// A call is how the program was called.
type call struct {
	name   string // deployer or helm
	path   string // a path, or a name to be found in PATH
	asHelm bool   // by the name helm: defaults and texts are Helm's
	commandLine
}

func newEnv(streams output.Streams, path string) *env {
	name := programName(path)
	e := &env{console: console{
		streams: streams, colour: output.ColourAuto, format: output.FormatTable,
		call: call{name: name, path: path, asHelm: name == "helm"},
	}}
	if streams.ErrTTY {
		e.files.TransferStats = &e.transferred
	}
	e.kube.UserAgent, e.kube.Warn = "deployer/"+strings.TrimPrefix(buildVersion, "v"), e.warn
	return e
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
	var chosen []output.ClusterFlag
	for _, f := range e.global {
		if f.kubectl != "" {
			chosen = append(chosen, output.ClusterFlag{Own: f.name, Kubectl: f.kubectl, Value: f.value.current()})
		}
	}
	e.streams.ChooseCluster(chosen)
	cluster, err := kube.Connect(e.kube)
	if errors.As(err, new(*kube.ContextError)) {
		return nil, err
	}
	if err != nil {
		return nil, program.WithHint(err, "name the cluster with --kubeconfig, --kube-context or KUBECONFIG")
	}
	e.cluster = cluster
	return cluster, nil
}

// newDeployer connects, and returns a deployer of this run. Everything that it finds to be
// confidential is hidden in the output from then on.
func (e *env) newDeployer(settings deploy.Settings) (*deploy.Deployer, error) {
	cluster, err := e.connect()
	if err != nil {
		return nil, err
	}
	d := deploy.New(cluster, cluster.Namespace(), settings)
	if e.hidden == nil {
		e.hidden = d.Hidden
	}
	d.Hidden, d.Warn = e.hidden, e.warn
	return d, nil
}

// offlineNamespace is the one the user named, else that of the kubeconfig context. It is for commands
// that need no cluster: when no kubeconfig can be read it is "default".
func (e *env) offlineNamespace() string {
	if e.kube.Context.Namespace != "" {
		return e.kube.Context.Namespace
	}
	if cluster, err := e.connect(); err == nil {
		return cluster.Namespace()
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

// finish reports the outcome and returns the exit code.
func (e *env) finish(ctx context.Context, err error) int {
	failure, unwritten := e.splitOutcome(err)
	code := e.exitCode(ctx, err)
	if e.call.asHelm { // whose views have none
		if err == nil && e.isQuiet() {
			e.heldWarnings = nil
		}
		e.releaseWarnings(e.printWarning)
	}
	isShown := failure == nil || errors.Is(failure, errChanges) || errors.As(failure, new(alreadyShown))
	if !isShown {
		e.reportEarlyFailure(ctx, failure)
	}
	e.releaseWarnings(e.printWarning)
	if e.view != nil {
		e.view.RecordUnwritten(code, unwritten)
	}
	switch {
	case failure == nil && unwritten != nil:
		e.printError(&unwrittenError{unwritten})
	case isShown:
	case errors.Is(failure, context.Canceled):
		e.printError(nameSignal(ctx, failure))
	default:
		e.printError(failure)
	}
	return code
}

// reportEarlyFailure writes the documents of a run that failed before it began, if there are to be any.
func (e *env) reportEarlyFailure(ctx context.Context, failure error) {
	format := e.formatForPrograms()
	if e.view != nil || e.planShown || format == output.FormatTable && e.resultFile == "" && e.junitFile == "" {
		return
	}
	writable := func(file string) string {
		if run.CheckWritable(file) != nil {
			return ""
		}
		return file
	}
	e.view = run.New(e.streams, run.Options{
		Format: format, Progress: "none", Colour: e.colour, ResultFile: writable(e.resultFile), JUnitFile: writable(e.junitFile), Hidden: e.hidden,
		ExitCode: func(err error) int { return e.exitCode(ctx, err) },
	})
	e.releaseWarnings(e.view.Warn)
	if e.cluster != nil {
		failure = withAccountHint(failure)
	}
	_ = e.view.Close(failure) // what can't be written ends with the failure's code
}

// printError shows an error, unless the report of the run has shown it.
func (e *env) printError(err error) {
	if e.view != nil && e.view.Reported(err) {
		if line := e.errorLine(err); line != "" {
			output.PrintError(e.streams.Err, e.palette(), errors.New(line), e.hidden)
		}
		return
	}
	if e.cluster != nil {
		err = withAccountHint(err)
	}
	err = e.call.inHelmWords(err)
	if e.reportsEnd() {
		text, hints := output.ErrorLines(err, e.hidden)
		fmt.Fprint(e.streams.Err, run.AnnotateError(e.streams, os.Getenv, e.call.name+" "+e.call.command(), append(text, hints...)...))
	}
	output.PrintError(e.streams.Err, e.palette(), err, e.hidden)
}

// errorLine is the line that follows the report of an error; empty for none.
func (e *env) errorLine(err error) string {
	if err == nil || !e.call.asHelm && e.format != output.FormatTable {
		return ""
	}
	return e.call.helmErrorLine(err)
}

// isQuiet reports whether nothing is written to standard error unless something
// fails: under the name helm where no person reads, for tasks of CI that take any
// such output for a failure. --debug and --progress plain ask for it.
func (e *env) isQuiet() bool {
	return e.call.asHelm && !e.streams.ErrTTY && !e.files.Debug && e.progress != "plain"
}

// baseName is the name of a program without its directory, and without .exe.
func baseName(program string) string {
	return strings.TrimSuffix(filepath.Base(filepath.ToSlash(program)), ".exe")
}

// programName is the name by which hints call the program: helm, if it was started by a link or a copy of that name, and
// therefore has Helm's defaults and texts.
func programName(program string) string {
	if baseName(program) == "helm" {
		return "helm"
	}
	return "deployer"
}

// waitsByDefault is what --wait means when it isn't given. Helm's users wait
// only when they say so; deployer sees a release through.
func (c call) waitsByDefault() bool { return !c.asHelm }
