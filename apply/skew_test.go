package apply_test

// since skips a test of what API servers can do only since a version (make test-skew).
func (s *story) since(minimum, what string) {
	s.t.Helper()
	s.c.Since(s.t, minimum, what)
}
