package planfile

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"filippo.io/age"
	helmchart "helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/chart"
	"deployer/internal/deploy"
	"deployer/internal/hide"
	"deployer/internal/kube"
	"deployer/internal/program"
	"deployer/release"
)

// payload is all that a plan carries out, as Content has it unpacked.
type payload struct {
	Key    []byte          `json:"key,omitempty"` // random; only in encrypted content
	Record *release.Record `json:"record"`
	CRDs   []kube.Manifest `json:"crds,omitempty"` // of the chart's crds/: the record's chart lacks its subcharts
	// Labels are those of the record if they have confidential texts; only in encrypted content.
	Labels map[string]string `json:"labels,omitempty"`
}

// maxContent limits the size of unpacked content.
const maxContent = 256 << 20

func (c payload) pack() ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if err := errors.Join(json.NewEncoder(w).Encode(c), w.Close()); err != nil {
		return nil, fmt.Errorf("encoding the content of the plan: %w", err)
	}
	return b.Bytes(), nil
}

func unpack(data []byte) (payload, error) {
	var c payload
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		d := json.NewDecoder(io.LimitReader(r, maxContent))
		d.UseNumber() // keeps large numbers exact
		err = d.Decode(&c)
	}
	switch {
	case err != nil:
	case c.Record == nil || c.Record.Info == nil:
		err = errors.New("it has no record")
	case slices.ContainsFunc(c.CRDs, func(m kube.Manifest) bool { return m.Object == nil }):
		err = errors.New("an object of crds/ is missing")
	}
	if err != nil {
		return c, &TamperedError{Why: "its content is damaged: " + err.Error()}
	}
	return c, nil
}

// hasConfidential reports whether an operation has content that must not be stored in clear
// text: values of the user that may be confidential, texts that templates have read from Secrets, or objects with
// confidential fields, also those of hooks. What can't be read, such as a hook without a name, which only fails when it
// runs, may have such fields.
func hasConfidential(op *deploy.Operation) bool {
	// Helm's records have no journal.
	if hide.MayBeConfidential(op.Next.Config) || op.Next.Journal != nil && len(op.Next.Journal.Confidential) > 0 {
		return true
	}
	manifests, err := chart.Parse(op.Next.Manifest)
	for _, h := range op.Next.Hooks {
		more, unreadable := chart.ParseHook(h)
		manifests, err = append(manifests, more...), errors.Join(err, unreadable)
	}
	return err != nil || slices.ContainsFunc(append(manifests, op.Rendered.CRDs...), func(m kube.Manifest) bool { return hide.ConfidentialFields(m.Object).Any() })
}

// partsOf returns digests of all parts of a record, so that differing parts can be named.
func partsOf(k key, op *deploy.Operation) map[string]string {
	next := op.Next
	out := map[string]string{}
	put := func(name string, value any) { out[name] = k.digest("part "+name, value) }
	values := next.Config
	if len(values) == 0 {
		values = nil // an empty map is stored as none
	}
	put("values", values)
	put("manifest", next.Manifest)
	if next.Info != nil {
		put("notes", next.Info.Notes)
	}
	putChart(put, next.Chart)
	for _, h := range next.Hooks {
		plain := *h
		plain.LastRun = helmrelease.HookExecution{}
		put("hook "+h.Kind+"/"+h.Name+" ("+h.Path+")", plain)
	}
	for i, m := range op.Rendered.CRDs {
		put(fmt.Sprintf("crd %d (%s)", i+1, m.Source), m.Object.Object)
	}
	manifests, err := chart.Parse(next.Manifest)
	if err != nil {
		return out // the digest of the whole manifest is there
	}
	for _, m := range manifests {
		put(kube.IDOf(m.Object).String()+" ("+m.Source+")", m.Object.Object)
	}
	return out
}

func putChart(put func(string, any), c *helmchart.Chart) {
	if c == nil {
		return
	}
	put("chart metadata", c.Metadata)
	put("chart values", c.Values)
	put("chart schema", c.Schema)
	for name, files := range map[string][]*helmchart.File{"chart templates": c.Templates, "chart files": c.Files} {
		put(name, slices.SortedFunc(slices.Values(files), func(a, b *helmchart.File) int { return strings.Compare(a.Name, b.Name) }))
	}
}

// differingParts lists the parts that differ. It names the whole manifest only if none of
// its objects differs.
func differingParts(planned, now map[string]string) []string {
	all := map[string]string{}
	maps.Copy(all, planned)
	maps.Copy(all, now)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name != "manifest" && planned[name] != now[name] {
			out = append(out, name)
		}
	}
	if len(out) == 0 && planned["manifest"] != now["manifest"] {
		out = append(out, "manifest")
	}
	return out
}

func encrypt(data []byte, to []age.Recipient) ([]byte, error) {
	var b bytes.Buffer
	w, err := age.Encrypt(&b, to...)
	if err == nil {
		_, err = w.Write(data)
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("encrypting the plan: %w", err)
	}
	return b.Bytes(), nil
}

func decrypt(data []byte, with []age.Identity) ([]byte, error) {
	if len(with) == 0 {
		return nil, program.WithHint(errors.New("the plan is encrypted"),
			"give the private key of one of its recipients: --identity FILE, or DEPLOYER_AGE_IDENTITY")
	}
	r, err := age.Decrypt(bytes.NewReader(data), with...)
	if errors.As(err, new(*age.NoIdentityMatchError)) {
		return nil, program.WithHint(errors.New("the plan is encrypted for none of the identities given"),
			"give the private key of a recipient it was made for (plan --encrypt-to) with --identity FILE")
	}
	var out []byte
	if err == nil {
		out, err = io.ReadAll(io.LimitReader(r, maxContent))
	}
	if err != nil {
		return nil, &TamperedError{Why: "its encrypted content is damaged: " + err.Error()}
	}
	return out, nil
}
