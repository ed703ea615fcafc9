package definition

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Contribution records which parts of a crds/ definition this release added, and how it
// left the definition. Parts that others added are removed only on request.
type Contribution struct {
	Left   string   `json:"left"`             // digest of what the definition allowed
	Before string   `json:"before,omitempty"` // what it was before a change of which nobody knows yet whether it has been made
	Whole  bool     `json:"whole,omitempty"`  // all of it came with this release
	Places []string `json:"places,omitempty"` // else what did: "v1 spec.size", "v2 " for a version
}

// mostPlaces limits the places recorded for one definition. With more, none are recorded,
// and the definition counts as added by others.
const mostPlaces = 200

// ContributionOf returns the contribution of a release that created a definition as its
// manifest has it. It is for revisions that have no recorded contribution.
func ContributionOf(crd *unstructured.Unstructured) Contribution {
	return Contribution{Left: digest(crd), Whole: true}
}

// Describes reports whether a definition is exactly as the release left it, or found it, where it is about to change it.
func (c Contribution) Describes(live *unstructured.Unstructured) bool {
	now := digest(live)
	return c.Left != "" && (c.Left == now || c.Before == now)
}

// Planned is After of an update that is about to be made.
func (c *Contribution) Planned(before, after *unstructured.Unstructured) *Contribution {
	out := c.After(before, after)
	if out != nil {
		out.Before = digest(before)
	}
	return out
}

// After returns the contribution after the release has updated the definition; nil when nothing
// of it is the release's own. For nil, nothing was before.
func (c *Contribution) After(before, after *unstructured.Unstructured) *Contribution {
	out := Contribution{Left: digest(after)}
	if c != nil {
		out.Whole, out.Places = c.Whole, slices.Clone(c.Places)
	}
	if out.Whole {
		return &out
	}
	for _, l := range LossesOf(after, before) {
		if !slices.Contains(out.Places, l.place()) {
			out.Places = append(out.Places, l.place())
		}
	}
	if len(out.Places) == 0 || len(out.Places) > mostPlaces {
		return nil
	}
	return &out
}

// LossesOfOthers returns the losses of what the release hasn't added; all of them for nil.
func (c *Contribution) LossesOfOthers(losses Losses) Losses {
	if c == nil {
		return losses
	}
	if c.Whole {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(losses), func(l Loss) bool {
		return slices.ContainsFunc(c.Places, func(place string) bool { return placeCovers(place, l.place()) })
	})
}

// DroppedStoredVersions returns the versions in which objects may be stored and that the next
// definition lacks. The API server refuses to drop them.
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#upgrade-existing-objects-to-a-new-stored-version
func DroppedStoredVersions(live, next *unstructured.Unstructured) []string {
	stored, _, _ := unstructured.NestedStringSlice(live.Object, "status", "storedVersions")
	return slices.DeleteFunc(stored, func(version string) bool { return Version(next, version) != nil })
}
