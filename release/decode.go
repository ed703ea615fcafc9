package release

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
)

func decodeHead(data []byte) (*head, error) {
	h := &head{}
	if err := json.Unmarshal(data, h); err != nil {
		return nil, err
	}
	if h.Info == nil {
		return nil, errors.New("it has no info")
	}
	if h.Name == "" || h.Version < 1 {
		return nil, errors.New("it has no name or no version")
	}
	dropNulls(&h.Record)
	return h, nil
}

// dropNulls removes nulls from lists, which other code doesn't expect.
func dropNulls(rec *Record) {
	rec.Hooks = slices.DeleteFunc(rec.Hooks, func(h *helmrelease.Hook) bool { return h == nil })
	if rec.Chart == nil {
		return
	}
	none := func(f *helmchart.File) bool { return f == nil }
	rec.Chart.Files = slices.DeleteFunc(rec.Chart.Files, none)
	rec.Chart.Templates = slices.DeleteFunc(rec.Chart.Templates, none)
}

// gzipMagic is how Helm tells compressed records from ancient plain ones.
const gzipMagic = "\x1f\x8b\x08"

// unpack returns the JSON of data.release: base64 of gzip, or of plain JSON as in the
// first Helm 3.
func unpack(text []byte) ([]byte, error) {
	if len(text) == 0 {
		return nil, errors.New("it has no data.release")
	}
	data, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		return nil, fmt.Errorf("data.release: %w", err)
	}
	if bytes.HasPrefix(data, []byte(gzipMagic)) {
		return decompress(data, maxSingleSecretJSON)
	}
	return data, nil
}

// joinRecord joins the head of a record, which is data.release, and its bundles by the label of each.
// The head wins: another tool may have changed the status there. One that has written it
// again has dropped the journal.
func joinRecord(text []byte, bundles map[string][]byte) (*Record, error) {
	data, err := unpack(text)
	if err != nil {
		return nil, err
	}
	h, err := decodeHead(data)
	if err != nil {
		return nil, err
	}
	rec := &h.Record
	if packed := bundles[labelBody]; packed != nil {
		var b body
		if err := unpackBundle(packed, &b); err != nil {
			return nil, fmt.Errorf("its parts: %w", err)
		}
		rec.addBody(&b, h.LastRuns)
	}
	if packed := bundles[labelEntries]; packed != nil && rec.Journal != nil {
		inHead := rec.Journal.RunInfo
		if err := unpackBundle(packed, rec.Journal); err != nil {
			return nil, fmt.Errorf("its journal: %w", err)
		}
		rec.Journal.RunInfo = inHead
	}
	return rec, nil
}

// addBody adds its body to the record of a head.
func (rec *Record) addBody(b *body, runs []helmrelease.HookExecution) {
	rec.Slim = true
	rec.Chart, rec.Config, rec.Manifest, rec.Hooks = b.Chart, b.Config, b.Manifest, b.Hooks
	rec.Info.Notes = b.Notes
	rec.Info.Description = strings.TrimSuffix(rec.Info.Description, largeSuffix)
	setLastRuns(rec.Hooks, runs)
}

func unpackBundle(packed []byte, into any) error {
	data, err := decompress(packed, maxSplitJSON)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// decodeSecret decodes a head Secret and reads its parts. Errors are *CorruptError or
// those of the API server.
func (s *Store) decodeSecret(ctx context.Context, secret *corev1.Secret) (*Record, error) {
	bad := func(reason string, err error) error {
		return &CorruptError{Namespace: secret.Namespace, Secret: secret.Name, Reason: reason, Err: err}
	}
	if secret.Type != secretType {
		return nil, bad(fmt.Sprintf("its type is %q, not %s", secret.Type, secretType), nil)
	}
	summary, err := summarize(&secret.ObjectMeta)
	if err != nil {
		return nil, err
	}
	if owner := secret.Labels["owner"]; owner != ownerHelm {
		return nil, bad(fmt.Sprintf("its label says owner=%q, not helm", owner), nil)
	}
	bundles, err := s.inNamespace(secret.Namespace).readBundles(ctx, &summary)
	if err != nil {
		return nil, err
	}
	s.decoding.Lock()
	rec, err := joinRecord(secret.Data[dataKey], bundles)
	s.decoding.Unlock()
	switch {
	case err != nil:
		return nil, bad("its content is damaged", err)
	case rec.Name != summary.Name || rec.Version != summary.Revision:
		return nil, bad(fmt.Sprintf("it holds revision %d of release %q", rec.Version, rec.Name), nil)
	}
	rec.Namespace = cmp.Or(rec.Namespace, secret.Namespace)
	rec.Labels = summary.Labels
	rec.stored = stored{namespace: secret.Namespace, bundles: summary.bundles, written: lastWrite(&secret.ObjectMeta)}
	rec.stored.setVersion(secret)
	return rec, s.inNamespace(secret.Namespace).readJournal(ctx, rec)
}
