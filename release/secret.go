package release

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/annotation"
)

const (
	// prefix is that of every label and annotation of records and locks.
	prefix = annotation.Prefix

	// secretType and keyPrefix are Helm's
	// (helm.sh/helm/v3/pkg/storage/driver/secrets.go, pkg/storage/storage.go).
	secretType = corev1.SecretType("helm.sh/release.v1")
	keyPrefix  = "sh.helm.release.v1."
	dataKey    = "release"
	ownerHelm  = "helm"

	// Annotations have what `list` and `history` show, so that records needn't be
	// downloaded. Helm drops them when it writes a record again.
	annotationChart        = prefix + "chart"
	annotationChartVersion = prefix + "chart-version"
	annotationAppVersion   = prefix + "app-version"
	annotationDescription  = prefix + "description"
	annotationUpdated      = prefix + "updated"
	annotationRun          = prefix + "run"
	annotationWasDeployed  = prefix + "was-deployed"

	// maxDescription limits the description of a failure, and any description in an annotation, in
	// bytes: tables show it.
	maxDescription = 1024
)

// newSecret returns the head Secret of an encoded record. If the record was stored
// before, the Secret has its uid and resourceVersion, so that no other object is
// overwritten.
func newSecret(rec *Record, enc *encoded, now time.Time) *corev1.Secret {
	labels := userLabels(rec.Labels)
	labels["name"] = rec.Name
	labels["owner"] = ownerHelm
	labels["status"] = rec.Info.Status.String()
	labels["version"] = strconv.Itoa(rec.Version)
	stamp := strconv.FormatInt(now.Unix(), 10)
	if rec.stored.uid == "" {
		labels["createdAt"] = stamp
	} else {
		labels["modifiedAt"] = stamp
		if rec.stored.created != "" {
			labels["createdAt"] = rec.stored.created
		}
	}
	for _, b := range enc.bundles {
		labels[b.label] = b.labelValue(rec.Version)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:            SecretName(rec.Name, rec.Version),
			Namespace:       rec.Namespace,
			UID:             rec.stored.uid,
			ResourceVersion: rec.stored.resourceVersion,
			Labels:          labels,
			Annotations:     annotations(rec),
		},
		Type: secretType,
		Data: map[string][]byte{dataKey: enc.head},
	}
}

// annotations returns the public properties of a record. They must not include values or
// manifests.
func annotations(rec *Record) map[string]string {
	out := map[string]string{
		annotationDescription: truncate(rec.Info.Description, maxDescription),
		annotationUpdated:     rec.Info.LastDeployed.UTC().Format(time.RFC3339Nano),
	}
	if rec.Journal != nil {
		out[annotationRun] = rec.Journal.Run
		if rec.Journal.WasDeployed {
			out[annotationWasDeployed] = "true"
		}
	}
	if rec.Chart != nil && rec.Chart.Metadata != nil {
		out[annotationChart] = rec.Chart.Metadata.Name
		out[annotationChartVersion] = rec.Chart.Metadata.Version
		out[annotationAppVersion] = rec.Chart.Metadata.AppVersion
	}
	return out
}

// truncate shortens text to at most max bytes without breaking a character.
func truncate(text string, max int) string {
	if len(text) <= max {
		return text
	}
	return strings.ToValidUTF8(text[:max-len("…")], "") + "…"
}

// A Summary is what a Secret's metadata says about a revision.
type Summary struct {
	Namespace, Name string
	Revision        int
	Status          helmrelease.Status
	Labels          map[string]string // the user's
	Created         time.Time         // of the Secret, by the API server's clock

	// The rest comes from annotations. For records of other tools it is empty, and
	// HasDetails is false, until History.Newest has read them. Updated is then the
	// Secret's creation time.
	HasDetails          bool
	Updated             time.Time // the record's last_deployed
	Chart, ChartVersion string
	AppVersion          string
	Description         string // shortened to 1 KiB
	Run                 string // identity of the deployer run that wrote it
	WasDeployed         bool   // see RunInfo

	// Unreadable says why the record can't be read; nil for other records, and for those
	// that weren't read. The fields above, except the names, may then be incomplete.
	Unreadable *CorruptError

	// ReleaseNamespace is that of the release if the record is in another one; see Record.CheckStoredInPlace.
	ReleaseNamespace string

	// UID is that of the revision's Secret. It distinguishes the revision from one
	// with the same number that was created after this one was deleted.
	UID string

	resourceVersion string
	content         string // see contentVersion
	bundles         []bundleRef
}

// summarize reads the metadata of a head Secret. The error is a *CorruptError if its name
// and labels contradict each other; then the summary, which is Unreadable, has the name of the Secret.
func summarize(meta *metav1.ObjectMeta) (Summary, error) {
	name, revision, ok := parseSecretName(meta.Name)
	labels := meta.Labels
	s := Summary{
		Namespace: meta.Namespace, Name: meta.Name,
		Status:  helmrelease.Status(labels["status"]),
		Labels:  userLabels(labels),
		Created: meta.CreationTimestamp.Time,
		Updated: meta.CreationTimestamp.Time,
		UID:     string(meta.UID),
	}
	reason := ""
	switch {
	case !ok:
		reason = fmt.Sprintf("its labels say it belongs to release %q, but its name isn't that of a record", labels["name"])
	case labels["name"] != name || labels["version"] != strconv.Itoa(revision):
		reason = fmt.Sprintf("its labels say name=%q version=%q, its name says otherwise", labels["name"], labels["version"])
	}
	if reason != "" {
		s.Unreadable = &CorruptError{Namespace: meta.Namespace, Secret: meta.Name, Reason: reason}
		return s, s.Unreadable
	}
	s.Name, s.Revision, s.Run = name, revision, meta.Annotations[annotationRun]
	s.WasDeployed = meta.Annotations[annotationWasDeployed] != ""
	s.resourceVersion, s.content, s.bundles = meta.ResourceVersion, contentVersion(meta), bundlesOf(labels, revision)
	s.readAnnotations(meta.Annotations)
	return s, nil
}

// readAnnotations reads what annotations has written. Records of other tools have none.
func (s *Summary) readAnnotations(of map[string]string) {
	updated, err := time.Parse(time.RFC3339Nano, of[annotationUpdated])
	if err != nil {
		return
	}
	s.HasDetails, s.Updated, s.Description = true, updated, of[annotationDescription]
	s.Chart, s.ChartVersion, s.AppVersion = of[annotationChart], of[annotationChartVersion], of[annotationAppVersion]
}

// setDetails completes the summary by its record.
func (s *Summary) setDetails(rec *Record) {
	s.readAnnotations(annotations(rec))
	s.HasDetails, s.Status, s.Updated = true, rec.Info.Status, rec.Info.LastDeployed.Time
	if rec.Namespace != s.Namespace {
		s.ReleaseNamespace = rec.Namespace
	}
}

// contentVersion changes when somebody writes the content of a record, but not with its labels and annotations, which other programs put on
// all Secrets. Managed fields tell that by the second.
func contentVersion(meta *metav1.ObjectMeta) string {
	var writers []string
	for _, entry := range meta.ManagedFields {
		if entry.Time != nil && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:data"`) {
			writers = append(writers, entry.Manager+"@"+entry.Time.UTC().Format(time.RFC3339))
		}
	}
	return cmp.Or(strings.Join(writers, ","), meta.ResourceVersion)
}

// lastWrite returns when the API server last stored the object, by its own clock.
func lastWrite(meta *metav1.ObjectMeta) time.Time {
	last := meta.CreationTimestamp.Time
	for _, entry := range meta.ManagedFields {
		if entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}
