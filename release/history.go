package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	helmrelease "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"deployer/internal/kube"
	"deployer/internal/lazyregexp"
	"deployer/internal/program"
)

// A History has all revisions of one release as they were when it was read. Records are
// read when needed, each once. It isn't safe for concurrent use.
type History struct {
	Namespace, Name string
	Revisions       []Summary // oldest first; empty for an unknown release

	store    *Store
	loaded   map[int]*Record
	identity Identity
}

// History lists the revisions of a release without their content, 500 per request. An
// unknown release has an empty history and no error. A Secret that looks like a revision
// but can't be one is a *CorruptError.
func (s *Store) History(ctx context.Context, name string) (*History, error) {
	all, err := s.list(ctx, name, ownerHelm)
	if err != nil {
		return nil, err
	}
	return &History{
		Namespace: s.namespace, Name: name, Revisions: all.heads, store: s, loaded: map[int]*Record{}, identity: identify(all.heads),
	}, nil
}

// HistoryWithRecords is History that also tries to read the records that are probably needed
// next, in the same time. Load reads the others.
func (s *Store) HistoryWithRecords(ctx context.Context, name string) (*History, error) {
	var prefetched []*Record
	var reading sync.WaitGroup
	reading.Go(func() { prefetched = s.prefetchRecords(ctx, name) })
	history, err := s.History(ctx, name)
	reading.Wait()
	if err != nil {
		return nil, err
	}
	for _, rec := range prefetched {
		found := history.newestWhere(func(s *Summary) bool { return s.Revision == rec.Version })
		if found != nil && found.UID == string(rec.stored.uid) && found.resourceVersion == rec.stored.resourceVersion {
			history.loaded[rec.Version] = rec
			found.setDetails(rec)
		}
	}
	return history, nil
}

// maxPrefetched is how many records are read before it is known which are needed: the
// deployed one, and one that failed or is under way.
const maxPrefetched = 2

// prefetchRecords reads the records that aren't superseded, in one request. It reports no
// errors: Load reads a missing record again and reports them.
func (s *Store) prefetchRecords(ctx context.Context, name string) []*Record {
	selector, err := selectRelease(name, ownerHelm)
	if err != nil {
		return nil
	}
	list, err := s.secrets().List(ctx, metav1.ListOptions{LabelSelector: selector + ",status notin (superseded)", Limit: maxPrefetched})
	if err != nil {
		return nil
	}
	var out []*Record
	for i := range list.Items {
		if rec, err := s.decodeSecret(ctx, &list.Items[i]); err == nil {
			if rec.Info.Status == helmrelease.StatusDeployed {
				s.deployed.Store(&list.Items[i])
			}
			out = append(out, rec)
		}
	}
	return out
}

// selectRelease returns the label selector of the Secrets of a release that have one of these owners.
func selectRelease(name string, owners ...string) (string, error) {
	byName, err := labels.ValidatedSelectorFromSet(labels.Set{"name": name})
	if err != nil {
		return "", fmt.Errorf("release name %q: %w", name, err)
	}
	return fmt.Sprintf("%s,owner in (%s)", byName, strings.Join(owners, ",")), nil
}

// Latest is the newest revision; nil when there is none.
func (h *History) Latest() *Summary {
	if len(h.Revisions) == 0 {
		return nil
	}
	return &h.Revisions[len(h.Revisions)-1]
}

// Next is the number the next revision will have.
func (h *History) Next() int {
	if h.Latest() == nil {
		return 1
	}
	return h.Latest().Revision + 1
}

// Deployed returns the newest revision of status deployed; nil when there is none. A
// killed run may leave two: the newer one counts.
func (h *History) Deployed() *Summary {
	return h.newestWhere(func(s *Summary) bool { return s.Status == helmrelease.StatusDeployed })
}

func (h *History) newestWhere(is func(*Summary) bool) *Summary {
	for i := range slices.Backward(h.Revisions) {
		if is(&h.Revisions[i]) {
			return &h.Revisions[i]
		}
	}
	return nil
}

// Load reads a revision's record, once. The error is a *NotFoundError for a
// revision that isn't, or no longer, in the history; or a *CorruptError.
func (h *History) Load(ctx context.Context, revision int) (*Record, error) {
	if rec, ok := h.loaded[revision]; ok {
		return rec, nil
	}
	found := h.newestWhere(func(s *Summary) bool { return s.Revision == revision })
	if found == nil {
		return nil, &NotFoundError{Namespace: h.Namespace, Name: h.Name, Revision: revision}
	}
	rec, err := h.read(ctx, revision)
	if err != nil {
		return nil, err
	}
	h.loaded[revision] = rec
	found.setDetails(rec)
	return rec, nil
}

// read reads a record that was there when the history was read.
func (h *History) read(ctx context.Context, revision int) (*Record, error) {
	rec, err := h.store.Get(ctx, h.Name, revision)
	if missing := new(NotFoundError); errors.As(err, &missing) {
		missing.Vanished = true
	}
	return rec, err
}

// RollbackTarget gives the revision to roll back to: the one named, or for 0 the last
// successful one before the latest, or the latest itself if only its uninstall failed.
// The error may be a *NotFoundError or a *CorruptError.
func (h *History) RollbackTarget(ctx context.Context, revision int) (*Record, error) {
	latest := h.Latest()
	if latest == nil {
		return nil, &NotFoundError{Namespace: h.Namespace, Name: h.Name}
	}
	if revision != 0 {
		return h.Load(ctx, revision)
	}
	candidates := h.Revisions
	if latest.Status != helmrelease.StatusFailed {
		candidates = candidates[:len(candidates)-1]
	}
	for _, s := range slices.Backward(candidates) {
		if !mayHaveSucceeded(&s) {
			continue
		}
		rec, err := h.Load(ctx, s.Revision)
		if err != nil {
			return nil, err
		}
		if rec.Succeeded() {
			return rec, nil
		}
	}
	return nil, program.WithHint(fmt.Errorf("release %s/%s has no successful revision before the current one", h.Namespace, h.Name),
		fmt.Sprintf("to go to a revision anyway, name it: "+program.OnCluster+" rollback -n %s %s REVISION", h.Namespace, h.Name))
}

func mayHaveSucceeded(s *Summary) bool {
	return s.Status == helmrelease.StatusDeployed || s.Status == helmrelease.StatusSuperseded || s.Status == helmrelease.StatusFailed && s.WasDeployed
}

// Succeeded reports whether a revision was deployed completely, now or once, and isn't uninstalled. Superseded
// is no proof: Helm's failed rollback marks the current revision superseded,
// even a failed or pending one (helm.sh/helm/v3/pkg/action/rollback.go). Then the
// description still tells of it.
func (rec *Record) Succeeded() bool {
	switch rec.Info.Status {
	case helmrelease.StatusDeployed:
		return true
	case helmrelease.StatusSuperseded:
		return !unsuccessfulDescription().MatchString(rec.Info.Description)
	case helmrelease.StatusFailed:
		return rec.Journal != nil && rec.Journal.WasDeployed
	}
	return false
}

// unsuccessfulDescription matches the descriptions that Helm 3 and we give to a revision that failed or was
// interrupted, and Helm to a pending one. A user's own description may have such words in it.
// (helm.sh/helm/v3/pkg/action: install.go, upgrade.go and rollback.go)
var unsuccessfulDescription = lazyregexp.New(`^(Release|Upgrade|Rollback|Uninstall) "[^"]*" failed: |^failed (pre-|post-|to )|` +
	`^(Uninstall )?failed: interrupted|^(Initial install underway|Preparing upgrade)$`)

// RecordsWithPossibleObjects returns the records of all revisions that may have left
// objects, oldest first: the last deployed revision and all later ones. If deployer didn't
// write that deployed revision, it returns all records, because another tool may have left
// objects of any revision. The error is a *CorruptError if a record can't be read.
func (h *History) RecordsWithPossibleObjects(ctx context.Context) ([]*Record, error) {
	var out []*Record
	for _, s := range slices.Backward(h.Revisions) {
		if s.Run == "" && s.Status == helmrelease.StatusDeployed && h.loaded[s.Revision] == nil {
			break // another tool's; all are needed
		}
		rec, err := h.Load(ctx, s.Revision)
		if err != nil {
			return nil, err
		}
		out = append(out, rec)
		if rec.Info.Status == helmrelease.StatusDeployed && rec.Journal != nil {
			slices.Reverse(out)
			return out, nil
		}
	}
	return h.loadAll(ctx)
}

// LoadRemaining reads all records that aren't read yet, several at once. It reports no errors:
// Load reads a missing record again and reports them.
func (h *History) LoadRemaining(ctx context.Context) {
	records := make([]*Record, len(h.Revisions))
	_ = kube.ForEach(len(records), kube.ParallelRequests, func(i int) error {
		if revision := h.Revisions[i].Revision; h.loaded[revision] == nil {
			records[i], _ = h.read(ctx, revision) // Load reads it again, and has the error
		}
		return nil
	})
	for i, rec := range records {
		if rec != nil {
			h.loaded[rec.Version] = rec
			h.Revisions[i].setDetails(rec)
		}
	}
}

// loadAll reads every record, several at once.
func (h *History) loadAll(ctx context.Context) ([]*Record, error) {
	h.LoadRemaining(ctx)
	out := make([]*Record, len(h.Revisions))
	for i := range out {
		var err error
		if out[i], err = h.Load(ctx, h.Revisions[i].Revision); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Newest returns the newest max revisions, for 0 all, with the details of those that other tools
// wrote, whose records it reads. With an error, some have none. An unreadable record
// sets Unreadable of its summary and is no error.
func (h *History) Newest(ctx context.Context, max int) ([]Summary, error) {
	newest := h.Revisions
	if max > 0 && len(newest) > max {
		newest = newest[len(newest)-max:]
	}
	return newest, h.store.loadDetails(ctx, newest)
}

// loadDetails completes summaries. Those of records that were deleted meanwhile stay as they are.
func (s *Store) loadDetails(ctx context.Context, summaries []Summary) error {
	return kube.ForEach(len(summaries), kube.ParallelRequests, func(i int) error {
		of := &summaries[i]
		if of.HasDetails || of.Unreadable != nil {
			return nil
		}
		rec, err := s.inNamespace(of.Namespace).Get(ctx, of.Name, of.Revision)
		switch {
		case errors.As(err, &of.Unreadable), errors.As(err, new(*NotFoundError)):
			return nil
		case err != nil:
			return err
		}
		of.setDetails(rec)
		return nil
	})
}

// An Identity identifies one state of a release history: the UIDs and statuses of its records, and who wrote their content
// when. Compare identities with ==. Only that of an unread history is empty.
type Identity string

// Identity returns the identity of the history as it was listed, even if records were
// loaded later: a record written between listing and loading shows as a difference to a
// later history.
func (h *History) Identity() Identity { return h.identity }

func identify(heads []Summary) Identity {
	var b strings.Builder
	b.WriteString("records:\n")
	for _, s := range heads {
		fmt.Fprintf(&b, "%d %s %s %s\n", s.Revision, s.UID, s.content, s.Status)
	}
	return Identity(b.String())
}

// IsLatest reports whether the record, as it was stored, is the newest of a history: the
// same Secret, not written by another run since.
func (rec *Record) IsLatest(latest *Summary) bool {
	return latest != nil && latest.UID == string(rec.stored.uid) && rec.Journal != nil && latest.Run == rec.Journal.Run
}
