package release

// Identity tells this revision from any other, also from one of the same number
// that was made after this one was deleted: it is the UID of its Secret.
func (s *Summary) Identity() string { return s.uid }
