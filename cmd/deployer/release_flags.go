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
		&cli.GenericFlag{Name: "wait", Category: group, Usage: "until everything is ready; --wait=false waits for hooks only", Value: &optional{
			value: &o.wait, bare: "true", words: []string{"true", "false"}, synonyms: waitSynonyms,
		}},
		&cli.BoolFlag{Name: "wait-for-jobs", Category: group, Usage: "with --wait, also wait for Jobs to complete", Value: e.waitsByDefault(), Destination: &s.WaitJobs},
		&cli.BoolFlag{Name: "no-hooks", Category: group, Usage: "don't run hooks", Destination: &s.NoHooks},
		&cli.GenericFlag{Name: "dry-run", Category: group, Usage: "show what would be done and do nothing: client or server", Value: &optional{
			value: &o.dryRun, bare: "client", words: []string{"client", "server", "none"},
			synonyms: map[string]string{"false": "none"},
		}},
		&cli.IntFlag{Name: "history-max", Category: group, Usage: "revisions to keep; 0 keeps all", Value: 10, Destination: &s.MaxHistory, EnvVars: []string{"HELM_MAX_HISTORY"}},
		&cli.DurationFlag{Name: "lock-timeout", Category: group, Usage: "how long to wait for another run on this release", Destination: &o.lockTimeout},
		takeoverFlag(s, group),
		conflictsFlag(s, group),
		&cli.BoolFlag{Name: "allow-recreate", Aliases: []string{"force", "force-replace"}, Category: group, Usage: "delete and create again what can't be changed in place", Destination: &s.AllowRecreate},
		revertFlag(s, group),
		&cli.GenericFlag{Name: "gate", Category: group, Usage: "whole-release dry run before the first change: strict, best-effort or off", Value: newChoice((*string)(&s.Gate), "strict", "best-effort", "off")},
		&cli.GenericFlag{Name: "field-validation", Category: group, Usage: "fields the schema doesn't have: strict, warn or ignore", Value: newChoice((*string)(&s.Validation), "strict", "warn", "ignore")},
		progressFlag(e, group),
		&cli.GenericFlag{Name: "logs", Category: group, Usage: "of pods: jobs (and hooks) as they are written, failed ones at the end, all, or none", Value: &logMode{&s.Track.Logs}},
		&cli.StringFlag{Name: "result-file", Category: group, Usage: "write how it ended to this file, as JSON", Destination: &o.resultFile},
		&cli.StringFlag{Name: "report-junit", Category: group, Usage: "write a JUnit report to this file", Destination: &o.junitFile},
		outputFlag(e),
	}
	return append(flags, trackingFlags(&s.Track)...)
}

// progressFlag is that of every command that carries something out.
func progressFlag(e *env, group string) cli.Flag {
	return &cli.GenericFlag{Name: "progress", Category: group, Usage: "auto, plain or none", Value: newChoice(&e.global.progress, "auto", "plain", "none"), EnvVars: []string{"HELM_PROGRESS"}}
}

// takeoverFlag is the one of every command that takes the lock of a release.
func takeoverFlag(s *deploy.Settings, group string) cli.Flag {
	return &cli.BoolFlag{Name: "takeover-pending", Category: group, Usage: "take over a release that another tool left pending, whatever its age", Destination: &s.TakeoverPending}
}

// revisionFlags are those of every command that deploys after other revisions.
func revisionFlags(s *deploy.Settings) []cli.Flag {
	const group = "Deploying"
	return []cli.Flag{
		&cli.BoolFlag{Name: "map-removed-apis", Category: group, Usage: "objects of API versions that the cluster has removed: use those that took their place unchanged", Destination: &s.MapRemovedAPIs},
		&cli.GenericFlag{Name: "prune-kind", Category: group, Usage: "delete dropped objects of this kind, too: " + strings.Join(apply.ProtectedKinds(), ", ") + " (may be repeated)", Value: &choices{values: &s.PruneKinds, words: apply.ProtectedKinds()}},
	}
}

func conflictsFlag(s *deploy.Settings, group string) cli.Flag {
	return &cli.GenericFlag{Name: "conflicts", Category: group, Usage: "fields that others have set: take, fail or yield", Value: newChoice((*string)(&s.Conflicts), "take", "fail", "yield")}
}

func revertFlag(s *deploy.Settings, group string) cli.Flag {
	return &cli.BoolFlag{Name: "revert-manual-changes", Category: group, Usage: "remove what people have added to objects by kubectl edit and the like", Destination: &s.RevertManual}
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
		Name: "generated", Category: "Deploying", Usage: "passwords, certificates and what else templates generate: keep what was deployed, or renew it",
		Value: newChoice((*string)(&s.Generated), string(generated.Keep), string(generated.Renew)),
	}}
}
