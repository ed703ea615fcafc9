package release

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"deployer/internal/kube"
)

const (
	// pageSize is how many Secrets' metadata one answer of the server has.
	pageSize = 500

	// maxPages is more than the records of any cluster fill. A server that always has another page would be asked without end.
	maxPages = 400

	// maxRereads is how often a large record is read again when its parts were
	// replaced between reading its head and them.
	maxRereads = 4
)

// A Store reads the records of one namespace, or of all namespaces when listing. It writes only
// by DeleteDeadLease, which deletes what nobody needs; a Lock makes all other writes.
type Store struct {
	cluster   *kube.Cluster
	namespace string
	decoding  *sync.Mutex                    // of a record; one at a time, to limit the memory of a list
	deployed  *atomic.Pointer[corev1.Secret] // of a deployed revision that was read: superseding it saves a round trip
}

// NewStore returns the store for the records in a namespace, which is that of the
// release, as in Helm. It makes no requests.
func NewStore(cluster *kube.Cluster, namespace string) *Store {
	return &Store{cluster: cluster, namespace: namespace, decoding: &sync.Mutex{}, deployed: &atomic.Pointer[corev1.Secret]{}}
}

// Namespace is where the store's releases are.
func (s *Store) Namespace() string { return s.namespace }

// inNamespace is the same store for another namespace.
func (s *Store) inNamespace(namespace string) *Store {
	other := *s
	other.namespace = namespace
	return &other
}

// write creates a Secret, or, if it has a UID, replaces the very one that it was read from. It returns what is stored.
func (s *Store) write(ctx context.Context, secret *corev1.Secret) (*corev1.Secret, error) {
	secrets := s.secrets()
	var written *corev1.Secret
	var err error
	if secret.UID == "" {
		written, err = secrets.Create(ctx, secret, metav1.CreateOptions{})
	} else {
		written, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("writing Secret/%s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return written, nil
}

func (s *Store) secrets() typedcore.SecretInterface {
	return s.cluster.Typed().CoreV1().Secrets(s.namespace)
}

// getSecret reads a Secret. An error of the API server says which one was read.
func (s *Store) getSecret(ctx context.Context, name string) (*corev1.Secret, error) {
	secret, err := s.secrets().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading Secret/%s/%s: %w", s.namespace, name, err)
	}
	return secret, nil
}

// Get reads one revision, or the newest for revision 0. The error is a
// *NotFoundError when there is none, or a *CorruptError.
func (s *Store) Get(ctx context.Context, name string, revision int) (*Record, error) {
	if revision == 0 {
		h, err := s.HistoryWithRecords(ctx, name)
		if err != nil {
			return nil, err
		}
		if h.Latest() == nil {
			return nil, &NotFoundError{Namespace: s.namespace, Name: name}
		}
		return h.Load(ctx, h.Latest().Revision)
	}
	rec, _, err := s.read(ctx, name, revision)
	if err == nil && rec == nil {
		return nil, &NotFoundError{Namespace: s.namespace, Name: name, Revision: revision}
	}
	return rec, err
}

// read returns a record and its Secret; nil, nil, nil when there is none.
func (s *Store) read(ctx context.Context, name string, revision int) (*Record, *corev1.Secret, error) {
	var gone error
	for range maxRereads {
		secret, err := s.getSecret(ctx, SecretName(name, revision))
		if apierrors.IsNotFound(err) {
			return nil, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
		rec, err := s.decodeSecret(ctx, secret)
		if !errors.Is(err, errPartGone) {
			return rec, secret, err
		}
		gone = err // the head may refer to other parts by now
	}
	return nil, nil, gone
}

// listSecretMetadata reads the metadata of all Secrets that match, page by page. Their
// content isn't transferred. What somebody has only labelled like a record is left out.
func (s *Store) listSecretMetadata(ctx context.Context, namespace, selector string) ([]metav1.PartialObjectMetadata, error) {
	secrets := s.cluster.Metadata().Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace)
	var out []metav1.PartialObjectMetadata
	opts := metav1.ListOptions{LabelSelector: selector, Limit: pageSize}
	for range maxPages {
		page, err := secrets.List(ctx, opts)
		if apierrors.IsResourceExpired(err) && opts.Continue != "" {
			out, opts.Continue = nil, "" // the server no longer has the snapshot; begin again
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing Secrets %s in namespace %q: %w", selector, namespace, err)
		}
		out = append(out, slices.DeleteFunc(page.Items, func(item metav1.PartialObjectMetadata) bool {
			_, _, isRecord := parseSecretName(item.Name)
			return item.Labels["owner"] == ownerHelm && !isRecord
		})...)
		if page.Continue == "" {
			return out, nil
		}
		opts.Continue = page.Continue
	}
	return nil, fmt.Errorf("listing Secrets %s in namespace %q: the API server has more than %d pages of %d, or says so without end", selector, namespace, maxPages, pageSize)
}

// deleteOldest deletes the n oldest revisions of a listing, and then the Secrets of revisions up to newest that no
// other revision refers to: parts, and journals of runs that have ended.
func (s *Store) deleteOldest(ctx context.Context, all *listing, n, newest int) error {
	err := kube.ForEach(n, kube.ParallelRequests, func(i int) error {
		return s.deleteSecret(ctx, SecretName(all.heads[i].Name, all.heads[i].Revision), all.heads[i].UID)
	})
	if err != nil {
		return err
	}
	left := unreferencedParts(all.heads[n:], all.parts, newest)
	return kube.ForEach(len(left), kube.ParallelRequests, func(i int) error {
		return s.deleteSecret(ctx, left[i].Name, string(left[i].UID))
	})
}

// deleteSecret deletes a Secret; with a uid, only the one that has it. It succeeds if the Secret is already gone.
func (s *Store) deleteSecret(ctx context.Context, name, uid string) error {
	var opts metav1.DeleteOptions
	if uid != "" {
		opts.Preconditions = metav1.NewUIDPreconditions(uid)
	}
	err := retry(ctx, func(ctx context.Context) error { return s.secrets().Delete(ctx, name, opts) })
	if err == nil || apierrors.IsNotFound(err) || kube.IsConflict(err) {
		return nil // the one we knew is gone
	}
	return fmt.Errorf("deleting Secret %s: %w", name, err)
}

// ServerTime returns the API server's time; our clock may be wrong.
func (s *Store) ServerTime(ctx context.Context) (time.Time, error) {
	config := s.cluster.Config()
	client, ofClient := rest.HTTPClientFor(config)
	base, _, ofAddress := rest.DefaultServerUrlFor(config)
	if err := cmp.Or(ofClient, ofAddress); err != nil {
		return time.Time{}, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("version").String(), nil)
	if err != nil {
		return time.Time{}, err
	}
	response, err := client.Do(request)
	if err != nil {
		return time.Time{}, fmt.Errorf("asking %s for the time: %w", config.Host, err)
	}
	defer response.Body.Close()
	return http.ParseTime(response.Header.Get("Date")) // every answer has it
}

// A listing is the Secrets of one release.
type listing struct {
	heads   []Summary // oldest first
	parts   []metav1.PartialObjectMetadata
	damaged error // about heads that can't be summarised; then nothing may be deleted by it
}

// list reads the metadata of the Secrets of a release that have one of these owners. The listing is nil if
// they can't be read. If only single heads can't be, it has the others, and the error is about those heads.
func (s *Store) list(ctx context.Context, name string, owners ...string) (*listing, error) {
	selector, err := selectRelease(name, owners...)
	if err != nil {
		return nil, err
	}
	items, err := s.listSecretMetadata(ctx, s.namespace, selector)
	if err != nil {
		return nil, err
	}
	var out listing
	for i := range items {
		if items[i].Labels["owner"] == ownerParts {
			out.parts = append(out.parts, items[i])
			continue
		}
		head, err := summarize(&items[i].ObjectMeta)
		if err != nil {
			out.damaged = errors.Join(out.damaged, err)
			continue
		}
		out.heads = append(out.heads, head)
	}
	slices.SortFunc(out.heads, func(a, b Summary) int { return a.Revision - b.Revision })
	return &out, out.damaged
}

// parseRevision reads a version label; 0 when it isn't one.
func parseRevision(label string) int {
	n, err := strconv.Atoi(label)
	if err != nil {
		return 0
	}
	return n
}

const (
	// maxTries is how often a request is tried while it fails by transient errors.
	maxTries = 8

	// maxOutdated is how often something is tried that others change each time.
	maxOutdated = 50

	// restartTime is how long a server that is down may take to restart. A Lease lasts as long.
	restartTime = 30 * time.Second

	// firstPause before the second try; it doubles up to maxPause.
	firstPause = 50 * time.Millisecond
	maxPause   = 2 * time.Second

	// maxRequestTime is how long one request may take before it is sent again, if
	// the context has no earlier end.
	maxRequestTime = 30 * time.Second
)

// errRetry asks retry for another try. It reaches the user when all tries were in vain.
var errRetry = errors.New("another client changed the record at every try")

// retry calls do until it succeeds or fails permanently. do must be safe to repeat,
// because an answer may be lost. What others have changed in between is tried again at once, and more often: they
// may do so many times a second, as programs that annotate all Secrets.
func retry(ctx context.Context, do func(context.Context) error) error {
	wait, began := firstPause, time.Now()
	for n := 1; ; n++ {
		err := tryOnce(ctx, do)
		isOutdated := errors.Is(err, errRetry) && n < maxOutdated
		isLast := n >= maxTries && !isOutdated && !mayBeRestarting(err, began)
		if err == nil || ctx.Err() != nil || isLast || !isTransient(err) {
			return err
		}
		if isOutdated {
			continue
		}
		if kube.Sleep(ctx, wait) != nil {
			return err // more informative than the end of ctx
		}
		wait = min(2*wait, maxPause)
	}
}

// mayBeRestarting reports whether an error of requests made since began says that the server is
// down, or all servers behind a load balancer, and not yet for longer than a restart takes.
func mayBeRestarting(err error, began time.Time) bool {
	isDown := kube.IsConnectionFailure(err)
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		isDown = status.Status().Code > http.StatusInternalServerError
	}
	return isDown && time.Since(began) < restartTime
}

// tryOnce limits one try to half of the remaining time, so that a request that hangs
// leaves time for another.
func tryOnce(ctx context.Context, do func(context.Context) error) error {
	limit := maxRequestTime
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return do(ctx)
}

// isTransient reports whether the same request may succeed later. It is more patient than
// package apply is with objects: a record that isn't written leaves the release pending.
func isTransient(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		if kube.IsDenial(err) {
			return false // with whatever code
		}
		if details := status.Status().Details; kube.IsConflict(err) && details != nil && details.Kind == "resourcequotas" {
			return true // another object is being counted
		}
		code := status.Status().Code
		return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests || apierrors.IsUnexpectedServerError(err)
	}
	// Our own errors are permanent; all others come from the connection to the server.
	var ours interface{ Hint() string }
	if !errors.As(err, &ours) {
		return true
	}
	_, isUnreachable := ours.(*kube.UnreachableError) // it may be restarting
	return isUnreachable && !errors.As(err, new(*tls.CertificateVerificationError))
}
