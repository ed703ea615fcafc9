package release

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/labels"
)

// ListOptions choose releases and their order. The zero value gives every
// release of the namespace whose newest revision has any status, by name.
type ListOptions struct {
	AllNamespaces bool
	Filter        *regexp.Regexp // of names; nil matches all
	Selector      string         // of the user's labels and Helm's, as kubectl's -l
	Statuses      []helmrelease.Status
	ByDate        bool // by last deployment instead of name
	Reverse       bool
	Offset, Limit int // Limit 0 means all
}

// List returns the newest revision of each matching release. It downloads only metadata,
// and the records of other tools: of the shown releases, or for sorting by date of all
// matching ones. Unreadable records are returned as Unreadable, with the Secret's name if
// the release isn't known. Any other error comes with the readable ones.
//
// As in Helm, the status is that of the newest revision. All revisions count only if the
// status superseded alone is asked for (helm.sh/helm/v3/pkg/action/list.go).
func (s *Store) List(ctx context.Context, opts ListOptions) ([]Summary, error) {
	selector, err := labels.Parse(opts.Selector)
	if err != nil {
		return nil, fmt.Errorf("selector %q: %w", opts.Selector, err)
	}
	namespace := s.namespace
	if opts.AllNamespaces {
		namespace = ""
	}
	items, err := s.listSecretMetadata(ctx, namespace, "owner="+ownerHelm)
	if err != nil {
		return nil, err
	}
	all := make([]Summary, len(items))
	for i := range items {
		all[i], _ = summarize(&items[i].ObjectMeta) // which tells of its error
	}
	if !slices.Equal(opts.Statuses, []helmrelease.Status{helmrelease.StatusSuperseded}) {
		all = newestOnly(all)
	}
	shown := slices.DeleteFunc(all, func(s Summary) bool { return !opts.matches(&s, selector) })
	if !opts.ByDate { // only the records of other tools have their dates
		shown = opts.page(shown)
	}
	err = s.loadDetails(ctx, shown)
	shown = slices.DeleteFunc(shown, func(s Summary) bool { return err == nil && !s.HasDetails && s.Unreadable == nil }) // deleted meanwhile
	if opts.ByDate {
		shown = opts.page(shown)
	}
	return shown, err
}

func (o *ListOptions) matches(s *Summary, selector labels.Selector) bool {
	if o.Filter != nil && !o.Filter.MatchString(s.Name) {
		return false
	}
	if len(o.Statuses) > 0 && !slices.Contains(o.Statuses, s.Status) {
		return false
	}
	set := labels.Set{"name": s.Name, "owner": ownerHelm, "status": s.Status.String(), "version": fmt.Sprint(s.Revision)}
	return selector.Matches(labels.Merge(s.Labels, set))
}

// page sorts the summaries and returns the requested range.
func (o *ListOptions) page(all []Summary) []Summary {
	slices.SortStableFunc(all, func(a, b Summary) int {
		order := cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Namespace, b.Namespace), a.Revision-b.Revision)
		if o.ByDate {
			order = cmp.Or(a.Updated.Compare(b.Updated), order)
		}
		if o.Reverse {
			return -order
		}
		return order
	})
	all = all[min(max(o.Offset, 0), len(all)):]
	if o.Limit > 0 && len(all) > o.Limit {
		all = all[:o.Limit]
	}
	return all
}

// newestOnly returns the newest revision of each release, and all unreadable ones: it is unknown which is newer.
func newestOnly(all []Summary) []Summary {
	newest := map[[2]string]int{}
	for _, s := range all {
		key := [2]string{s.Namespace, s.Name}
		newest[key] = max(newest[key], s.Revision)
	}
	return slices.DeleteFunc(all, func(s Summary) bool {
		return s.Unreadable == nil && s.Revision < newest[[2]string{s.Namespace, s.Name}]
	})
}
