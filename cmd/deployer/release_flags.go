package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"deployer/apply"
	"deployer/chart/generated"
	"deployer/internal/deploy"
	"deployer/track"
)

// flags are those of every command that changes a release.
func (o *operationFlags) flags(e *env) []cli.Flag {
	const group = "Deploying"
	s := &o.settings
	o.wait = strconv.FormatBool(e.call.waitsByDefault())
	flags := []cli.Flag{
		&cli.DurationFlag{Name: "timeout", Category: group, Usage: "time limit for each wait and each hook", Value: 5 * time.Minute, Destination: &s.Timeout},
		&cli.GenericFlag{Name: "wait", Category: group, Usage: "wait until everything is ready; --wait=false waits for hooks only", Value: newChoice(&o.wait, "true", "false").orBare("true", waitSynonyms)},
		&cli.BoolFlag{Name: "wait-for-jobs", Category: group, Usage: "with --wait, also wait for Jobs to complete", Value: e.call.waitsByDefault(), Destination: &s.WaitJobs},
		&cli.BoolFlag{Name: "no-hooks", Category: group, Usage: "don't run hooks", Destination: &s.NoHooks},
		&cli.GenericFlag{Name: "dry-run", Category: group, Usage: "show the plan and change nothing; client and server do the same", Value: dryRunChoice(&o.dryRun.mode)},
		&cli.IntFlag{Name: "history-max", Category: group, Usage: "number of revisions to keep; 0 keeps all", Value: 10, Destination: &s.MaxHistory, EnvVars: []string{"HELM_MAX_HISTORY"}},
		lockTimeoutFlag(group, &o.lockTimeout),
		takeoverFlag(s, group),
		conflictsFlag(s, group),
		&cli.BoolFlag{Name: "allow-recreate", Aliases: []string{"force", "force-replace"}, Category: group, Usage: "delete and recreate an object when an immutable field changes", Destination: &s.AllowRecreate},
		revertFlag(s, group),
		&cli.GenericFlag{Name: "gate", Category: group, Usage: "dry run of the whole release before the first change: strict (any rejection stops the release), best-effort or off", Value: newChoice((*string)(&s.Gate), "strict", "best-effort", "off")},
		&cli.GenericFlag{Name: "field-validation", Category: group, Usage: "what to do with fields that the schema doesn't have: warn (and drop them), strict (reject) or ignore", Value: newChoice((*string)(&s.Validation), "warn", "strict", "ignore")},
		progressFlag(e, group, ""),
		&cli.GenericFlag{Name: "logs", Category: group, Usage: "container logs to show: jobs (those of Jobs and hooks as they are written), failed (of failed pods, at the end), all or none", Value: &choice{words: logWords, choose: func(word string) { s.Track.Logs = logModes[word] }}},
		o.reports.resultFlag(group, ""),
		o.reports.junitFlag(group),
	}
	if !o.plan.only {
		when := ""
		if o.confirm.byDefault {
			when = " (default on a terminal)"
		}
		flags = append(flags, o.confirm.flag(when))
	}
	format := outputFlag(e)
	if o.plan.only {
		format.Usage = "output `FORMAT`: table, json, yaml, markdown, html, mermaid, dot"
	}
	flags = append(flags, format)
	return append(flags, trackingFlags(&s.Track)...)
}

func (u *undoFlags) atomicFlag() cli.Flag {
	return &cli.BoolFlag{Name: "atomic", Aliases: []string{"rollback-on-failure"}, Category: "Release", Usage: "if the run fails, roll back to the last successful revision; uninstall a release that has none", Destination: &u.atomic}
}

func (u *undoFlags) onInterruptFlag() cli.Flag {
	return &cli.BoolFlag{Name: "rollback-on-interrupt", Category: "Release", Value: true, Usage: "with --atomic, also roll back when a signal stops the run", Destination: &u.onInterrupt}
}

func (r *reportFlags) resultFlag(group, when string) cli.Flag {
	return &cli.StringFlag{Name: "result-file", Category: group, Usage: when + "write the outcome to this `FILE` as JSON", Destination: &r.result}
}

func (r *reportFlags) junitFlag(group string) cli.Flag {
	return &cli.StringFlag{Name: "report-junit", Category: group, Usage: "write a JUnit report to this `FILE`", Destination: &r.junit}
}

func hideNotesFlag(group string, hide *bool) cli.Flag {
	return &cli.BoolFlag{Name: "hide-notes", Category: group, Usage: "don't print the chart's notes", Destination: hide}
}

func descriptionFlag(group string, text *string) cli.Flag {
	return &cli.StringFlag{Name: "description", Category: group, Usage: "`TEXT` to record in the release history", Destination: text}
}

// progressFlag is that of every command that carries something out; when says when it has an effect.
func progressFlag(e *env, group, when string) cli.Flag {
	return &cli.GenericFlag{Name: "progress", Category: group, Usage: when + "how to show progress: auto (live on a terminal, otherwise lines), plain or none", Value: newChoice(&e.progress, "auto", "plain", "none"), EnvVars: []string{"HELM_PROGRESS"}}
}

// takeoverFlag is the one of every command that takes the lock of a release.
func takeoverFlag(s *deploy.Settings, group string) cli.Flag {
	return &cli.BoolFlag{Name: "takeover-pending", Category: group, Usage: "take over a release that another tool left pending, whatever its age", Destination: &s.TakeoverPending}
}

// storedHooksFlag is the one of every command that may run hooks that only a record has.
func storedHooksFlag(s *deploy.Settings) cli.Flag {
	return &cli.BoolFlag{Name: "allow-stored-hooks", Category: "Deploying",
		Usage: "in a rollback or uninstall, also run recorded hooks that are cluster-scoped or in another namespace", Destination: &s.AllowStoredHooks}
}

// revisionFlags are those of every command that deploys after other revisions.
func revisionFlags(s *deploy.Settings) []cli.Flag {
	const group = "Deploying"
	return []cli.Flag{
		storedHooksFlag(s),
		&cli.BoolFlag{Name: "map-removed-apis", Category: group, Usage: "replace API versions that the cluster no longer serves with equivalent ones", Destination: &s.MapRemovedAPIs},
		&cli.GenericFlag{Name: "prune-kind", Category: group, Usage: "also prune objects of this `KIND`, which are otherwise kept: " + strings.Join(apply.ProtectedKinds(), ", ") + " (may be repeated)", Value: choices(&s.PruneKinds, apply.ProtectedKinds())},
	}
}

func conflictsFlag(s *deploy.Settings, group string) cli.Flag {
	return &cli.GenericFlag{Name: "conflicts", Category: group, Usage: "what to do with fields that another manager owns: take, fail or yield", Value: newChoice((*string)(&s.Conflicts), "take", "fail", "yield")}
}

func revertFlag(s *deploy.Settings, group string) cli.Flag {
	return &cli.BoolFlag{Name: "revert-manual-changes", Category: group, Usage: "remove fields that people added by hand, for example with kubectl edit", Destination: &s.RevertManual}
}

// dryRunChoice is Helm's --dry-run.
func dryRunChoice(mode *string) *choice {
	return newChoice(mode, "client", "server", "none").orBare("client", map[string]string{"false": "none"})
}

// logWords are the values of --logs, and logModes what they mean.
var (
	logWords = []string{"jobs", "failed", "all", "none"}
	logModes = map[string]track.LogMode{"jobs": track.LogsDefault, "failed": track.LogsFailed, "all": track.LogsLive, "none": track.LogsNone}
)

// waitSynonyms are Helm 4's values of --wait, and what they mean.
var waitSynonyms = map[string]string{"watcher": "true", "legacy": "true", "hookOnly": "false"}

// generatedFlag is that of commands that render a chart for a release.
func generatedFlag(e *env, s *deploy.Settings) cli.Flag {
	s.Generated = generated.Keep
	if e.call.asHelm {
		s.Generated = generated.Renew // as Helm
	}
	return &cli.GenericFlag{
		Name: "generated", Category: "Deploying", Usage: "what to do with values that templates generate, such as passwords and certificates: keep those of the last revision, or renew",
		Value: newChoice((*string)(&s.Generated), string(generated.Keep), string(generated.Renew)),
	}
}

// lockTimeoutFlag is for each command that holds the lock of a release.
func lockTimeoutFlag(group string, timeout *time.Duration) cli.Flag {
	return &cli.DurationFlag{Name: "lock-timeout", Category: group, Usage: "how long to wait while another run holds the release; by default, fail at once", Destination: timeout}
}
