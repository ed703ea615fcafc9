package deploy

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// maxDescription bounds the reason in a record, in bytes: it is shown in tables.
const maxDescription = 1024

// description returns the description for the record: after success the user's or else
// Helm's, after a failure Helm's with the reason.
func (r *run) description(err error) string {
	op, verb := r.op, verbs[r.op.Verb]
	given := op.Next.Info.Description
	if op.Verb == Uninstall {
		given = op.Removal.Description
	}
	switch {
	case err != nil:
		return fmt.Sprintf(verb.failure, op.Release, oneLine(r.Hidden.Hide(reason(err))))
	case given != "":
		return given
	case op.Verb == Rollback:
		return fmt.Sprintf(verb.success, op.Target)
	}
	return verb.success
}

func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "timed out: " + err.Error()
	}
	return err.Error()
}

// oneLine makes one line of a text, of bounded length.
func oneLine(s string) string {
	lines := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	s = strings.ReplaceAll(strings.Join(lines, "; "), ":; ", ": ")
	if len(s) <= maxDescription {
		return s
	}
	return strings.ToValidUTF8(s[:maxDescription], "") + "…"
}
