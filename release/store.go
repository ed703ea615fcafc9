package release

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
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
// by Delete, TrimHistory and DeleteDeadLease, which delete what nobody needs; a Lock makes all
// other writes.
type Store struct {
	cluster    *kube.Cluster
	namespace  string
	unpacking  *sync.Mutex // of large records, to limit the memory of a list
	prefetched *sync.Map   // Secrets of deployed revisions that were read, by their UID: they are to be superseded
}

// NewStore returns the store for the records in a namespace, which is that of the
// release, as in Helm. It makes no requests.
func NewStore(cluster *kube.Cluster, namespace string) *Store {
	return &Store{cluster: cluster, namespace: namespace, unpacking: &sync.Mutex{}, prefetched: &sync.Map{}}
}

// Namespace is where the store's releases are.
func (s *Store) Namespace() string { return s.namespace }

// inNamespace is the same store for another namespace.
func (s *Store) inNamespace(namespace string) *Store {
	other := *s
	other.namespace = namespace
	return &other
}

// keepPrefetched keeps the Secret of a deployed revision that is whole in it.
func (s *Store) keepPrefetched(secret *corev1.Secret, rec *Record) {
	if rec.Info.Status == helmrelease.StatusDeployed && !rec.stored.has(labelBody) {
		s.prefetched.Store(string(secret.UID), secret)
	}
}

// takePrefetched returns a kept Secret once; nil if there is none of this resource version.
func (s *Store) takePrefetched(of *Summary) *corev1.Secret {
	value, _ := s.prefetched.LoadAndDelete(of.UID)
	secret, _ := value.(*corev1.Secret)
	if secret == nil || secret.ResourceVersion != of.resourceVersion {
		return nil
	}
	return secret
}

// write creates a Secret, or, if it has a UID, replaces the very one that it was read from. It returns
// the metadata of what is stored. The API server would answer with the whole Secret, and packing,
// sending and unpacking that takes longer than storing it.
func (s *Store) write(ctx context.Context, secret *corev1.Secret) (_ *metav1.ObjectMeta, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing Secret/%s/%s: %w", secret.Namespace, secret.Name, err)
		}
	}()
	client, err := s.cluster.Typed()
	if err != nil {
		return nil, err
	}
	request := client.CoreV1().RESTClient().Post()
	if secret.UID != "" {
		request = client.CoreV1().RESTClient().Put().Name(secret.Name)
	}
	const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	answer := request.Namespace(s.namespace).Resource("secrets").SetHeader("Accept", metadataOnly).Body(secret).Do(ctx)
	if err := answer.Error(); err != nil {
		return nil, err
	}
	data, err := answer.Raw()
	if err != nil {
		return nil, err
	}
	var written metav1.PartialObjectMetadata
	if err := json.Unmarshal(data, &written); err != nil {
		return nil, fmt.Errorf("the answer of the API server: %w", err)
	}
	return &written.ObjectMeta, nil
}

func (s *Store) secrets() (typedcore.SecretInterface, error) {
	client, err := s.cluster.Typed()
	if err != nil {
		return nil, err
	}
	return client.CoreV1().Secrets(s.namespace), nil
}

// getSecret reads a Secret. An error of the API server says which one was read.
func (s *Store) getSecret(ctx context.Context, name string) (*corev1.Secret, error) {
	secrets, err := s.secrets()
	if err != nil {
		return nil, err
	}
	secret, err := secrets.Get(ctx, name, metav1.GetOptions{})
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

// errPartGone is wrapped in the error of decodeSecret when a part is missing.
var errPartGone = errors.New("it was deleted")

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
	rec, err := s.decodeContent(secret.Data[dataKey], bundles)
	switch {
	case err != nil:
		return nil, bad("its content is damaged", err)
	case rec.Name != summary.Name || rec.Version != summary.Revision:
		return nil, bad(fmt.Sprintf("it holds revision %d of release %q", rec.Version, rec.Name), nil)
	}
	rec.Namespace = cmp.Or(rec.Namespace, secret.Namespace)
	rec.Labels = summary.Labels
	rec.stored = stored{
		namespace: secret.Namespace, uid: secret.UID, resourceVersion: secret.ResourceVersion,
		created: secret.Labels["createdAt"], bundles: summary.bundles, written: lastWrite(&secret.ObjectMeta),
	}
	return rec, s.inNamespace(secret.Namespace).readJournal(ctx, rec)
}

// decodeContent decodes a record from the content of its Secret and its bundles, if it has any.
func (s *Store) decodeContent(content []byte, bundles map[string][]byte) (*Record, error) {
	size := unpackedSize(content)
	for _, packed := range bundles {
		size += announcedSize(packed)
	}
	if size > usualSize {
		s.unpacking.Lock()
		defer s.unpacking.Unlock()
	}
	return joinRecord(content, bundles)
}

// readBundles reads the bundles of a large record, by their label; none when it is in one Secret.
func (s *Store) readBundles(ctx context.Context, of *Summary) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, b := range of.bundles {
		parts, err := s.readParts(ctx, of, b)
		if err != nil {
			return nil, err
		}
		if out[b.label], err = b.join(parts); err != nil {
			return nil, &CorruptError{Namespace: s.namespace, Secret: SecretName(of.Name, of.Revision), Reason: "its content is damaged", Err: err}
		}
	}
	return out, nil
}

func (s *Store) readParts(ctx context.Context, of *Summary, b bundleRef) ([][]byte, error) {
	names := partNames(of.Name, of.Revision, b)
	parts := make([][]byte, len(names))
	return parts, kube.ForEach(len(names), kube.ParallelRequests, func(i int) error {
		part, err := s.getSecret(ctx, names[i])
		if apierrors.IsNotFound(err) {
			return &CorruptError{Namespace: s.namespace, Secret: SecretName(of.Name, of.Revision),
				Reason: fmt.Sprintf("its part Secret/%s/%s", s.namespace, names[i]), Err: errPartGone}
		}
		if err != nil {
			return err
		}
		parts[i] = part.Data["part"]
		return nil
	})
}

// listSecretMetadata reads the metadata of all Secrets that match, page by page. Their
// content isn't transferred.
func (s *Store) listSecretMetadata(ctx context.Context, namespace, selector string) ([]metav1.PartialObjectMetadata, error) {
	client, err := s.cluster.Metadata()
	if err != nil {
		return nil, err
	}
	secrets := client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace)
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
		out = append(out, page.Items...)
		if page.Continue == "" {
			return out, nil
		}
		opts.Continue = page.Continue
	}
	return nil, fmt.Errorf("listing Secrets %s in namespace %q: the API server has more than %d pages of %d, or says so without end", selector, namespace, maxPages, pageSize)
}

// Delete deletes the Secret of a revision, but no other Secret of the same name. It
// succeeds if the Secret is already gone.
func (s *Store) Delete(ctx context.Context, of *Summary) error {
	if err := s.deleteSecret(ctx, SecretName(of.Name, of.Revision), of.UID); err != nil {
		return err
	}
	return s.deleteParts(ctx, of.Name, of.Revision, of.bundles)
}

func (s *Store) deleteParts(ctx context.Context, release string, revision int, bundles []bundleRef) error {
	names := partNames(release, revision, bundles...)
	return kube.ForEach(len(names), kube.ParallelRequests, func(i int) error { return s.deleteSecret(ctx, names[i], "") })
}

// deleteSecret deletes a Secret; with a uid, only the one that has it.
func (s *Store) deleteSecret(ctx context.Context, name, uid string) error {
	secrets, err := s.secrets()
	if err != nil {
		return err
	}
	var opts metav1.DeleteOptions
	if uid != "" {
		opts.Preconditions = metav1.NewUIDPreconditions(uid)
	}
	err = retry(ctx, func(ctx context.Context) error { return secrets.Delete(ctx, name, opts) })
	if err == nil || apierrors.IsNotFound(err) || kube.IsConflict(err) {
		return nil // the one we knew is gone
	}
	return fmt.Errorf("deleting Secret %s: %w", name, err)
}

// ServerTime returns the API server's time; our clock may be wrong.
func (s *Store) ServerTime(ctx context.Context) (now time.Time, err error) {
	config := s.cluster.Config()
	client, ofClient := rest.HTTPClientFor(config)
	base, _, ofAddress := rest.DefaultServerUrlFor(config)
	if err := cmp.Or(ofClient, ofAddress); err != nil {
		return now, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("asking %s for the time: %w", config.Host, err)
		}
	}()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("version").String(), nil)
	if err != nil {
		return now, err
	}
	response, err := client.Do(request)
	if err != nil {
		return now, err
	}
	defer response.Body.Close()
	return http.ParseTime(response.Header.Get("Date")) // every answer has it
}

// A listing is the Secrets of one release.
type listing struct {
	heads    []Summary // oldest first
	parts    []metav1.PartialObjectMetadata
	complete bool // false if some heads can't be summarised, so that nothing may be deleted by it
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
	var errs []error
	for i := range items {
		if items[i].Labels["owner"] == ownerParts {
			out.parts = append(out.parts, items[i])
			continue
		}
		head, err := summarize(&items[i].ObjectMeta)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out.heads = append(out.heads, head)
	}
	slices.SortFunc(out.heads, func(a, b Summary) int { return a.Revision - b.Revision })
	out.complete = len(errs) == 0
	return &out, errors.Join(errs...)
}

// parseRevision reads a version label; 0 when it isn't one.
func parseRevision(label string) int {
	n, err := strconv.Atoi(label)
	if err != nil {
		return 0
	}
	return n
}
