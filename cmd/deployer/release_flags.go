package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"deployer/apply/decide"
	"deployer/chart/retain"
	"deployer/internal/deploy"
	"deployer/internal/view/output"
	"deployer/internal/view/run"
	"deployer/track"
)

// flags are those of every command that changes a release.
func (o *operationFlags) flags(e *env) []*flag {
	s := &o.settings
	o.wait = strconv.FormatBool(e.call.waitsByDefault())
	flags := []*flag{
		{name: "timeout", usage: "time limit for each wait and hook", is: common | safe, value: duration(&s.Timeout, 5*time.Minute)},
		{name: "wait", usage: "wait until all is ready; false waits for hooks only", is: usual | safe, value: choice(&o.wait, "true", "false").orBare("true", waitSynonyms)},
		{name: "wait-for-jobs", usage: "with --wait, also wait for Jobs to complete", is: rare | safe | applying, value: toggle(&s.WaitJobs, e.call.waitsByDefault())},
		{name: "no-hooks", usage: "don't run hooks", is: usual | risky | fixed, value: toggle(&s.NoHooks)},
		{name: "dry-run", usage: "only show the plan; client and server do the same", is: common | safe, value: dryRunChoice(&o.dryRun)},
		{name: "history-max", usage: "number of revisions to keep; 0 keeps all", env: "HELM_MAX_HISTORY", is: rare | safe | applying, value: number(&s.MaxHistory, 10)},
		conflictsFlag(s),
		{name: "allow-recreate", also: "force force-replace", usage: "recreate an object when an immutable field changes", is: usual | risky | fixed | applying, value: toggle(&s.AllowRecreate)},
		revertFlag(s),
		{name: "gate", usage: "dry run of the whole release before the first change: strict (any rejection stops the release), best-effort or off", is: rare | safe | fixed, value: choice(&s.Gate, "strict", "best-effort", "off")},
		{name: "field-validation", usage: "what to do with fields that the schema doesn't have: warn (and drop them), strict (reject) or ignore", is: rare | safe | fixed, value: choice(&s.Validation, "warn", "strict", "ignore")},
		progressFlag(e, ""),
		{name: "logs", usage: "container logs to show: jobs (those of Jobs and hooks as they are written), failed (of failed pods, at the end), all or none", is: rare | safe, value: choiceFunc(func(word string) { s.Track.Logs = logModes[word] }, logWords[0], logWords)},
		resultFlag(e, ""),
		junitFlag(e),
	}
	var formats []string
	if o.plan.only {
		formats = planFormats
	} else {
		flags = append(flags, o.confirmFlag(e))
	}
	flags = inGroup("Deploying", append(flags, lockFlags(s, &o.options.LockTimeout, rare)...))
	return append(append(flags, outputFlagWith(e, func(text string) (output.Format, error) { return o.parseFormat(e, text) }, formats...)), trackingFlags(&s.Track)...)
}

// undoFlags say when a run that didn't succeed is undone.
func (o *operationFlags) undoFlags() []*flag {
	return []*flag{
		{name: "atomic", also: "rollback-on-failure", usage: "if the run fails, roll back to the last successful revision; uninstall a release that has none", is: common | safe, value: toggle(&o.options.Atomic)},
		{name: "rollback-on-interrupt", usage: "with --atomic, also roll back when a signal stops the run", is: rare | safe, value: toggle(&o.options.RollbackOnInterrupt, true)},
	}
}

func resultFlag(e *env, when string) *flag {
	return &flag{name: "result-file", usage: when + "write the outcome to this `FILE` as JSON", is: rare | safe | reporting, value: reportFile(&e.resultFile)}
}

func junitFlag(e *env) *flag {
	return &flag{name: "report-junit", usage: "write a JUnit report to this `FILE`", is: rare | safe | reporting, value: reportFile(&e.junitFile)}
}

// reportFile is a file that is written at the end of a run, which doesn't begin if that can't be.
func reportFile(path *string) value {
	return text(path).checked(func() error { return run.CheckWritable(*path) })
}

func hideNotesFlag(hide *bool) *flag {
	return &flag{name: "hide-notes", usage: "don't print the chart's notes", is: rare | safe, value: toggle(hide)}
}

func descriptionFlag(to *string) *flag {
	return &flag{name: "description", usage: "`TEXT` to record in the release history", is: rare | safe, value: text(to)}
}

// progressFlag is that of every command that carries something out; when says when it has an effect.
func progressFlag(e *env, when string) *flag {
	return &flag{name: "progress", usage: when + "how to show progress: auto (live on a terminal, otherwise lines), plain or none", env: "HELM_PROGRESS", is: rare | safe, value: choice(&e.progress, "auto", "plain", "none")}
}

// storedHooksFlag is the one of every command that may run hooks that only a record has.
func storedHooksFlag(s *deploy.Settings) *flag {
	return &flag{name: "allow-stored-hooks", group: "Deploying", usage: "in a rollback or uninstall, also run recorded hooks that are cluster-scoped or in another namespace; in a rollback, also create such objects that no other revision has", is: rare | risky, value: toggle(&s.AllowStoredHooks)}
}

// revisionFlags are those of every command that deploys after other revisions.
func revisionFlags(s *deploy.Settings) []*flag {
	return inGroup("Deploying", []*flag{
		storedHooksFlag(s),
		{name: "map-removed-apis", usage: "replace API versions that the cluster no longer serves with equivalent ones", is: rare | safe, value: toggle(&s.MapRemovedAPIs)},
		{name: "prune-kind", usage: "also prune objects of this `KIND`, which are otherwise kept: " + strings.Join(decide.ProtectedKinds(), ", ") + " (repeatable)", is: rare | risky, value: choices(&s.PruneKinds, decide.ProtectedKinds())},
	})
}

func conflictsFlag(s *deploy.Settings) *flag {
	return &flag{name: "conflicts", usage: "what to do with fields that another manager owns: take, fail or yield", is: usual | safe | fixed | applying, value: choice(&s.Conflicts, "take", "fail", "yield")}
}

func revertFlag(s *deploy.Settings) *flag {
	return &flag{name: "revert-manual-changes", usage: "remove fields that people added by hand, for example with kubectl edit", is: rare | risky | fixed | applying, value: toggle(&s.RevertManual)}
}

// dryRunChoice is Helm's --dry-run.
func dryRunChoice(mode *string) value {
	return choice(mode, "client", "server", "none").orBare("client", map[string]string{"false": "none"})
}

// planFormats are the formats that only plans have.
var planFormats = []string{"markdown", "html", "mermaid", "dot"}

// logWords are the values of --logs, and logModes what they mean.
var (
	logWords = []string{"jobs", "failed", "all", "none"}
	logModes = map[string]track.LogMode{"jobs": track.LogsDefault, "failed": track.LogsFailed, "all": track.LogsLive, "none": track.LogsNone}
)

// waitSynonyms are Helm 4's values of --wait, and what they mean.
var waitSynonyms = map[string]string{"watcher": "true", "legacy": "true", "hookOnly": "false"}

// generatedFlag is that of commands that render a chart for a release.
func generatedFlag(e *env, s *deploy.Settings) *flag {
	s.Generated = retain.Keep
	if e.call.asHelm {
		s.Generated = retain.Renew // as Helm
	}
	return &flag{name: "generated", group: "Deploying", usage: "what to do with values that templates generate, such as passwords and certificates: keep those of the last revision, or renew", is: rare | safe, value: choice(&s.Generated, string(retain.Keep), string(retain.Renew))}
}

// lockFlags are those of every command that takes the lock of a release. takeover says how often it takes one over.
func lockFlags(s *deploy.Settings, timeout *time.Duration, takeover attribute) []*flag {
	return []*flag{
		{name: "lock-timeout", usage: "how long to wait while another run holds the release; by default, fail at once", is: rare | safe, value: duration(timeout)},
		{name: "no-lock", usage: "don't take a Lease, for example where a quota or policy refuses it; then only the release record keeps other runs out", is: rare | risky, value: toggle(&s.NoLock)},
		{name: "takeover-pending", usage: "take over a release that another tool left pending, whatever its age", is: takeover | risky, value: toggle(&s.TakeoverPending)},
	}
}

// trackingFlags are those about when an object is ready and when it has failed.
func trackingFlags(o *track.Options) []*flag {
	return inGroup("Tracking", []*flag{
		{name: "readiness-rules", usage: "`FILE` with readiness rules for kinds; they take precedence over the built-in ones", is: rare | safe, value: readinessRules(o)},
		{name: "failures-allowed", usage: "crashes of a new container before it counts as failed (default 2)", is: rare | safe, value: crashes(&o.FailuresAllowed)},
		{name: "no-progress-timeout", usage: "how long an object can go without progress (default 10m, or a Deployment's progressDeadlineSeconds)", is: rare | safe, value: duration(&o.NoProgressTimeout)},
		{name: "tolerate-failures", usage: "wait until --timeout for failures that can still recover", is: rare | safe, value: toggle(&o.TolerateFailures)},
	})
}

// readinessRules is --readiness-rules.
func readinessRules(o *track.Options) value {
	return taken(func(path string) error {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if o.Rules, err = track.ParseRules(data); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
}

// crashes is a number that may be absent.
func crashes(to **int) value {
	v := parsed(to, func(s string) (*int, error) {
		n, err := strconv.ParseUint(s, 10, 31)
		return new(int(n)), err
	}, "a number of crashes", nil)
	v.kind = "N"
	return v
}
