package release

import (
	"encoding/json"
	"fmt"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
)

// A record too large for one Secret is split. Status and step stay in the head. If that is enough, only the
// entries of the journal are moved out of it. They mean nothing to Helm, which still reads the whole
// release. Otherwise the body of the record, which doesn't change during a run, is moved out, and the
// entries too if need be.

const (
	// maxHeadConfig limits the size of values that are repeated in the head, for `helm
	// get values`.
	maxHeadConfig = 64 << 10

	largeSuffix = " [large release in several Secrets: only deployer can read it]"
	largeKind   = "ReleaseTooLargeForHelmUseDeployer"
)

// body is the part of a record that doesn't change once it is begun.
type body struct {
	Run      string              `json:"run"` // makes the bodies of two runs differ
	Chart    *helmchart.Chart    `json:"chart,omitempty"`
	Config   map[string]any      `json:"config,omitempty"`
	Manifest string              `json:"manifest,omitempty"`
	Hooks    []*helmrelease.Hook `json:"hooks,omitempty"` // without LastRun
	Notes    string              `json:"notes,omitempty"`
}

// head is what Helm sees of a record without its body: a release whose manifest it can't process,
// so that it refuses instead of deleting objects that it doesn't see. A whole record has no LastRuns.
type head struct {
	Record
	LastRuns []helmrelease.HookExecution `json:"deployer_runs,omitempty"` // by index of the body's hooks
}

func bodyOf(rec *Record) *body {
	b := &body{Run: rec.partsSalt(), Chart: rec.Chart, Config: rec.Config, Manifest: rec.Manifest, Notes: rec.Info.Notes}
	for _, hook := range rec.Hooks {
		still := *hook
		still.LastRun = helmrelease.HookExecution{}
		b.Hooks = append(b.Hooks, &still)
	}
	return b
}

// partsSalt makes the parts of two runs differ even if their content is equal, because each run
// deletes its own. Parts that are written again because their head was deleted differ too:
// the cluster is about to delete the former ones.
func (rec *Record) partsSalt() string {
	run := ""
	if rec.Journal != nil {
		run = rec.Journal.Run
	}
	if rec.stored.lost > 0 {
		run += fmt.Sprintf(" %d", rec.stored.lost)
	}
	return run
}

func headOf(rec *Record) *head {
	h := &head{Record: *rec}
	info := *rec.Info
	info.Notes = ""
	info.Description = strings.TrimSuffix(info.Description, largeSuffix) + largeSuffix
	h.Info = &info
	h.Hooks = nil
	h.LastRuns = lastRuns(rec.Hooks)
	if rec.Chart != nil {
		h.Chart = &helmchart.Chart{Metadata: rec.Chart.Metadata}
	}
	if config, err := json.Marshal(rec.Config); err != nil || len(config) > maxHeadConfig {
		h.Config = nil
	}
	h.Manifest = headManifest(rec)
	return h
}

// headManifest returns a manifest that Helm can print and split, but not build, because
// the kind doesn't exist. Helm's upgrade, rollback and uninstall fail with this name in
// their message, before they change any object.
func headManifest(rec *Record) string {
	return fmt.Sprintf(`---
# Release %s, revision %d, is too large for Helm: its manifest is kept in
# several Secrets, which only deployer reads:
#   deployer get manifest -n %s %s --revision %d
apiVersion: deployer.io/v1
kind: %s
metadata:
  name: %s
`, rec.Name, rec.Version, rec.Namespace, rec.Name, rec.Version, largeKind, rec.Name)
}

// entriesOf are the entries of a record's journal.
func entriesOf(rec *Record) *Journal {
	entries := *rec.Journal
	entries.RunInfo = RunInfo{Run: rec.partsSalt()}
	return &entries
}

// withoutEntries is a copy of a record whose journal has only its RunInfo.
func withoutEntries(rec *Record) *Record {
	out := *rec
	out.Journal = &Journal{RunInfo: rec.Journal.RunInfo}
	return &out
}
