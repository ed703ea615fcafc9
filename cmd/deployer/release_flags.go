package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"deployer/apply"
	"deployer/chart/generated"
	"deployer/internal/deploy"
)

// flags are those of every command that changes a release.
func (o *operation) flags(e *env) []cli.Flag {
	const group = "Deploying"
	s := &o.settings
	o.wait = strconv.FormatBool(e.waitsByDefault())
	flags := []cli.Flag{
		&cli.DurationFlag{Name: "timeout", Category: group, Usage: "time limit for each wait and each hook", Value: 5 * time.Minute, Destination: &s.Timeout},
		&cli.GenericFlag{Name: "wait", Category: group, Usage: "wait until everything is ready; --wait=false waits for hooks only", Value: &optionalChoice{
			value: &o.wait, bare: "true", words: []string{"true", "false"}, synonyms: waitSynonyms,
		}},
		&cli.BoolFlag{Name: "wait-for-jobs", Category: group, Usage: "with --wait, also wait for Jobs to complete", Value: e.waitsByDefault(), Destination: &s.WaitJobs},
		&cli.BoolFlag{Name: "no-hooks", Category: group, Usage: "don't run hooks", Destination: &s.NoHooks},
		&cli.GenericFlag{Name: "dry-run", Category: group, Usage: "show the plan and change nothing; client and server do the same", Value: &optionalChoice{
			value: &o.dryRun.mode, bare: "client", words: []string{"client", "server", "none"},
			synonyms: map[string]string{"false": "none"},
		}},
		&cli.IntFlag{Name: "history-max", Category: group, Usage: "number of revisions to keep; 0 keeps all", Value: 10, Destination: &s.MaxHistory, EnvVars: []string{"HELM_MAX_HISTORY"}},
		lockTimeoutFlag(group, &o.lockTimeout),
		takeoverFlag(s, group),
		conflictsFlag(s, group),
		&cli.BoolFlag{Name: "allow-recreate", Aliases: []string{"force", "force-replace"}, Category: group, Usage: "delete and recreate an object when an immutable field changes", Destination: &s.AllowRecreate},
		revertFlag(s, group),
		&cli.GenericFlag{Name: "gate", Category: group, Usage: "dry run of the whole release before the first change: strict (any rejection stops the release), best-effort or off", Value: newChoice((*string)(&s.Gate), "strict", "best-effort", "off")},
		&cli.GenericFlag{Name: "field-validation", Category: group, Usage: "what to do with fields that the schema doesn't have: warn (and drop them), strict (reject) or ignore", Value: newChoice((*string)(&s.Validation), "warn", "strict", "ignore")},
		progressFlag(e, group),
		&cli.GenericFlag{Name: "logs", Category: group, Usage: "container logs to show: jobs (those of Jobs and hooks as they are written), failed (of failed pods, at the end), all or none", Value: &logMode{&s.Track.Logs}},
		&cli.StringFlag{Name: "result-file", Category: group, Usage: "write the outcome to this `FILE` as JSON", Destination: &o.reports.result},
		&cli.StringFlag{Name: "report-junit", Category: group, Usage: "write a JUnit report to this `FILE`", Destination: &o.reports.junit},
	}
	format := outputFlag(e)
	if o.plan.only {
		format.Usage = "output `FORMAT`: table, json, yaml, markdown, html, mermaid, dot"
	}
	flags = append(flags, format)
	return append(flags, trackingFlags(&s.Track)...)
}

// progressFlag is that of every command that carries something out.
func progressFlag(e *env, group string) cli.Flag {
	return &cli.GenericFlag{Name: "progress", Category: group, Usage: "how to show progress: auto (live on a terminal, otherwise lines), plain or none", Value: newChoice(&e.global.progress, "auto", "plain", "none"), EnvVars: []string{"HELM_PROGRESS"}}
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
		&cli.GenericFlag{Name: "prune-kind", Category: group, Usage: "also prune objects of this `KIND`, which are otherwise kept: " + strings.Join(apply.ProtectedKinds(), ", ") + " (may be repeated)", Value: &choices{values: &s.PruneKinds, words: apply.ProtectedKinds()}},
	}
}

func conflictsFlag(s *deploy.Settings, group string) cli.Flag {
	return &cli.GenericFlag{Name: "conflicts", Category: group, Usage: "what to do with fields that another manager owns: take, fail or yield", Value: newChoice((*string)(&s.Conflicts), "take", "fail", "yield")}
}

func revertFlag(s *deploy.Settings, group string) cli.Flag {
	return &cli.BoolFlag{Name: "revert-manual-changes", Category: group, Usage: "remove fields that people added by hand, for example with kubectl edit", Destination: &s.RevertManual}
}

// waitSynonyms are Helm 4's values of --wait, and what they mean.
var waitSynonyms = map[string]string{"watcher": "true", "legacy": "true", "hookOnly": "false"}

// generatedFlag is that of commands that render a chart for a release.
func generatedFlag(e *env, s *deploy.Settings) []cli.Flag {
	s.Generated = generated.Keep
	if e.call.asHelm {
		s.Generated = generated.Renew // as Helm
	}
	return []cli.Flag{&cli.GenericFlag{
		Name: "generated", Category: "Deploying", Usage: "what to do with values that templates generate, such as passwords and certificates: keep those of the last revision, or renew",
		Value: newChoice((*string)(&s.Generated), string(generated.Keep), string(generated.Renew)),
	}}
}

// lockTimeoutFlag is for each command that holds the lock of a release.
func lockTimeoutFlag(group string, timeout *time.Duration) cli.Flag {
	return &cli.DurationFlag{Name: "lock-timeout", Category: group, Usage: "how long to wait while another run holds the release; by default, fail at once", Destination: timeout}
}
