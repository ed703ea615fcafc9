package release

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/util/validation"

	"deployer/internal/lazyregexp"
	"deployer/internal/program"
)

// ValidateName returns an error unless name can be a release's name; the rules
// are Helm's: a DNS subdomain of at most 53 characters.
func ValidateName(name string) error {
	if err := chartutil.ValidateReleaseName(name); err != nil {
		return fmt.Errorf("release name %q: %w", name, err)
	}
	return nil
}

// ValidateDriver returns an error unless the value of HELM_DRIVER means
// storage in Secrets, as the empty value does.
func ValidateDriver(driver string) error {
	switch driver {
	case "", "secret", "secrets":
		return nil
	}
	why := "it isn't a storage driver"
	switch strings.TrimSuffix(driver, "s") {
	case "configmap":
		why = "release records hold secret values, so deployer keeps them in Secrets only"
	case "sql":
		why = "deployer keeps records in the cluster they are about, where locks can protect them"
	case "memory":
		why = "records in memory are forgotten when the command ends"
	}
	return program.WithHint(fmt.Errorf("HELM_DRIVER=%s is not supported: %s", driver, why),
		"unset HELM_DRIVER or set it to secret; releases recorded elsewhere have to be moved into Secrets first")
}

// systemLabels are Helm's own (helm.sh/helm/v3/pkg/storage/driver/util.go).
// A function, because the list mustn't change.
func systemLabels() []string {
	return []string{"name", "owner", "status", "version", "createdAt", "modifiedAt"}
}

// ValidateLabels returns an error unless the user may give a release these
// labels. Helm's own and those beginning with deployer.io/ are reserved.
func ValidateLabels(labels map[string]string) error {
	var wrong []string
	for key, value := range labels {
		if reservedLabel(key) {
			wrong = append(wrong, fmt.Sprintf("%s is a system reserved label name", key))
			continue
		}
		for _, why := range validation.IsQualifiedName(key) {
			wrong = append(wrong, fmt.Sprintf("%q: %s", key, why))
		}
		for _, why := range validation.IsValidLabelValue(value) {
			wrong = append(wrong, fmt.Sprintf("%s=%q: %s", key, value, why))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	return fmt.Errorf("labels of the release: %s (reserved: %s, %s*)",
		strings.Join(wrong, "; "), strings.Join(systemLabels(), ", "), prefix)
}

func reservedLabel(key string) bool {
	return slices.Contains(systemLabels(), key) || strings.HasPrefix(key, prefix)
}

// userLabels returns the labels that the user gave, without the reserved ones.
func userLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range labels {
		if !reservedLabel(key) {
			out[key] = value
		}
	}
	return out
}

// SecretName is Helm's name for the Secret of a revision.
func SecretName(name string, revision int) string {
	return fmt.Sprintf("%s%s.v%d", keyPrefix, name, revision)
}

// secretNames matches what SecretName gives.
var secretNames = lazyregexp.New(`^sh\.helm\.release\.v1\.(.+)\.v([1-9][0-9]{0,9})$`)

// parseSecretName is the inverse of SecretName.
func parseSecretName(secret string) (name string, revision int, ok bool) {
	m := secretNames().FindStringSubmatch(secret)
	if m == nil {
		return "", 0, false
	}
	revision, err := strconv.Atoi(m[2])
	return m[1], revision, err == nil
}
