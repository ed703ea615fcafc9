package main

import (
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// releasesInFiles returns the names of the releases of a namespace in files as Helm's driver memory reads
// them. Helm's acceptance tests complete such names; no command works with this driver.
// (helm.sh/helm/v3/cmd/helm/helm.go, loadReleasesInMemory)
func releasesInFiles(paths, namespace string) []string {
	var names []string
	for _, path := range strings.Split(paths, ":") {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // a completion says nothing of errors
		}
		var releases []struct{ Name, Namespace string }
		if yaml.Unmarshal(data, &releases) != nil {
			continue
		}
		for _, r := range releases {
			if r.Namespace == namespace {
				names = append(names, r.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
