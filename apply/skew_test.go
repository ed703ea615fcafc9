package apply_test

import "k8s.io/apimachinery/pkg/util/version"

// since skips a test of what API servers can do only since a version (make test-skew).
func (s *story) since(minimum, what string) {
	s.t.Helper()
	server, err := s.c.Client().Discovery().ServerVersion()
	if err != nil {
		s.t.Fatal(err)
	}
	if version.MustParseGeneric(server.GitVersion).LessThan(version.MustParseGeneric(minimum)) {
		s.t.Skipf("Kubernetes has %s since %s, this is %s", what, minimum, server.GitVersion)
	}
}
