package kube

import "k8s.io/apimachinery/pkg/util/resourceversion"

// OldestVersion returns the oldest of some resource versions: a watch from there misses no
// change of their objects. It is empty if one of them is empty or can't be compared, and if
// there are none. A watch from an empty version begins with what is there.
// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions
func OldestVersion(versions []string) string {
	oldest := ""
	for i, version := range versions {
		if version == "" {
			return ""
		}
		if i == 0 {
			oldest = version
			continue
		}
		order, err := resourceversion.CompareResourceVersion(version, oldest)
		if err != nil {
			return ""
		}
		if order < 0 {
			oldest = version
		}
	}
	return oldest
}
